"""What ``kernel.vector_report()`` says of kernels whose code is known, for fixed targets, so for any machine."""

import pytest

import loopwright as lw
from loopwright import te

AVX2, AVX512, SSE = "x86-64-v3", "x86-64-v4", "x86-64"


def elementwise(body, shape=(64, 64), factor=8, dtype="float32", inputs=1):
    tensors = [te.placeholder(shape, dtype, name=f"X{k}") for k in range(inputs)]
    Y = te.compute(shape, lambda *i: body(*(X[i] for X in tensors)), name="Y")
    s = lw.create_schedule(Y)
    if factor:
        s[Y].vectorize(s[Y].split(Y.op.axis[-1], factor=factor)[1])
    return s, [*tensors, Y]


def report(s, args, target, **options):
    return lw.build(s, args, target=target, **options).vector_report()


def matmul(rows, columns, n=64):
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    r = te.reduce_axis((0, n), name="r")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    io, jo, ii, ji = s[C].tile(*C.op.axis, rows, columns)
    s[C].reorder(io, jo, r, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    return s, [A, B, C]


@pytest.mark.parametrize(
    ("target", "factor", "became"),
    [
        (SSE, 4, "4 lanes of float32 in xmm"),
        (SSE, 8, "8 lanes of float32 in 2 xmm"),
        (AVX2, 8, "8 lanes of float32 in ymm"),
        (AVX2, 32, "32 lanes of float32 in 4 ymm"),
        (AVX512, 16, "16 lanes of float32 in zmm"),
        (AVX512, 8, "8 lanes of float32 in ymm"),
    ],
)
def test_width_and_registers_of_a_vectorized_loop(target, factor, became):
    found = report(*elementwise(lambda x: x * 2.0, factor=factor), target)
    assert found.loops[-1].became == became
    assert found.costs == ()


def test_a_kernel_without_vectors_says_why():
    found = report(*elementwise(lambda x: x * 2.0, factor=0), AVX2)
    inner = found.loops[-1]
    assert inner.became == "a loop, scalar"
    assert inner.costs == ("scalar: not vectorized, though its stores to Y are contiguous: split by 8, vectorize that",)
    assert inner.code.vectors == 0
    assert inner.code.scalar >= 2


def test_fma_is_named_where_products_and_sums_fuse_and_else_the_reason():
    args = elementwise(lambda x, y: x * y + 1.0, inputs=2)
    assert report(*args, AVX2).loops[-1].became == "8 lanes of float32 in ymm, fma"
    strict = report(*args, AVX2, precision="strict").loops[-1]
    assert strict.became == "8 lanes of float32 in ymm"
    assert strict.costs == ("products and sums are not fused: precision is strict",)
    assert report(*args, SSE).loops[-1].costs == ("products and sums are not fused: the target has no fma",)
    shared = report(*elementwise(lambda x, y: te.maximum(x * y, x * y + 1.0), inputs=2), AVX2).loops[-1]
    assert shared.costs == ("products and sums are not fused: several places read a product",)
    assert report(*elementwise(lambda x, y: (x + 1.0) * y, inputs=2), AVX2).loops[-1].costs == ()


def test_exp_has_a_vector_form():
    found = report(*elementwise(te.exp), AVX2).loops[-1]
    assert found.became == "8 lanes of float32 in ymm, fma"
    assert found.costs == ()
    assert found.code.calls == ()


def test_integer_division_has_no_vector_form():
    found = report(*elementwise(lambda x, y: x // y, dtype="int32", inputs=2), AVX2).loops[-1]
    assert "no vector form: integer division, 8 times one lane" in found.costs
    assert found.code.divisions == 8


def test_a_function_without_a_vector_form_is_called_for_each_lane():
    args = elementwise(lambda x, y: te.fma(x, y, x), dtype="float64", factor=4, inputs=2)
    found = report(*args, SSE).loops[-1]
    assert "no vector form: calls fma for each lane" in found.costs
    assert found.code.calls == ("fma",) * 4
    assert report(*args, AVX2).loops[-1].became == "4 lanes of float64 in ymm, fma"


def test_a_debug_build_has_no_vectors():
    found = report(*elementwise(lambda x: x * 2.0), AVX2, debug=True)
    assert found.loops[-1].became == "a loop"
    assert "(a debug build: it has no vectors, and keeps nothing in registers)" in str(found)
    assert all(loop.code.ymm == 0 for loop in found.code)


def test_a_masked_tail_is_vector_code_where_the_target_has_masks():
    args = elementwise(lambda x: x + 1.0, shape=(9, 61))
    for target in (AVX2, AVX512):
        found = report(*args, target)
        assert found.loops[-1].became == "8 lanes of float32 in ymm, masked tail"
        assert found.loops[-1].code.masked == 2
        assert found.costs == ()


def test_a_scalar_tail_is_named():
    n = te.var("n")
    X = te.placeholder((4, n), "int8", name="X")
    Y = te.compute((4, n), lambda i, j: X[i, j] + X[i, j], name="Y")
    s = lw.create_schedule(Y)
    s[Y].vectorize(s[Y].split(Y.op.axis[1], factor=16)[1])
    (cost,) = report(s, [X, Y], AVX2).costs
    assert cost.startswith("j_inner (Y#3): scalar tail: the target has no masked stores of int8")
    assert report(s, [X, Y], AVX512).costs == ()


@pytest.mark.parametrize(
    ("tail", "became"),
    [
        ("guard", ["8 lanes of float32 in ymm, masked tail"]),
        ("mask", ["8 lanes of float32 in ymm, masked"]),
        ("peel", ["8 lanes of float32 in ymm", "5 lanes of float32 in 2 xmm"]),
        ("shift", ["8 lanes of float32 in ymm"]),
    ],
)
def test_the_four_tails_of_a_split(tail, became):
    X = te.placeholder((4, 61), name="X")
    Y = te.compute((4, 61), lambda i, j: X[i, j] * 2.0, name="Y")
    s = lw.create_schedule(Y)
    s[Y].vectorize(s[Y].split(Y.op.axis[1], factor=8, tail=tail)[1])
    found = report(s, [X, Y], AVX2)
    assert [loop.became for loop in found.loops if loop.kind == "vectorized"] == became
    pieces = "j_inner (Y#3): 5 lanes are no power of two: they are loaded and stored in pieces"
    assert found.costs == ((pieces,) if tail == "peel" else ())


def test_values_that_do_not_change_may_be_reloaded_from_the_stack():
    found = report(*elementwise(te.exp, shape=(4, 61)), AVX2)["i1_outer"]
    assert found.costs == ("spills: 1 load from the stack in each iteration, of what does not change",)
    assert (found.code.reloaded, found.code.stored) == (1, 0)


def test_gathers_scatters_and_strides_are_named():
    X = te.placeholder((64, 64), name="X")
    I = te.placeholder((64,), "int32", name="I")

    def became(body, target=AVX2, args=(X,), axis=1):
        Y = te.compute((32, 32), body, name="Y")
        s = lw.create_schedule(Y)
        if axis == 0:
            s[Y].reorder(*reversed(Y.op.axis))
        s[Y].vectorize(s[Y].split(Y.op.axis[axis], factor=8)[1])
        return report(s, [*args, Y], target).loops[-1]

    strided = became(lambda i, j: X[i, j * 2])
    assert strided.costs == ("non-unit stride: X is read at a stride of 2, by several loads and shuffles",)
    transposed = became(lambda i, j: X[j, i])
    assert transposed.costs == ("gather: the lanes of X come at a stride of 64, one at a time",)
    picked = became(lambda i, j: X[i, te.minimum(te.maximum(te.cast(I[j], "index"), 0), 63)], AVX512, (X, I))
    assert picked.costs == ("gather: the lanes of X come from computed indices",)
    paired = became(lambda i, j: X[i, j // 2 * 4 + j % 2])
    assert paired.costs == ("shuffles: the lanes of X are put together from the vectors that have them",)
    assert became(lambda i, j: X[i, 63 - j]).costs == ()
    down = became(lambda i, j: X[i, 0], axis=0)
    assert "scatter: the lanes go to Y at a stride of 32, one at a time" in down.costs


def test_a_register_tile_is_kept_in_registers_or_spilled():
    fits = report(*matmul(4, 16), AVX2)["r"]
    assert fits.became == "a loop, register tile of 8 vectors kept in registers"
    assert fits.costs == ()
    assert fits.code.fused == 8
    assert fits.code.stack == 0
    large = report(*matmul(8, 32), AVX2)["r"]
    assert large.became == "a loop, register tile of 32 vectors spilled"
    (cost,) = large.costs
    assert cost.startswith("spills: ")
    assert cost.endswith("; its tile takes 32 vector registers, of which there are 16")
    assert large.code.stack >= 16
    assert report(*matmul(8, 32), AVX512)["r"].became == "a loop, register tile of 16 vectors kept in registers"


def test_the_other_loops_of_a_tile():
    found = report(*matmul(4, 16), AVX2)
    assert found["i_inner"].became == "written out 4 times"
    assert found["j_inner"].became == "16 lanes of float32 in 2 ymm, fma"
    assert found["j_inner_init"].became == "16 lanes of float32, no instructions of their own"
    assert found["i_outer"].became == "a loop"
    hot = [loop for loop in found.code if loop.innermost]
    assert [(loop.name, loop.tail, loop.code.fused) for loop in hot] == [("r", False, 8)]


def test_the_tail_of_a_tile_is_a_loop_of_its_own():
    A = te.placeholder((64, 64), name="A")
    B = te.placeholder((64, 61), name="B")
    r = te.reduce_axis((0, 64), name="r")
    C = te.compute((64, 61), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    _io, _jo, ii, ji = s[C].tile(*C.op.axis, 2, 16)
    s[C].reorder(r, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    found = report(s, [A, B, C], AVX2)
    assert found["j_inner"].became == "16 lanes of float32 in 2 ymm, fma, masked tail"
    assert found["r"].became.startswith("2 loops, 1 of them for the borders, register tile of 4 vectors")
    assert [(loop.name, loop.tail) for loop in found.code if loop.innermost] == [("r", False), ("r", True)]


def test_a_reduction_is_scalar_because_all_iterations_add_to_one_element():
    A = te.placeholder((64, 64), name="A")
    r = te.reduce_axis((0, 64), name="r")
    S = te.compute((64,), lambda i: te.sum(A[i, r], axis=r), name="S")
    found = report(lw.create_schedule(S), [A, S], AVX2)["r"]
    assert found.costs == (
        "scalar: all iterations add to one element in a register: rfactor it, or vectorize a loop around",
    )


def test_a_store_at_a_stride_is_scalar_because_the_contiguous_loop_is_not_innermost():
    s, args = elementwise(lambda x: x + 1.0, factor=0)
    Y = args[-1]
    s[Y].reorder(*reversed(Y.op.axis))
    (cost,) = report(s, args, AVX2).loops[-1].costs
    assert cost.startswith("scalar: its iterations store to Y at a stride of 64: let the contiguous loop be innermost")


def test_parallel_loops_are_functions_of_their_own():
    s, args = elementwise(te.exp)
    s[args[-1]].parallel(args[-1].op.axis[0])
    found = report(s, args, AVX2)
    assert found.loops[0].became == "a loop, spread over threads"
    assert {loop.function for loop in found.code} == {"main_parallel_0"}
    assert found.loops[-1].became == "8 lanes of float32 in ymm, fma"


def test_arguments_of_a_launch_and_buffers_on_the_stack_are_no_spills():
    n = te.var("n")
    X = te.placeholder((n, 64), name="X")
    P = te.compute((n, 64), lambda i, j: X[i, j] * 3.0, name="P")
    Y = te.compute((n, 64), lambda i, j: P[i, j] + P[i, 63 - j], name="Y")
    s = lw.create_schedule(Y)
    s[P].compute_at(s[Y], Y.op.axis[0])
    s[P].unroll(s[P].split(P.op.axis[1], factor=8)[0])
    s[P].vectorize(s[P].loops[-1])
    s[Y].unroll(s[Y].split(Y.op.axis[1], factor=8)[0])
    s[Y].vectorize(s[Y].loops[-1])
    found = report(s, [X, Y], AVX2)
    assert [loop.code.instructions > 32 for loop in found.code] == [True], "one loop, and both stages are written out"
    assert found.costs == ()
    s = lw.create_schedule(Y)
    outer, inner = s[Y].split(Y.op.axis[0], factor=4)
    s[Y].parallel(inner)
    assert not any("spills" in cost for cost in report(s, [X, Y], AVX2)[outer].costs)


def test_a_loop_that_only_copies_is_done_by_the_c_library():
    s, args = elementwise(lambda x: x, shape=(6, 256))
    found = report(s, args, AVX2)
    assert {loop.became for loop in found.loops} == {"done by memcpy"}
    assert found.code == ()


def test_a_loop_is_found_by_what_split_gave_by_id_or_by_name():
    X = te.placeholder((32,), name="X")
    Y = te.compute((32,), lambda i: X[i] + 1.0, name="Y")
    s = lw.create_schedule(Y)
    _, inner = s[Y].split(Y.op.axis[0], factor=8)
    s[Y].vectorize(inner)
    found = report(s, [X, Y], AVX2)
    assert found[inner] is found["Y#2"] is found["i_inner"] is found.loops[1]
    with pytest.raises(KeyError, match="main has no loop k; it has i_outer, i_inner"):
        found["k"]


def test_the_report_prints_as_the_nest_with_verdicts_and_a_table_of_machine_loops():
    s, args = elementwise(lambda x: x * 2.0, shape=(6, 61))
    text = str(report(s, args, AVX2)).splitlines()
    assert text[:4] == [
        "main for x86-64-v3: 16 vector registers of 256 bits",
        "for i0 in range(6)                     a loop",
        "    for i1_outer in range(8)           a loop",
        "        for i1_inner in vectorized(8)  8 lanes of float32 in ymm, masked tail",
    ]
    assert text[5] == "loops of the machine code"
    columns = text[6].split()
    assert columns[:2] == ["loop", "instructions"]
    assert {"ymm", "masked"} <= set(columns)
    assert not {"zmm", "gather", "fma", "calls"} & set(columns)  # no loop has any
    counts = [row.split(")")[1].split() for row in text[7:]]
    assert all(set(column) != {"."} for column in zip(*counts, strict=True))
    assert max(map(len, text)) <= 80
    assert [row.split(")")[0] for row in text[7:]] == ["i0 (main", "i1_outer (main, innermost"]


def test_of_targets_whose_assembly_is_not_read_the_report_says_what_the_loop_ir_shows():
    found = report(*elementwise(lambda x: x * 2.0, factor=4), "llvm -mtriple=aarch64-linux-gnu")
    assert "the assembly of aarch64 is not read" in str(found)
    assert found.loops[-1].became == "4 lanes of float32"
    assert found.code == ()


def test_the_report_is_on_the_schedule_as_it_was_built():
    s, args = elementwise(lambda x: x * 2.0, factor=0)
    kernel = lw.build(s, args, target=AVX2)
    s[args[-1]].vectorize(s[args[-1]].split(args[-1].op.axis[1], factor=8)[1])
    assert [loop.kind for loop in kernel.vector_report().loops] == ["serial", "serial"]


def test_a_kernel_that_was_not_built_from_a_schedule_has_no_report():
    from loopwright.runtime.kernel import Kernel

    built = lw.build(*elementwise(lambda x: x * 2.0), target="native")
    with pytest.raises(lw.LoopwrightError, match="main was not built from a schedule: nothing is known of its loops"):
        Kernel(built.func, built.code).vector_report()
