"""Stages in places where they cannot be computed: the error says why, and what it advises works."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


class Program:
    """``C`` is a product; ``D`` and ``E`` read it element by element, ``W`` by windows, ``S`` by rows, ``N`` both."""

    def __init__(self, *outputs):
        A, B = te.placeholder((12, 8), "int32", name="A"), te.placeholder((8, 20), "int32", name="B")
        r, k = te.reduce_axis((0, 8), name="r"), te.reduce_axis((0, 20), name="k")
        C = te.compute((12, 20), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
        D = te.compute((12, 20), lambda i, j: C[i, j] * 2, name="D")
        E = te.compute((12, 20), lambda i, j: D[i, j] + C[i, j], name="E")
        W = te.compute((12, 19), lambda i, j: C[i, j] + C[i, j + 1], name="W")
        S = te.compute((12,), lambda i: te.sum(C[i, k], axis=k), name="S")
        N = te.compute((12, 20), lambda i, j: C[i, j] - S[i], name="N")
        self.outputs = [{"D": D, "E": E, "W": W, "S": S, "N": N}[name] for name in outputs or "E"]
        self.args = [A, B, *self.outputs]
        self.s = lw.create_schedule(self.outputs)

    def tile(self):
        """The loop over columns of tiles of the product, by its id."""
        return self.s["C"].tile("C#0", "C#1", 4, 4)[1].id

    def results(self):
        rng = np.random.default_rng(3)
        arrays = [rng.integers(-9, 9, [int(e) for e in t.shape]).astype(np.int32) for t in self.args]
        lw.interpret(lw.lower(self.s, self.args))(*arrays)
        return arrays[2:]


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


def reader_outside(p):
    p.s["C"].compute_at(p.s["D"], "D#0")


def reader_outside_its_consumer(p):
    p.s["C"].compute_at(p.s["E"], "E#1")


def inside_a_vector(p):
    p.s["D"].compute_at(p.s["E"], "E#1")


def inline_a_reduction(p):
    p.s["C"].compute_inline()


def a_stage_on_the_way_is_missing(p):
    p.s["E"].reverse_compute_at(p.s["C"], "C#0")


def a_row_sum_is_missing(p):
    p.s["N"].reverse_compute_at(p.s["C"], "C#0")


def read_a_placed_stage(p):
    p.s.cache_read("C", "local", ["D"])


def write_a_placed_stage(p):
    p.s.cache_write("D", "local")


def leave_the_inputs(p):
    p.s["D"].compute_root()


def inline_around_a_stage(p):
    p.s["D"].compute_inline()


def reorder_around_a_stage(p):
    p.s["C"].reorder("C#1", "C#0")


def split_at_a_stage(p):
    p.s["C"].split("C#0", factor=5)


def fuse_at_a_stage(p):
    p.s["C"].fuse("C#0", "C#1")


def on_demand(p):
    p.s["D"].compute_at(p.s["E"], "E#0")


def after_rows(p):
    p.s["D"].reverse_compute_at(p.s["C"], "C#0")


def vectorized(p):
    p.s["E"].vectorize("E#1")


def in_its_reader(p):
    on_demand(p)
    p.s["C"].compute_at(p.s["E"], "E#0")


def a_copy_in_d(p):
    copy = p.s.cache_read("C", "local", ["D"])
    p.s[copy].compute_at(p.s["D"], "D#0")


CASES = [
    ("E", None, reader_outside, "E reads it outside that loop", "again"),
    ("E", None, reader_outside_its_consumer, "D reads it outside that loop", "again"),
    ("E", vectorized, inside_a_vector, "inside a vectorized loop", "instead"),
    ("D", None, inline_a_reduction, r"C: it is a reduction \(sum\)", "instead"),
    ("E", None, a_stage_on_the_way_is_missing, "E would read D before that is computed", "again"),
    ("N", None, a_row_sum_is_missing, "N would read S before that is computed", "again"),
    ("E", after_rows, read_a_placed_stage, "D would read C.local before that is computed", "again"),
    ("E", after_rows, write_a_placed_stage, "D would read D.local before that is computed", "again"),
    ("E", in_its_reader, leave_the_inputs, "D would read it outside that loop", "again"),
    ("E", a_copy_in_d, inline_around_a_stage, "C.local is computed in its loops", "again"),
    ("E", after_rows, reorder_around_a_stage, "whose enclosing loops would change", "again"),
    ("E", after_rows, split_at_a_stage, "D is computed at it", "again"),
    ("E", after_rows, fuse_at_a_stage, "D is computed at it", "again"),
]
"""Output, what is done first, what is refused then, why; and whether the advice makes it legal or replaces it."""


@pytest.mark.parametrize(
    ("output", "first", "act", "message", "advised"), CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_what_an_error_advises_works(output, first, act, message, advised):
    p = Program(output)
    if first is not None:
        first(p)
    before = p.s.state
    with refused(message) as caught:
        act(p)
    assert p.s.state is before
    _, advice, *_ = str(caught.value).split("\n")
    call = re.search(r's\["[^"]+"\]\.\w+\([^)]*\)', advice)
    assert call, advice
    exec(call.group(), {"s": p.s})
    if advised == "again":
        act(p)
    for found, expected in zip(p.results(), Program(output).results(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_reduction_that_goes_on_is_not_finished():
    p = Program("E")
    p.s["C"].reorder("C#2", "C#0", "C#1")
    with refused("C is not finished there: its reduction goes on in loop r") as caught:
        p.s["D"].reverse_compute_at(p.s["C"], "C#0")
    assert "for r in range(8):  # <-- here" in str(caught.value)
    p.s["C"].reorder("C#0", "C#1", "C#2")  # as advised
    p.s["D"].reverse_compute_at(p.s["C"], "C#0")


@pytest.mark.parametrize(("output", "read"), [("W", "C[i, j + 1]"), ("S", "C[i, k]")])
def test_windows_and_reductions_need_dimensions_that_are_whole(output, read):
    p = Program(output)
    tile = p.tile()
    with refused("reads C|each iteration finishes a part of dimension 1") as caught:
        p.s[output].reverse_compute_at(p.s["C"], tile)
    assert read in str(caught.value)
    p.s[output].reverse_compute_at(p.s["C"], p.s["C"].loops[0])  # does not run along that dimension
    np.testing.assert_array_equal(p.results()[0], Program(output).results()[0])


def test_one_element_of_each_place_only():
    A = te.placeholder((8, 8), name="A")
    P = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="P")
    readers = {
        "transposed too": te.compute((8, 8), lambda i, j: P[i, j] + P[j, i], name="Q"),
        "diagonal": te.compute((8,), lambda i: P[i, i], name="Q"),
        "gaps": te.compute((4, 4), lambda i, j: P[i * 2, j], name="Q"),
        "backwards": te.compute((8, 8), lambda i, j: P[7 - i, j], name="Q"),
        "one row": te.compute((8,), lambda j: P[3, j], name="Q"),
        "padded": te.compute((9, 8), lambda i, j: te.if_then_else(i < 8, P[i, j], 0.0), name="Q"),
    }
    for Q in readers.values():
        s = lw.create_schedule(Q)
        s[P].tile(*P.op.axis, 4, 4)
        with refused("finished in several iterations|finishes a part of dimension|more than the iterations finish"):
            s[Q].reverse_compute_at(s[P], s[P].loops[1])


def test_tiles_with_gaps_are_refused():
    p = Program("D")
    outer, inner = p.s["C"].split("C#0", factor=4)
    p.s["C"].reorder(inner, outer)
    with refused("do not lie side by side along i"):
        p.s["D"].reverse_compute_at(p.s["C"], inner)
    p.s["C"].reorder(outer, inner)
    p.s["D"].reverse_compute_at(p.s["C"], inner)


def test_what_a_tile_reads_besides_is_ready_before_it():
    p = Program("N")
    p.s["S"].reverse_compute_at(p.s["C"], "C#0")
    with refused("N needs more of S than an iteration could give it"):
        p.s["N"].reverse_compute_at(p.s["C"], "C#1")
    p.s["N"].reverse_compute_at(p.s["C"], "C#0")
    with refused(r"C: it is a reduction"):
        p.s["C"].compute_inline()
    with refused("would read S before that is computed"):
        p.s["S"].compute_root()


def test_a_stage_on_demand_holds_no_stage_after_it():
    p = Program("E")
    with refused("computed in loops of E"):
        p.s["D"].compute_at(p.s["E"], "E#0")
        p.s["E"].reverse_compute_at(p.s["D"], "D#0")
    p = Program("N")
    p.s["S"].compute_at(p.s["N"], "N#0")
    p.s["C"].compute_at(p.s["N"], "N#0")
    with refused("S cannot be computed after a loop of C"):
        p.s["S"].reverse_compute_at(p.s["C"], "C#0")


def test_placement_after_a_wrong_stage():
    p = Program("E", "S")
    with refused("S reads nothing that is computed in that loop of D") as caught:
        p.s["S"].reverse_compute_at(p.s["D"], "D#0")
    assert "Name a loop of a stage that S reads: C." in str(caught.value)
    with refused("at a loop of its own"):
        p.s["S"].reverse_compute_at(p.s["S"], "S#0")
    with refused("A is an input"):
        p.s["A"].reverse_compute_at(p.s["C"], "C#0")


def test_later_steps_keep_what_a_placement_needs():
    p = Program("E")
    tile = p.tile()
    outer = p.s["C"].loops[0]
    p.s["D"].reverse_compute_at(p.s["C"], tile)
    for act in (
        lambda: p.s["C"].reorder("C#2", outer),
        lambda: p.s["C"].split(tile, factor=2),
        lambda: p.s["C"].fuse(outer, tile),
        lambda: p.s["C"].vectorize(tile),
        lambda: p.s["C"].vectorize(outer),
        lambda: p.s["C"].compute_at(p.s["D"], "D#0"),
        lambda: p.s.cache_write("C", "local"),
        lambda: p.s.rfactor("C", "C#2"),
    ):
        with refused(r"\bD\b|it is scheduled already"):
            act()


def test_a_loop_that_becomes_a_part_of_a_dimension_is_refused():
    """With all rows in one iteration rows may be read with gaps; with a part of them they may not."""
    A = te.placeholder((5,), name="A")
    P = te.compute((5,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((3,), lambda i: P[i * 2], name="Q")
    s = lw.create_schedule(Q)
    outer, middle = s[P].split(P.op.axis[0], factor=8)
    s[P].split(middle, nparts=1)
    s[Q].reverse_compute_at(s[P], s[P].loops[1])
    with refused("cannot split loop"):
        s[P].split(outer, factor=2)


@pytest.mark.parametrize(
    ("first", "reason", "back"),
    [
        (lambda s: s["D"].split("D#0", factor=2), "its loops are split", None),
        (lambda s: s["D"].vectorize("D#1"), "its loops are annotated", None),
        (lambda s: s["D"].transform_layout("lambda i, j: (j, i)"), "its memory has a layout", None),
        (lambda s: s["D"].compute_inline(), "it is inlined", "D"),
        (lambda s: s["E"].reverse_compute_at(s["D"], "D#0"), "stages are computed in its loops", "E"),
    ],
    ids=["split", "annotated", "laid out", "inlined", "attached"],
)
def test_cache_write_says_what_stands_in_its_way(first, reason, back):
    p = Program("E")
    first(p.s)
    with refused(f"cannot cache_write D: it is scheduled already: {reason}") as caught:
        p.s.cache_write("D", "local")
    if back is None:
        assert "Call cache_write first" in str(caught.value)
    else:
        assert f's["{back}"].compute_root()' in str(caught.value)
        p.s[back].compute_root()
        p.s.cache_write("D", "local")


def test_no_place_is_advised_after_a_stage_on_demand():
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((8,), lambda i: P[i] + 1.0, name="Q")
    R = te.compute((8,), lambda i: Q[i] * 2.0, name="R")
    Z = te.compute((8,), lambda i: P[i] * 3.0, name="Z")
    s = lw.create_schedule([R, Z])
    s[Q].compute_at(s[R], R.op.axis[0])
    with refused("Z reads it outside that loop") as caught:
        s[P].compute_at(s[Q], Q.op.axis[0])
    assert "reverse_compute_at" not in str(caught.value)
