"""What convolutions decide by name: legal values compile, and give the bits that the defaults give."""

from dataclasses import replace

import numpy as np
import pytest
import windows
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from implementation_tables import steps_of

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import candidates_of
from loopwright.compiler.settings import CompileSettings
from loopwright.ir.constants import const_int
from loopwright.ir.expr import Load, Ramp
from loopwright.ir.stmt import Store
from loopwright.ir.visit import walk
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.conv.conv import conv

TARGET = lw.resolve_target("x86-64-v3")
SIZES = "blocks columns rows chunk"
VECTORS = "blocks columns chunk ahead channels_ahead"
# x, weight, the layouts of x, the weight and the result; strides, padding, groups; the implementation, its decisions
CASES = [
    ((1, 6, 7, 5), (3, 3, 5, 20), "NHWC HWIO NHWC", 1, 1, 1, "conv.channels_last", "rows vectors pack"),
    ((2, 5, 7, 9), (21, 9, 1, 1), "NHWC OIHW NHWC", 1, 0, 1, "conv.channels_last", "rows vectors pack"),
    ((1, 6, 5, 4), (2, 2, 2, 64), "NHWC HWIO NHWC", 1, 0, 2, "conv.channels_last", "rows vectors pack"),
    ((6, 5, 3, 18), (2, 2, 3, 6), "HWCN HWIO HWCN", 1, 1, 1, "conv.batch_last", "rows vectors"),
    ((6, 5, 4, 16), (2, 2, 2, 6), "HWCN HWIO HWCN", 2, 0, 2, "conv.batch_last", "rows vectors"),
    ((1, 5, 6, 7), (12, 5, 1, 1), "NCHW OIHW NCHW", 1, 0, 1, "conv.pointwise", "rows vectors pack"),
    ((1, 4, 9, 7), (12, 2, 3, 3), "NCHW OIHW NCHW", 2, 1, 2, "conv.shifted", "rows vectors"),
    ((1, 6, 6, 9), (3, 6, 1, 1, 4), "NCHW OIHW4o NCHW", 2, 0, 1, "conv.pointwise_packed", "vectors chunk share pack"),
    ((1, 2, 9, 7, 8), (4, 2, 3, 3, 8, 8), "NCHW8c OIHW8i8o NCHW8c", 1, 1, 1, "conv.blocked", SIZES),
    ((1, 3, 6, 7, 8), (2, 3, 1, 1, 8, 16), "NCHW8c OIHW8i16o NCHW8c", 1, 0, 1, "conv.blocked", SIZES),
    ((1, 2, 9, 13, 8), (2, 1, 3, 3, 8), "NCHW8c OIHW8o NCHW8c", 1, 1, 16, "conv.blocked_depthwise", SIZES),
    ((1, 3, 9, 11), (2, 3, 3, 3, 16), "NCHW OIHW16o NCHW", 1, 1, 1, "conv.filter_vectors", VECTORS),
    ((2, 5, 7, 6), (3, 5, 1, 1, 8), "NCHW OIHW8o NCHW", 1, 0, 1, "conv.filter_vectors", VECTORS),
    ((2, 4, 1, 17), (2, 4, 1, 3, 16), "NCHW OIHW16o NCHW", 1, 0, 1, "conv.filter_vectors", VECTORS),
    ((1, 5, 1, 61), (2, 5, 1, 3, 16), "NCHW OIHW16o NCHW", 1, 0, 1, "conv.filter_vectors", VECTORS),
    ((1, 6, 9, 13), (6, 1, 3, 3), "NCHW OIHW NCHW", 1, 1, 6, "conv.depthwise", "by_columns rows copy"),
    ((1, 4, 17, 33), (8, 1, 5, 5), "NCHW OIHW NCHW", 2, 2, 4, "conv.depthwise", "by_columns rows copy"),
    ((1, 3, 11, 9), (3, 1, 7, 7), "NCHW OIHW NCHW", 1, 3, 3, "conv.depthwise", "by_columns rows copy"),
    ((1, 6, 9, 24), (3, 3, 1, 24), "NHWC HWIO NHWC", 1, 1, 24, "conv.depthwise_channels_last", "columns"),
]  # fmt: skip


def made_call(case):
    x, w, layouts, strides, padding, groups, name, names = case
    data, kernel, out = layouts.split()
    named = {"data_layout": data, "kernel_layout": kernel, "out_layout": out}
    call = conv(lw.var("x", x), lw.var("w", w), strides, padding, groups=groups, **named)
    made = next(c.implementation for c in candidates_of(call, CompileSettings(TARGET)) if c.implementation.name == name)
    return call, made, names.split()


def run(made, call, arrays):
    """The convolution by the schedule of an implementation, with a relu fused behind it."""
    inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, f"p{k}") for k, a in enumerate(call.args))
    computed = made.computed(call.op.name, call.attrs, inputs, call.type)
    (sums,) = outputs_of(computed)
    result = te.compute(sums.shape, lambda *i: te.maximum(sums[i], 0.0), name="rectified")
    schedule = made.scheduled(call.op.name, call.attrs, computed, (result,), TARGET)
    assert not schedule.departures
    found = np.empty(call.type.static_shape, np.float32)
    lw.build(schedule, [*inputs, result], target=TARGET)(*arrays, found)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[6]} {case[2]} /{case[3]} g{case[5]}")
