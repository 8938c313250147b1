"""How wide the default schedule's vectors are: of costly elements several are computed side by side."""

import numpy as np
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


@pytest.mark.parametrize(
    ("kind", "computed", "wanted"), [("float32", "float64", 32), ("int8", "float32", 64), ("float16", "float16", 64)]
)
def test_vectors_are_counted_in_the_type_that_functions_are_computed_in(kind, computed, wanted):
    """Four registers of these, though the results would fill fewer; float16 is computed in float32."""
    x = te.placeholder((1000,), kind, name="x")
    y = te.compute(x.shape, lambda i: te.cast(te.cos(te.cast(x[i], computed)), kind), name="y")
    trace = default_schedule([y], lw.resolve_target("x86-64-v4")).trace
    assert [step.factor for step in trace if isinstance(step, Split)] == [wanted]


def test_no_more_than_a_short_loop_fills():
    assert [width(te.exp, extent, "x86-64-v4") for extent in (20, 40, 70)] == [16, 32, 64]


@pytest.mark.parametrize("ends", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("long", [83, None], ids=["known", "open"])
def test_axes_of_one_element_behind_the_last_long_one_do_not_keep_it_from_vectors(ends, long):
    """Rows of one tensor behind those of another: 19 columns, and all others."""
    columns = te.var("n") if long is None else long
    a, b = te.placeholder((4, 19, *ends), name="a"), te.placeholder((4, columns - 19, *ends), name="b")

    def joined(i, j, *rest):
        return te.if_then_else(j < 19, a[(i, j, *rest)], b[(i, j - 19, *rest)])

    y = te.compute((4, columns, *ends), joined, name="y")
    schedule = default_schedule([y], lw.resolve_target("x86-64-v3"))
    (split,) = (step for step in schedule.trace if isinstance(step, Split))
    assert split.factor == 8
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(4, n, *ends)).astype(np.float32) for n in (19, 64))
    found = np.empty((4, 83, *ends), np.float32)
    lw.build(schedule, [a, b, y], target="x86-64-v3")(left, right, found)
    np.testing.assert_array_equal(found, np.concatenate([left, right], 1))
