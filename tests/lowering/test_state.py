"""A state of a schedule shares with the next one what a step does not change, and nothing else."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.nest.bodies import who_reads
from loopwright.lowering.nest.realize import realize
from loopwright.lowering.nest.regions import infer


@pytest.fixture
def chain():
    A = te.placeholder((64, 64), "float32", name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((64, 64), lambda i, j: B[i, j] * 2.0, name="C")
    return lw.create_schedule(C), A, B, C


def test_a_state_answers_once(chain):
    state = chain[0].state
    assert infer(state) is infer(state)
    assert realize(state) is realize(state)


@pytest.mark.parametrize("step", ["vectorize", "unroll", "parallel", "prefetch", "annotate"])
def test_bounds_stay_where_only_kinds_of_loops_or_hints_change(chain, step):
    s, A, B, _ = chain
    before = s.state
    i, j = s[B].op.axis
    calls = {
        "vectorize": lambda: s[B].vectorize(j),
        "unroll": lambda: s[B].unroll(j),
        "parallel": lambda: s[B].parallel(i),
        "prefetch": lambda: s[B].prefetch(A, i, 2),
        "annotate": lambda: s[B].annotate(i, "partition", False),
    }
    known = infer(before)
    calls[step]()
    assert s.state is not before
    assert infer(s.state) is known
    assert realize(s.state) is not realize(before)


def test_bounds_are_inferred_anew_where_loops_or_places_change(chain):
    s, _, B, C = chain
    known, reads = infer(s.state), who_reads(s.state)
    io, _ = s[C].split(s[C].op.axis[0], factor=8)
    split = infer(s.state)
    assert split is not known
    s[B].compute_at(s[C], io)
    assert infer(s.state) is not split
    assert str(infer(s.state).regions["B"].extents[0]) == "8"
    assert who_reads(s.state) is reads
    s[B].compute_inline()
    assert who_reads(s.state) != reads
