"""set_scope, storage_align and transform_layout change where elements lie, and nothing else."""

import itertools
import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.contents import substitute
from loopwright.ir.simplify import simplify
from loopwright.ir.stmt import Allocate
from loopwright.ir.visit import walk
from loopwright.lowering.index_map import index_map


def two_stages(n=6, m=8):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((m, n), lambda i, j: B[j, i] * 2.0, name="C")
    return A, B, C


def assert_right(s, A, C, *sizes):
    """The interpreter and native code give what numpy gives."""
    runs = lw.interpret(lw.lower(s, [A, C])), lw.build(s, [A, C])
    for n, m in sizes:
        a = np.random.default_rng(n * 31 + m).standard_normal((n, m), np.float32)
        expected = ((a + np.float32(1)) * np.float32(2)).T
        for run in runs:
            out = np.full((m, n), np.nan, np.float32)
            run(a, out)
            np.testing.assert_array_equal(out, expected)


def test_transform_layout_before_and_after():
    _A, B, C = two_stages()
    s = lw.create_schedule(C)
    assert str(s) == (
        "B: float32[6, 8] = allocate('local')\n"
        "for i in range(6):\n"
        "    for j in range(8):\n"
        "        B[i, j] = A[i, j] + 1.0\n"
        "for i_1 in range(8):\n"
        "    for j_1 in range(6):\n"
        "        C[i_1, j_1] = B[j_1, i_1] * 2.0"
    )
    s[B].transform_layout(lambda i, j: (j // 4, i, j % 4))
    assert str(s) == (
        "B: float32[2, 6, 4] = allocate('local')\n"
        "for i in range(6):\n"
        "    for j in range(8):\n"
        "        B[j // 4, i, j % 4] = A[i, j] + 1.0\n"
        "for i_1 in range(8):\n"
        "    for j_1 in range(6):\n"
        "        C[i_1, j_1] = B[i_1 // 4, j_1, i_1 % 4] * 2.0"
    )


def test_storage_align_before_and_after():
    _A, B, C = two_stages(4, 9)
    s = lw.create_schedule(C)
    before = str(s)
    assert before.startswith("B: float32[4, 9] = allocate('local')\n")
    s[B].storage_align(B.op.axis[0], factor=16, offset=1)
    assert str(s) == before.replace("float32[4, 9]", "float32[4, 9, strides=(17, 1)]")


def test_set_scope_before_and_after():
    _A, B, C = two_stages()
    s = lw.create_schedule(C)
    before = str(s)
    s[B].set_scope("global")
    assert str(s) == before.replace("allocate('local')", "allocate('global')")


@pytest.mark.parametrize(("scope", "allocated"), [("global", True), ("local", False), ("register", False)])
def test_the_scope_decides_between_heap_and_stack(scope, allocated):
    A, B, C = two_stages()
    s = lw.create_schedule(C)
    s[B].set_scope(scope)
    kernel = lw.build(s, [A, C])
    assert ('@"aligned_alloc"(' in kernel.llvm_ir) is allocated
    assert_right(s, A, C, (6, 8))


def test_what_is_too_large_for_the_stack_or_for_registers_goes_where_it_fits():
    for n, scope, found in [(4097, "local", "global"), (257, "register", "local"), (te.var("n"), "register", "global")]:
        _A, B, C = two_stages(n, 1)
        s = lw.create_schedule(C)
        s[B].set_scope(scope)
        assert f"allocate('{found}')" in str(s)


def test_registers_of_an_unrolled_tile_are_no_memory():
    A, B, C = two_stages(4, 8)
    s = lw.create_schedule(C)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].set_scope("register")
    s[B].unroll(B.op.axis[0])
    s[C].unroll(C.op.axis[1])
    kernel = lw.build(s, [A, C])
    assert "alloca [" not in kernel.llvm_ir  # a slot for each element, no array
    assert_right(s, A, C, (4, 8))


LAYOUTS = [
    lambda i, j: (j, i),
    lambda i, j: (i // 4, j, i % 4),
    lambda i, j: (j // 8, i // 3, i % 3, j % 8 // 2, j % 2),
    lambda i, j: (i // 5 * 5 + i % 5, j),
    lambda i, j: (j % 2, i, j // 2),
]
PROGRAMS = {
    "root": lambda s, B, C: None,
    "at a tile": lambda s, B, C: s[B].compute_at(s[C], s[C].tile(*C.op.axis, 4, 5)[1]),
    "vector": lambda s, B, C: (s[B].vectorize(s[B].split(B.op.axis[1], 4)[1]), s[B].parallel(B.op.axis[0])),
    "in a vector": lambda s, B, C: s[C].vectorize(s[C].split(C.op.axis[1], 8)[1]),
    "fused": lambda s, B, C: s[B].vectorize(s[B].split(s[B].fuse(*B.op.axis), 8)[1]),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_symbolic_shapes(layout, program):
    n, m = te.var("n"), te.var("m")
    A, B, C = two_stages(n, m)
    s = lw.create_schedule(C)
    s[B].transform_layout(layout)
    if len(layout(*B.op.axis)) > 2:
        s[B].storage_align(1, 8, 3)
    PROGRAMS[program](s, B, C)
    assert_right(s, A, C, (0, 3), (3, 0), (1, 1), (7, 13), (8, 16))


def test_indices_are_joined_where_the_lower_extent_is_constant():
    A, B, C = two_stages(te.var("n"), 12)
    s = lw.create_schedule(C)
    s[B].transform_layout(lambda i, j: (i * 12 + j,))
    assert "B: float32[n * 12] = allocate('global')" in str(s)
    assert_right(s, A, C, (5, 12))


@pytest.mark.parametrize(
    ("text", "extents", "injective"),
    [
        ("lambda i, j: (i // 4, i % 4, j)", (None, None), True),
        ("lambda i, j: (i // 8, i % 4, j)", (None, None), False),
        ("lambda i, j: (i // 8, i % 4, j)", (4, None), True),
        ("lambda i, j: (i % 6 // 2, i % 2, i // 6, j)", (None, None), True),
        ("lambda i, j: (i * 8 + j,)", (None, 8), True),
        ("lambda i, j: (i * 8 + j,)", (None, 9), False),
        ("lambda i, j: (j * 4 + i % 4, i // 4)", (None, None), True),
        ("lambda i, j: (7 - i, j)", (8, 5), True),
        ("lambda i, j: (i + j, j)", (8, 5), True),
        ("lambda i, j: ((i * 5 + j) // 3, (i * 5 + j) % 3)", (8, 5), True),
        ("lambda i, j: (i + j,)", (8, 5), False),
        ("lambda i, j: (i, i)", (None, None), False),
        ("lambda i, j: (i,)", (None, 1), True),
        ("lambda i, j: (i // 0 + j,)", (8, 8), None),
    ],
)
def test_injectivity_is_proved_or_tried_out(text, extents, injective):
    if injective is None:
        with pytest.raises(lw.ScheduleError, match="divides by positive integers"):
            index_map(text, 2)
        return
    sizes = [te.var() if e is None else te.const(e, "index") for e in extents]
    assert index_map(text, 2).is_injective(sizes) is injective


def test_the_proof_and_the_inverse_agree_with_trying_out():
    rng = np.random.default_rng(0)
    digits = ["i", "i // 2", "i % 2", "i // 3", "i % 3", "i % 6 // 3", "j", "j // 2", "j % 2", "i // 6"]
    digits += ["(i * 7 + j) // 4", "(i * 7 + j) % 4"] * 2
    proved = 0
    for _ in range(300):
        terms = [f"{rng.choice(digits)} * {rng.integers(1, 7)}" for _ in range(rng.integers(1, 6))]
        joined = [" + ".join(terms[:2]), *terms[2:]]
        made = index_map(f"lambda i, j: ({', '.join(joined)},)", 2)
        sizes = [int(size) for size in rng.integers(0, 8, 2)]
        places = {tuple(eval(made.text)(i, j)) for i in range(sizes[0]) for j in range(sizes[1])}
        one_to_one = len(places) == sizes[0] * sizes[1]
        extents = [te.const(size, "index") for size in sizes]
        variables = [te.var(f"q{k}") for k in range(len(made.results))]
        inverse = made.inverse(variables, extents)
        proved += inverse is not None
        assert one_to_one or inverse is None, (made.text, sizes)
        assert made.is_injective(extents) is one_to_one
        for element in itertools.product(*map(range, sizes)) if inverse is not None else ():
            place = dict(zip(variables, made([te.const(i, "index") for i in element]), strict=True))
            indices = (substitute(substitute(i, inverse.numbers), place) for i in inverse.indices)
            assert tuple(int(simplify(i)) for i in indices) == element, (made.text, sizes)
    assert proved > 30


def test_a_map_is_kept_as_its_text():
    made = index_map(lambda i, j: (i // 8, j, i % 8), 2)
    assert made.text == "lambda i, j: (i // 8, j, i % 8)"
    assert index_map(made.text, 2) == made


def test_aligned_rows_are_allocated_with_their_padding():
    A, B, C = two_stages(5, 9)
    s = lw.create_schedule(C)
    s[B].storage_align(0, 16)
    (allocation,) = (node for node in walk(lw.lower(s, [A, C]).body) if isinstance(node, Allocate))
    assert [int(e) for e in allocation.buffer.shape] == [4 * 16 + 9]
    assert_right(s, A, C, (5, 9))


def test_steps_print_as_calls():
    _A, B, C = two_stages()
    s = lw.create_schedule(C)
    s[B].transform_layout(lambda i, j: (j, i))
    s[B].storage_align(0, 16)
    s[B].set_scope("local")
    calls = [str(step) for step in s.trace]
    assert all(re.match(r"s\[.B.\]\.(transform_layout|storage_align|set_scope)\(", call) for call in calls)
    again = lw.create_schedule(C)
    for step in s.trace:
        again.apply(step)
    assert str(again) == str(s)


def test_a_step_that_widens_what_a_layout_holds_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = lw.create_schedule(C)
    outer, inner = s[C].split("i", 4)
    s[B].compute_at(s[C], inner)
    s[B].transform_layout("lambda i: (i // 2,)")  # of one element
    s[C].parallel(outer)  # which changes nothing of what is computed where
    with pytest.raises(lw.ScheduleError, match="may put two of the"):
        s[B].compute_at(s[C], outer)
