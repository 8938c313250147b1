"""Mistakes in what other authors write for an operator: relation, strategy, compute, schedule, and rules."""

import logging

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ops.definition import registry
from loopwright.ops.definition.registry import OpPattern, register_op
from loopwright.ops.definition.strategy import OpStrategy, register_compute, register_strategy

X = lw.var("x", (4, 8))
TARGET = "x86-64-v3"


@pytest.fixture(autouse=True)
def own_operators(monkeypatch):
    """A test's operators are gone behind it: other tests go through all that there are."""
    monkeypatch.setattr(registry, "_ops", dict(registry._ops))


def first_type(types, attrs):
    return types[0]


def twice(attrs, inputs, result):
    (x,) = inputs
    return te.compute(x.shape, lambda i, j: x[i, j] * 2.0, name="twice")


def fails(*args):
    return list(args)[99]


def compiled(call, **options):
    return lw.compile(lw.Function([X], lw.nn.relu(call)), target=TARGET, jobs=1, **options)


@pytest.mark.parametrize("given", [None, 3, "float32", (4, 8), lw.var("y", (2,)), [X.type]])
def test_a_relation_that_gives_no_type(given, request):
    op = register_op(f"broken.{request.node.name}", "", [("x", "")], lambda types, attrs: given, OpPattern.OPAQUE)
    with pytest.raises(
        lw.TypeInferenceError, match=r"broken.*\(x: float32\[4, 8\]\): the type relation .* should give a"
    ):
        op(X)


def test_a_relation_that_fails():
    op = register_op("broken.relation", "", [("x", "")], fails, OpPattern.OPAQUE)
    with pytest.raises(
        lw.TypeInferenceError, match=r"broken\.relation\(x: .*fails raised IndexError: list index"
    ) as info:
        op(X)
    assert isinstance(info.value.__cause__, IndexError)


@pytest.mark.parametrize("pattern", [OpPattern.ELEMENTWISE, OpPattern.OPAQUE])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_compute_that_fails(pattern, jobs):
    op = register_op(f"broken.compute_{pattern.name}_{jobs}", "", [("x", "")], first_type, pattern)
    register_compute(op, fails)
    function = lw.Function([X], lw.nn.relu(lw.nn.softmax(op(X))))
    with pytest.raises(
        lw.SelectionError, match=rf"the compute {op.name}\.generic of {op.name} raised IndexError: list"
    ):
        lw.compile(function, target=TARGET, jobs=jobs)


def test_a_compute_that_is_refused_by_te_names_the_operator():
    op = register_op("broken.bounds", "", [("x", "")], first_type, OpPattern.OPAQUE)
    register_compute(op, lambda attrs, inputs, result: te.compute(result.shape, lambda i, j: inputs[0][i, j + 1]))
    with pytest.raises(lw.ExpressionError) as info:
        compiled(op(X))
    assert info.value.__notes__ == ["(in the compute broken.bounds.generic of broken.bounds)"]


@pytest.mark.parametrize("given", [None, 3, [], (None,)])
def test_a_compute_that_gives_no_tensors(given, request):
    op = register_op(f"broken.{request.node.name}", "", [("x", "")], first_type, OpPattern.OPAQUE)
    register_compute(op, lambda attrs, inputs, result: given)
    with pytest.raises(lw.SelectionError, match=r"broken.* should compute float32\[4, 8\], but it gives"):
        compiled(op(X))


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        (fails, "raised IndexError: list index out of range"),
        (lambda *args: None, "should give what create_schedule gives, but it gives None"),
    ],
)
def test_a_schedule_that_fails_is_not_passed_over(schedule, found, caplog):
    op = register_op(f"broken.schedule_{schedule.__name__}", "", [("x", "")], first_type, OpPattern.OPAQUE)

    def strategy(attrs, inputs, result, target):
        made = OpStrategy()
        made.add_implementation(twice, schedule, "broken.fast", plevel=20)
        made.add_implementation(twice, lambda a, anchor, outputs, t: lw.create_schedule(list(outputs)), "broken.slow")
        return made

    register_strategy(op, strategy)
    with caplog.at_level(logging.WARNING), pytest.raises(lw.SelectionError) as info:
        compiled(op(X))
    assert str(info.value) == f"the schedule of broken.fast of {op.name} {found}"


def test_a_strategy_that_fails():
    op = register_op("broken.strategy", "", [("x", "")], first_type, OpPattern.OPAQUE)
    register_strategy(op, fails)
    for ask in (compiled, lambda call: lw.explain(call, target=TARGET)):
        with pytest.raises(
            lw.SelectionError, match=r"the strategy .*fails of broken\.strategy raised IndexError"
        ) as info:
            ask(op(X))
        assert isinstance(info.value.__cause__, IndexError)


def test_rules_that_fail():
    for name in ("layout", "memory", "row", "extent"):
        op = register_op(f"broken.{name}", "", [("x", "")], first_type, OpPattern.OPAQUE, **{f"{name}_rule": fails})
        register_compute(op, twice)
        with pytest.raises(lw.ModelError, match=rf"the {name} rule of broken\.{name} raised IndexError: list index"):
            compiled(lw.nn.add(op(lw.nn.softmax(X)), lw.const(np.ones((4, 8), np.float32))))
