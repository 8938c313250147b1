"""Plans of memory for shapes that follow each other: those that are made in little time say the same as others."""

import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact import repeated_plan
from loopwright.artifact.extent_program import ExtentProgram
from loopwright.artifact.extents import Formula, evaluate
from loopwright.artifact.memory_plan import plan_memory
from loopwright.runtime.dimensions import make_plan
from loopwright.runtime.plans import Plans


@pytest.fixture(scope="module")
def chain():
    """Values of several sizes that live in turns, two of which lie in another one."""
    n, m = te.var("n"), te.var("m")
    x, y = lw.var("x", (n, 8)), lw.var("y", (m, 8))
    scores = lw.nn.softmax(lw.nn.matmul(x, lw.nn.transpose(y, (1, 0))))
    mixed = lw.nn.concatenate([lw.nn.cumsum(lw.nn.matmul(scores, y), 0), lw.nn.cumsum(x, 1)], 0)
    total = lw.nn.matmul(lw.nn.softmax(mixed), lw.const(np.ones((8, 3), np.float32)))
    return lw.compile(lw.Function([x, y], lw.op.Tuple((total, scores))), jobs=1)


def shapes(n, m):
    return (n, 8), (m, 8)


def check(model, plan, given):
    """A plan says what the exact one says, and keeps values apart that live together."""
    exact = make_plan(model, given)
    assert (plan.dims, plan.derived, plan.outputs) == (exact.dims, exact.derived, exact.outputs)
    stage, dims = model.first_stage, dict(zip(model.dims, plan.dims, strict=True))
    offsets = dict(zip([value.slot for value in stage.intermediates], plan.offsets, strict=False))
    for one in stage.intermediates:
        end = offsets[one.slot] + evaluate(one.size, dims)
        assert end <= plan.arena_bytes
        for other in stage.intermediates:
            if other is not one and one.first <= other.last and other.first <= one.last:
                begin = offsets[other.slot]
                assert end <= begin or begin + evaluate(other.size, dims) <= offsets[one.slot]
    begins = plan.offsets[len(stage.intermediates) :]
    assert [*begins] == [offsets[part.base] + evaluate(part.begin, dims) for part in stage.slices]
    return exact


def test_plans_for_any_order_of_shapes_keep_values_apart(chain):
    rng, kept = random.Random(3), Plans(chain.model)
    assert len(chain.model.first_stage.intermediates) > 3
    for _ in range(60):
        n, m = rng.choice([0, 1, 3, 40, 41, 44, 700]), rng.choice([1, 2, 50, 300, 301])
        plan = kept.plan(shapes(n, m))
        exact = check(chain.model, plan, shapes(n, m))
        assert plan.arena_bytes <= exact.arena_bytes * 1.1


def test_steps_of_a_decoder_seldom_place_values_anew(chain, monkeypatch):
    placed = []
    monkeypatch.setattr(repeated_plan, "plan_memory", lambda values: placed.append(1) or plan_memory(values))
    kept = Plans(chain.model)
    for length in range(1, 600):
        check(chain.model, kept.plan(shapes(1, length)), shapes(1, length))
    assert 1 <= len(placed) < 30


def test_no_arena_is_larger_than_that_of_the_largest_values():
    n = lw.dim("n", max=50)
    x = lw.var("x", (te.var("n"), 8))
    body = lw.nn.softmax(lw.nn.cumsum(lw.nn.softmax(lw.nn.cumsum(x, 0)), 0))
    model = lw.compile(lw.Function([x], body), shapes={"x": (n, 8)}, jobs=1).model
    kept, largest = Plans(model), make_plan(model, [(50, 8)])
    for length in range(1, 51):
        plan = kept.plan(((length, 8),))
        check(model, plan, [(length, 8)])
        assert plan.arena_bytes <= largest.arena_bytes


def test_shapes_that_contradict_each_other_are_told_of_in_later_runs_too():
    n = te.var("n")
    a, b = lw.var("a", (n, 4)), lw.var("b", (n, 4))
    engine = lw.Engine(lw.compile(lw.Function([a, b], lw.nn.cumsum(lw.nn.add(a, b), 0)), jobs=1))
    for length in (2, 3, 4):
        engine([np.ones((length, 4), np.float32)] * 2)
        with pytest.raises(lw.RuntimeArgumentError, match=r"input b: .* should have extent 5 in dimension 0, found 9"):
            engine([np.ones((5, 4), np.float32), np.ones((9, 4), np.float32)])


def test_a_program_has_the_numbers_of_all_extents():
    half = Formula("//", Formula("+", "n", 1), "m")
    extents = ["m", 7, half, Formula("*", half, half), Formula("max", Formula("-", 0, half), -3), half, 1]
    program = ExtentProgram(extents, ("n", "m"))
    for n, m in ((0, 1), (9, 2), (-4, 3)):
        assert program((n, m)) == [evaluate(extent, {"n": n, "m": m}) for extent in extents]
    with pytest.raises(ZeroDivisionError):
        program((1, 0))
