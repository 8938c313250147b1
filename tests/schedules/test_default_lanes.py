"""How wide the default schedule's vectors are: of costly elements several are computed side by side."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.primitives import Split
from loopwright.schedules.default_schedule import default_schedule


def width(function, extent, target):
    """The lanes of ``x + function(x)``, where the function is a stage of its own, which is inlined."""
    x = te.placeholder((extent,), name="x")
    y = te.compute(x.shape, lambda i: function(x[i]), name="y")
    z = te.compute(x.shape, lambda i: x[i] + y[i], name="z")
    (split,) = (step for step in default_schedule([z], lw.resolve_target(target)).trace if isinstance(step, Split))
    return split.factor


@pytest.mark.parametrize(
    ("target", "one", "several"), [("x86-64-v2", 4, 8), ("x86-64-v3", 8, 16), ("x86-64-v4", 16, 64)]
)
def test_costly_elements_take_as_many_vectors_as_registers_hold(target, one, several):
    assert width(te.sigmoid, 1000, target) == several
    assert width(lambda x: x * 2, 1000, target) == one


def test_no_more_than_a_short_loop_fills():
    assert [width(te.exp, extent, "x86-64-v4") for extent in (20, 40, 70)] == [16, 32, 64]
