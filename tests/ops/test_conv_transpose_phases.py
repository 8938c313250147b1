"""conv_transpose.phased: its tile is a decision, and legal values give the bits of the defaults."""

import re

import numpy as np
import pytest
import windows
from implementation_tables import steps_of

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import candidates_of
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.conv.transpose import conv_transpose

TARGET = lw.resolve_target("x86-64-v3")
# x, weight, strides, padding, dilation, output padding, groups
CASES = [
    ((1, 6, 5, 7), (6, 8, 4, 4), (2, 2), (1, 1, 1, 1), (1, 1), (0, 0), 1),
    ((2, 4, 3, 5), (4, 6, 5, 3), (3, 1), (4, 0, 1, 2), (1, 2), (1, 0), 2),
    ((1, 3, 4, 4), (3, 4, 1, 2), (2, 2), (0, 0, 0, 0), (1, 1), (1, 1), 1),
    ((1, 3, 9), (3, 5, 4), (4,), (5, 2), (3,), (0,), 1),
    ((2, 3, 4, 5), (3, 4, 1, 1), (3, 2), (2, 1, 0, 0), (1, 1), (2, 1), 1),
    ((1, 4, 5, 4), (4, 3, 3, 2), (4, 2), (1, 1, 2, 0), (2, 2), (0, 0), 2),
    ((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), (1, 2, 2), (0, 1, 0) * 2, (1, 1, 1), (0, 0, 0), 1),
]


def made_call(case):
    x, w, strides, padding, dilation, extra, groups = case
    call = conv_transpose(lw.var("x", x), lw.var("w", w), strides, padding, dilation, extra, groups)
    candidates = candidates_of(call, CompileSettings(TARGET))
    return call, next(c.implementation for c in candidates if c.implementation.name == "conv_transpose.phased")


def run(made, call, arrays):
    inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, f"p{k}") for k, a in enumerate(call.args))
    computed = made.computed(call.op.name, call.attrs, inputs, call.type)
    schedule = made.scheduled(call.op.name, call.attrs, computed, outputs_of(computed), TARGET)
    assert not schedule.departures
    found = np.empty(call.type.static_shape, np.float32)
    lw.build(schedule, [*inputs, *outputs_of(computed)], target=TARGET)(*arrays, found)
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tiles_are_decisions_that_change_no_bit(case):
    call, made = made_call(case)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=a.type.static_shape).astype(np.float32) for a in call.args]
    plain = run(made, call, arrays)
    np.testing.assert_allclose(plain, windows.conv_transpose(*arrays, *case[2:]), rtol=1e-4, atol=1e-4)
    rows, vectors = made.decisions(call, TARGET)
    assert (rows.name, vectors.name) == ("rows", "vectors")
    for value in rows.legal:
        other = made.configured({"rows": value, "vectors": 1})
        np.testing.assert_array_equal(run(other, call, arrays), plain)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_page_of_the_architecture_tells_how_many_steps_the_schedule_has(case):
    call, made = made_call(case)
    least, most = steps_of(made.name)
    assert least <= len(made.schedule_alone(call, TARGET).trace) <= most, len(made.schedule_alone(call, TARGET).trace)


@pytest.mark.parametrize(
    ("window", "strides", "dilation", "phases"),
    [((1, 1), (2, 3), (1, 1), [1, 1]), ((3, 3), (2, 2), (2, 1), [1, 2]), ((2, 5), (3, 4), (1, 1), [2, 4])],
    ids=str,
)
def test_sums_are_of_the_phases_that_a_tap_reaches(window, strides, dilation, phases):
    call, made = made_call(((1, 4, 6, 6), (4, 4, *window), strides, (1, 0, 1, 0), dilation, (0, 0), 1))
    nest = str(made.schedule_alone(call, TARGET))
    (extents,) = re.findall(r"conv_transpose\.local: float32\[(.*)\] = allocate", nest)
    assert list(map(int, extents.split(", ")))[1:3] == phases


def test_what_no_tap_reaches_is_the_bias_also_beside_infinite_numbers():
    bias = lw.var("b", (3, 1, 1))
    x_of, w_of = lw.var("x", (1, 2, 4, 4)), lw.var("w", (2, 3, 1, 1))
    y = lw.nn.relu(conv_transpose(x_of, w_of, (2, 2), (0, 0, 0, 0)) + bias)
    x, w = np.full((1, 2, 4, 4), np.inf, np.float32), np.ones((2, 3, 1, 1), np.float32)
    b = np.array([1, -2, 3], np.float32).reshape(3, 1, 1)
    graph = lw.Function([x_of, w_of, bias], y)
    assert "conv_transpose.phased" in str(lw.explain(graph, TARGET))
    (found,) = lw.Engine(lw.compile(graph, TARGET))([x, w, b])
    expected = np.broadcast_to(np.maximum(b, 0), (1, 3, 7, 7)).copy()
    expected[:, :, ::2, ::2] = np.inf
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_of_the_sums_are_computed_in_vectors(case):
    x, w, strides, padding, dilation, extra, groups = case
    x_of, w_of = lw.var("x", x), lw.var("w", w)
    y = lw.nn.tanh(conv_transpose(x_of, w_of, strides, padding, dilation, extra, groups) * lw.const(np.float32(0.1)))
    graph = lw.Function([x_of, w_of], y)
    (nest,) = lw.dump(graph, "loop", target=TARGET)
    functions = [line for line in nest.text.splitlines() if "tanh(" in line]
    alone = [line for line in functions if "ramp(" not in line]
    assert len(functions) > len(alone)
    assert not alone or y.type.static_shape[-1] % TARGET.lanes("float32") == 1
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in (x, w)]
    (found,) = lw.Engine(lw.compile(graph, TARGET))(arrays)
    expected = np.tanh(windows.conv_transpose(*arrays, *case[2:]) * np.float32(0.1))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