@settings(max_examples=1, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_values_on_a_random_walk_give_the_bits_of_the_defaults(case, data):
    call, made, names = made_call(case)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=a.type.static_shape).astype(np.float32) for a in call.args]
    plain = run(made, call, arrays)
    _, _, layouts, strides, padding, groups, *_ = case
    wanted = windows.conv_in(*arrays, (strides,) * 2, (padding,) * 4, (1, 1), groups, layouts.split())
    np.testing.assert_allclose(plain, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)
    decided, reordered = {}, False
    while (rest := [d for d in made.decisions(call, TARGET, decided) if d.name not in decided]) != []:
        decided[rest[0].name] = data.draw(st.sampled_from(rest[0].legal))
        reordered |= rest[0].reorders_sum and decided[rest[0].name] != rest[0].default
    assert list(decided) == names
    found = run(made.configured(decided), call, arrays)
    if reordered:
        np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4, err_msg=str(decided))
    else:
        np.testing.assert_array_equal(found, plain, err_msg=str(decided))


def test_only_the_order_of_a_window_changes_the_order_of_a_sum():
    for case in CASES:
        call, made, names = made_call(case)
        marked = {d.name for d in made.decisions(call, TARGET) if d.reorders_sum}
        assert marked == {"by_columns"} & set(names), made.name


def test_tiles_of_groups_divide_what_a_group_has():
    call, made, _ = made_call(CASES[2])
    assert {d.name: d.legal for d in made.decisions(call, TARGET, {"rows": 1})}["vectors"] == (1, 2, 4)
    call, made, _ = made_call(CASES[4])
    assert {d.name: d.legal for d in made.decisions(call, TARGET)}["rows"] == (1, 3)


@pytest.mark.parametrize(("case", "squares"), [(11, 13), (13, 2)])
def test_no_more_squares_are_transposed_than_the_result_has(case, squares):
    """99 positions are 13 squares of 8, and a row of 15 is two: rows and squares end together at 104 and at 120."""
    call, made, _ = made_call(CASES[case])
    chunk = next(d for d in made.decisions(call, TARGET) if d.name == "chunk")
    assert max(chunk.legal) == 8 * squares


def test_tiles_of_a_row_that_is_shared_out_end_where_its_pieces_do():
    """59 positions are shared out in pieces of 16. Tiles of 6, which a whole row would have, would not fill these."""
    call, made, _ = made_call(CASES[14])
    defaults = {d.name: d.default for d in made.decisions(call, TARGET)}
    assert (defaults["chunk"], defaults["columns"]) == (16, 4)
    call, made, _ = made_call(((1, 5, 1, 4000), *CASES[14][1:]))
    assert next(d.default for d in made.decisions(call, TARGET) if d.name == "columns") == 6


def depthwise(height, width, window, stride):
    """A depthwise convolution of two channels, without padding."""
    x, w = (1, 2, height, width), (2, 1, window, window)
    return made_call((x, w, "NCHW OIHW NCHW", stride, 0, 2, "conv.depthwise", ""))[:2]


def nest(call, made, target):
    """The loop nest of an implementation's schedule."""
    inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, f"p{k}") for k, a in enumerate(call.args))
    computed = made.computed(call.op.name, call.attrs, inputs, call.type)
    outputs = outputs_of(computed)
    schedule = made.scheduled(call.op.name, call.attrs, computed, outputs, target)
    return lw.lower(schedule, [*inputs, *outputs], target=target)


@pytest.mark.parametrize("stride", [2, 3])
def test_taps_of_windows_that_move_by_several_elements_read_neighbours(stride):
    """Positions that far apart lie side by side in the copy: vectors with gaps are read of x alone."""
    func = nest(*depthwise(40, 70, 5, stride), TARGET)
    loads = [e for e in walk(func.body) if isinstance(e, Load) and isinstance(e.indices[0], Ramp)]
    steps = {load.buffer.name: set() for load in loads}
    for load in loads:
        steps[load.buffer.name].add(const_int(load.indices[0].stride))
    assert steps.pop("p0") == {stride}
    assert set().union(*steps.values()) == {1}


@pytest.mark.parametrize(("height", "rows"), [(22, 8), (19, 7), (28, 7), (32, 8), (6, 6)])
def test_high_windows_have_tiles_of_many_rows(height, rows):
    """22 rows of results are three tiles of 8, the last of which has two to spare, not eleven of 2."""
    call, made = depthwise(height + 6, 38, 7, 1)
    assert next(d.default for d in made.decisions(call, TARGET) if d.name == "rows") == rows


@pytest.mark.parametrize(("width", "units", "lanes"), [(22, 1, 8), (26, 1, 16), (22, 2, 16), (16, 1, 16)])
def test_halves_of_vectors_serve_where_they_take_half_the_time_and_leave_fewer_lanes_empty(width, units, lanes):
    target = replace(lw.resolve_target("x86-64-v4"), fma_per_cycle=units)
    call = conv(lw.var("x", (1, 2, 9, width + 4)), lw.var("w", (2, 1, 5, 5)), groups=2)
    found = (c.implementation for c in candidates_of(call, CompileSettings(target)))
    func = nest(call, next(made for made in found if made.name == "conv.depthwise"), target)
    assert {e.value.dtype.lanes for e in walk(func.body) if isinstance(e, Store)} == {lanes}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[6]} {case[2]} /{case[3]} g{case[5]}")
def test_the_page_of_the_architecture_tells_how_many_steps_a_schedule_has(case):
    call, made, _ = made_call(case)
    least, most = steps_of(made.name)
    assert least <= len(made.schedule_alone(call, TARGET).trace) <= most
