"""Layout planning: what is chosen on chains and branches, that costs are honoured, that values stay the same."""

import itertools
import logging
from dataclasses import dataclass, replace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.layout.layout_planning import plan_layouts
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Call, Constant, Tuple, Var, tensor_type
from loopwright.graph.layout import Layout
from loopwright.graph.node import tensor_of
from loopwright.graph.visit import post_order
from loopwright.ir.constants import const_int
from loopwright.ops.definition.attrs import Attrs, attr
from loopwright.ops.definition.layout_rule import LayoutCandidate, Packed, ValueLayout
from loopwright.ops.definition.registry import Argument, Op, OpPattern
from loopwright.ops.definition.strategy import OpStrategy, register_strategy, schedule_default
from loopwright.ops.families.resample import resample

TARGET = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3")
nn = lw.nn


def weight(*shape):
    values = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    return lw.const(values / np.sqrt(np.prod(shape[1:])).astype(np.float32))


def conv(x, filters, window=5, **options):
    """Of a window for which there is no other way than ``nn.conv2d``."""
    channels = tensor_of(x).shape[1]
    return nn.conv2d(x, weight(filters, int(channels), window, window), padding=window // 2, **options)


def calls(function, name=None):
    found = [node for node in post_order(function.body) if isinstance(node, Call)]
    return [call for call in found if name in (None, call.op.name)]


def out_layouts(function):
    return [call.attrs.out_layout or call.attrs.data_layout for call in calls(function, "nn.conv2d")]


def image(channels=3, extent=28):
    """Of channels that make no block: the first convolution reads it as it is."""
    return lw.var("x", (1, channels, extent, extent))


def test_pixels_made_of_channels_and_parts_of_rows_stay_in_blocks():
    x = image()
    y = nn.strided_slice(nn.depth_to_space(conv(x, 64), 2), [1], [20], [2])
    planned = plan_layouts(lw.Function([x], conv(y, 32)), CompileSettings(TARGET)).function
    assert out_layouts(planned) == ["NCHW8c", "NCHW8c"]
    assert [call.attrs.layout for call in calls(planned, "nn.depth_to_space")] == ["NCHW8c"]
    assert len(calls(planned, "layout_transform")) == 1


def test_a_chain_is_blocked_and_turned_back_once():
    x = image()
    y = nn.relu(nn.add(conv(x, 64), weight(64, 1, 1)))
    f = lw.Function([x], conv(y, 32))
    planned = plan_layouts(f, CompileSettings(TARGET)).function
    assert out_layouts(planned) == ["NCHW8c", "NCHW8c"]
    (transform,) = calls(planned, "layout_transform")
    assert transform is planned.body
    assert planned.body.type is f.body.type


def test_channels_that_make_blocks_are_turned_before_a_convolution_of_many():
    planned = plan_layouts(lw.Function([x := image(64)], conv(x, 64)), CompileSettings(TARGET)).function
    assert [call.attrs.data_layout for call in calls(planned, "nn.conv2d")] == ["NCHW8c"]
    assert len(calls(planned, "layout_transform")) == 2


@pytest.mark.parametrize(("extent", "between"), [(6, "NCHW16c"), (27, "NCHW")])
def test_few_filters_are_blocked_over_near_planes_which_are_read_as_they_are(extent, between):
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=cascadelake")
    x = image(512, extent)
    planned = plan_layouts(lw.Function([x], conv(nn.relu(conv(x, 32, window=1)), 32)), CompileSettings(target)).function
    assert [call.attrs.data_layout for call in calls(planned, "nn.conv2d")] == ["NCHW", between]
    assert out_layouts(planned) == [between, between]


@pytest.mark.parametrize(
    ("window", "stride", "extent", "halves", "layout"),
    [
        (7, 2, 7, False, "NCHW16c"), (5, 2, 7, False, "NCHW16c"), (7, 2, 14, False, "NCHW16c"),
        (7, 2, 14, True, "NCHW"), (5, 2, 14, False, "NCHW"), (3, 2, 7, False, "NCHW"), (5, 1, 28, False, "NCHW"),
    ],
)  # fmt: skip
def test_short_rows_of_large_windows_are_blocked_where_they_leave_lanes_idle(window, stride, extent, halves, layout):
    """Half a vector takes as long as a whole one, unless a core goes through whole ones by halves."""
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=cascadelake")
    x, weights = image(192, extent), weight(192, 1, window, window)
    made = nn.conv2d(x, weights, padding=window // 2, strides=stride, groups=192)
    settings = CompileSettings(replace(target, fma_per_cycle=1 if halves else 2))
    assert out_layouts(plan_layouts(lw.Function([x], made), settings).function) == [layout]
    assert select_implementation(made, settings).chosen.name == "conv.depthwise"


def test_filters_in_vectors_need_no_blocks():
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=cascadelake")
    planned = plan_layouts(lw.Function([x := image(512, 6)], conv(x, 32, window=1)), CompileSettings(target)).function
    (call,) = calls(planned, "nn.conv2d")
    assert (call.attrs.data_layout, call.attrs.kernel_layout) == ("NCHW", "OIHW32o")
    assert out_layouts(planned) == ["NCHW"]


def test_weights_and_biases_are_turned_when_the_model_is_compiled():
    x = image()
    f = lw.Function([x], conv(nn.add(conv(x, 64), weight(64, 1, 1)), 32))
    planned = plan_layouts(f, CompileSettings(TARGET)).function
    assert not any(isinstance(call.args[0], Constant) for call in calls(planned, "layout_transform"))
    first, second = calls(planned, "nn.conv2d")
    assert first.args[1].type is tensor_type((4, 3, 5, 5, 16), "float32")  # panels of two blocks of filters
    assert second.args[1].type is tensor_type((2, 8, 5, 5, 8, 16), "float32")
    (add,) = calls(planned, "add")
    assert add.args[1].type is tensor_type((1, 8, 1, 1, 8), "float32")


def test_a_residual_stays_in_its_layout():
    x = image()
    y = nn.relu(conv(x, 32))
    for _ in range(3):
        y = nn.relu(nn.add(y, conv(nn.relu(conv(y, 32)), 32)))
    planned = plan_layouts(lw.Function([x], y), CompileSettings(TARGET)).function
    assert set(out_layouts(planned)) == {"NCHW8c"}
    assert len(calls(planned, "layout_transform")) == 1


def test_a_value_wanted_twice_is_turned_once():
    x = image()
    y = conv(x, 64)
    body = Tuple((nn.space_to_depth(y, 2), nn.space_to_depth(y, 4), conv(nn.relu(conv(y, 64)), 64)))
    planned = plan_layouts(lw.Function([x], body), CompileSettings(TARGET)).function
    first, *_ = calls(planned, "nn.conv2d")
    assert len([call for call in calls(planned, "layout_transform") if call.args[0] is first]) == 1


def test_concatenation_along_channels_needs_blocks_that_divide():
    x = image()
    whole = nn.concatenate([conv(x, 32), conv(x, 64)], axis=1)
    planned = plan_layouts(lw.Function([x], conv(whole, 32)), CompileSettings(TARGET)).function
    (joined,) = calls(planned, "concatenate")
    assert joined.type is tensor_type((1, 12, 28, 28, 8), "float32")
    cut = nn.concatenate([conv(x, 32), nn.strided_slice(x, [0], [3], [1])], axis=1)
    planned = plan_layouts(lw.Function([x], conv(cut, 32)), CompileSettings(TARGET)).function
    (joined,) = calls(planned, "concatenate")
    assert joined.type is tensor_type((1, 35, 28, 28), "float32")


def test_an_operator_without_a_rule_gets_what_it_had():
    x = image(32)
    f = lw.Function([x], conv(nn.space_to_depth(conv(x, 64), 2), 64))
    planned = plan_layouts(f, CompileSettings(TARGET)).function
    (moved,) = calls(planned, "nn.space_to_depth")
    assert moved.type is tensor_type((1, 256, 14, 14), "float32")
    assert isinstance(moved.args[0], Call)
    assert moved.args[0].op.name == "layout_transform"


def twice_as_long(extent):
    """The indices and weights by which an axis is interpolated."""
    places = np.arange(2 * extent) // 2
    indices = np.stack([places, np.minimum(places + 1, extent - 1)])
    return lw.const(indices), lw.const(np.full(indices.shape, 0.5, np.float32))


@pytest.mark.parametrize(
    ("follow", "shape"),
    [
        (lambda y: nn.mean(y, axes=(2, 3), keepdims=True), (1, 8, 1, 1, 8)),
        (lambda y: nn.mean(y, axes=(2, 3)), (1, 8, 8)),
        (lambda y: nn.softmax(y, axis=3), (1, 8, 28, 28, 8)),
        (lambda y: nn.max_pool(y, 2, strides=2), (1, 8, 14, 14, 8)),
        (lambda y: nn.avg_pool(y, 3, strides=1), (1, 8, 26, 26, 8)),
        (lambda y: nn.concatenate([y, y], axis=2), (1, 8, 56, 28, 8)),
        (lambda y: nn.pad(y, (0, 0, 1, 2), (0, 0, 0, 3)), (1, 8, 29, 33, 8)),
        (lambda y: resample(y, *twice_as_long(28), 2), (1, 8, 56, 28, 8)),
        (lambda y: nn.take(y, lw.const(np.arange(42) * 2 // 3), axis=3), (1, 8, 28, 42, 8)),
        (lambda y: nn.multiply(y, nn.sigmoid(nn.mean(y, axes=(2, 3), keepdims=True))), (1, 8, 28, 28, 8)),
        (lambda y: nn.where(nn.greater(y, lw.const(np.float32(0))), y, nn.exp(y)), (1, 8, 28, 28, 8)),
    ],
)
def test_operators_go_along(follow, shape):
    """From one convolution to the next; what has no more axes for that is turned last."""
    x = image()
    y = follow(conv(x, 64))
    planned = plan_layouts(lw.Function([x], conv(y, 64) if len(shape) == 5 else y), CompileSettings(TARGET)).function
    assert planned.body.op.name == "layout_transform"
    before = planned.body.args[0]
    assert (before.args[0] if len(shape) == 5 else before).type is tensor_type(shape, "float32")
    assert len(calls(planned, "layout_transform")) == 1


@pytest.mark.parametrize(
    "follow",
    [
        lambda y: nn.sum(y, axes=(1,)),
        lambda y: nn.softmax(y, axis=1),
        lambda y: nn.pad(y, (0, 1, 0, 0), (0, 1, 0, 0)),
        lambda y: nn.add(y, weight(28, 28)),
    ],
)
def test_operators_on_the_axis_in_blocks_do_not(follow):
    x = image()
    planned = plan_layouts(lw.Function([x], follow(conv(x, 64))), CompileSettings(TARGET)).function
    last = planned.body
    assert last.op.name != "layout_transform"
    assert last.args[0].type is tensor_type((1, 64, 28, 28), "float32")


def test_what_gains_nothing_is_the_same_object():
    x = image(3, 4)
    f = lw.Function([x], nn.relu(conv(x, 3)))
    assert plan_layouts(f, CompileSettings(TARGET)).function is f
    f = lw.Function([x], nn.relu(x))
    assert plan_layouts(f, CompileSettings(TARGET)).function is f


def test_a_plan_is_not_planned_again():
    x = image()
    y = nn.relu(nn.add(conv(x, 64), weight(64, 1, 1)))
    planned = plan_layouts(lw.Function([x], conv(nn.add(y, conv(y, 64)), 32)), CompileSettings(TARGET)).function
    assert plan_layouts(planned, CompileSettings(TARGET)).function is planned


def test_strict_precision_keeps_the_order_of_sums():
    x = image()
    f = lw.Function([x], conv(conv(x, 64), 64))
    assert plan_layouts(f, CompileSettings(TARGET, CodegenOptions("strict"))).function is f


def test_a_symbolic_batch_is_planned():
    x = Var("x", tensor_type((te.var("n"), 32, 28, 28), "float32"))
    planned = plan_layouts(lw.Function([x], conv(conv(x, 64), 64)), CompileSettings(TARGET)).function
    assert out_layouts(planned) == ["NCHW8c", "NCHW8c"]


def test_the_report_names_ways_and_costs_and_is_logged(caplog):
    x = image()
    with caplog.at_level(logging.INFO, "loopwright.layout_planning"):
        plan = plan_layouts(lw.Function([x], conv(nn.relu(conv(x, 64)), 64)), CompileSettings(TARGET))
    assert plan.after < plan.before
    lines = str(plan).splitlines()
    assert lines[0].startswith("nn.conv2d: (-, -) → -: ")
    assert "(NCHW8c, OIHW8i16o) → NCHW8c: " in lines[2]
    assert all(line.count("*") == 1 for line in lines[:-1])
    assert lines[-1] == f"{plan.before:.0f} cycles as it is, {plan.after:.0f} as planned"
    assert [record.message for record in caplog.records] == lines[:-1]


def network(x):
    y = nn.relu(nn.add(conv(x, 32, strides=2), weight(32, 1, 1)))
    y = nn.add(y, conv(nn.relu(y), 32))
    gate = nn.sigmoid(conv(nn.mean(y, axes=(2, 3), keepdims=True), 32, 1))
    y = nn.concatenate([nn.multiply(y, gate), conv(y, 16, 1)], axis=1)
    y = nn.pad(conv(y, 48, dilation=2), (0, 0, 1, 0), (0, 0, 0, 1))
    y = nn.max_pool(nn.concatenate([y, y], axis=2), 3, strides=2, padding=1)
    return nn.softmax(nn.global_avg_pool(y), axis=1)


def test_values_are_those_of_the_kept_layouts():
    x = image(8, 27)
    f = lw.Function([x], network(x))
    data = np.random.default_rng(0).standard_normal((1, 8, 27, 27)).astype(np.float32)
    planned, kept = (lw.compile(f, layouts=layouts) for layouts in ("plan", "keep"))
    assert "conv.blocked" in {c.implementation for g in planned.functions for c in g.choices}
    assert "conv.blocked" not in {c.implementation for g in kept.functions for c in g.choices}
    np.testing.assert_allclose(lw.Engine(planned)([data])[0], lw.Engine(kept)([data])[0], rtol=1e-4, atol=1e-6)


def test_other_words_for_layouts_are_refused():
    with pytest.raises(lw.RuntimeArgumentError, match="layouts should be 'plan' or 'keep', found 'NHWC'"):
        lw.compile(lw.Function([], weight(1)), layouts="NHWC")


# An operator with layouts and costs to order: step k of a chain costs ``costs[k][layout it takes][layout it gives]``.


@dataclass(frozen=True)
class StepAttrs(Attrs):
    number: int = attr("which step this is")
    taken: str = attr("the layout of x", default="AB")
    given: str = attr("the layout of the result", default="AB")
    costs: tuple[tuple[tuple[float, ...], ...], ...] = attr("by number, layout taken, and layout given", default=())


LAYOUTS = ("AB", "BA", "AB4b")
TRANSFORM_COST = 1.1 * 64 * 64 + 2000


def held(layout):
    return None if layout == "AB" else ValueLayout(Layout("AB"), Layout(layout))


def _step_layouts(call, given, target):
    for taken, result in itertools.product(LAYOUTS, LAYOUTS):
        attrs = StepAttrs(call.attrs.number, taken, result, call.attrs.costs)
        yield LayoutCandidate((held(taken),), attrs, held(result))


STEP = Op(
    "test.step", "", (Argument("x", ""),), StepAttrs,
    lambda types, attrs: ValueLayout(Layout("AB"), Layout(attrs.given)).type_of(tensor_type((64, 64), "float32")),
    OpPattern.OPAQUE, layout_rule=_step_layouts,
)  # fmt: skip


@register_strategy(STEP, override=True)
def _step_strategy(attrs, inputs, result, target):
    strategy = OpStrategy()
    cost = attrs.costs[attrs.number][LAYOUTS.index(attrs.taken)][LAYOUTS.index(attrs.given)]
    strategy.add_implementation(None, schedule_default, "step", cost=cost)
    return strategy


def cheapest(costs):
    """By trying all ways to take and give, in all steps, with a transform wherever neighbours differ."""
    best = np.inf
    for ways in itertools.product(itertools.product(range(3), range(3)), repeat=len(costs)):
        has, total = 0, 0.0
        for number, (taken, given) in enumerate(ways):
            total += costs[number][taken][given] + (has != taken) * TRANSFORM_COST
            has = given
        best = min(best, total + (has != 0) * TRANSFORM_COST)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_a_chain_costs_the_least_that_is_possible(seed):
    draw = np.random.default_rng(seed).uniform(0, 3 * TRANSFORM_COST, (4, 3, 3))
    costs = tuple(tuple(map(tuple, rows)) for rows in draw.tolist())
    x = lw.var("x", (64, 64))
    node = x
    for number in range(len(costs)):
        node = STEP(node, attrs=StepAttrs(number, costs=costs))
    plan = plan_layouts(lw.Function([x], node), CompileSettings(TARGET))
    least, kept = cheapest(costs), sum(step[0][0] for step in costs)
    assert plan.before == pytest.approx(kept)
    assert plan.after == pytest.approx(least if least <= 0.98 * kept else kept)


@pytest.mark.parametrize(("cost", "is_taken"), [(10, True), (3.05, False)])
def test_what_a_plan_gains_is_compared_with_what_it_changes(cost, is_taken):
    """A step that costs a thousand times as much, and stays as it is, does not keep others from being planned."""
    far = 10_000 * TRANSFORM_COST
    stays = [[far, 2 * far, 2 * far], [2 * far] * 3, [2 * far] * 3]
    changes = [[cost * TRANSFORM_COST] * 3, [cost * TRANSFORM_COST, TRANSFORM_COST, far], [far] * 3]
    costs = tuple(tuple(map(tuple, rows)) for rows in (stays, changes))
    x = lw.var("x", (64, 64))
    node = STEP(STEP(x, attrs=StepAttrs(0, costs=costs)), attrs=StepAttrs(1, costs=costs))
    plan = plan_layouts(lw.Function([x], node), CompileSettings(TARGET))
    assert plan.before == pytest.approx(far + cost * TRANSFORM_COST)
    assert plan.after == pytest.approx(far + (3 if is_taken else cost) * TRANSFORM_COST, rel=1e-9)


# An operator that adds a row, and one that adds a row which was packed: both as many cycles as attributes say.


@dataclass(frozen=True)
class AddRowAttrs(Attrs):
    cost: float = attr("what a call costs", default=0.0)
    packed_cost: float = attr("what it costs with a packed row", default=0.0)


@dataclass(frozen=True)
class Doubled:
    """Packs a row as two of it."""

    copies: int = 2

    def __call__(self, row):
        return np.stack([row] * self.copies)


def _add_row_op(name, used_cost, layout_rule=None):
    op = Op(
        name, "", (Argument("x", ""), Argument("row", "")), AddRowAttrs, lambda types, attrs: types[0],
        OpPattern.OPAQUE, layout_rule=layout_rule,
    )  # fmt: skip

    def compute(attrs, inputs, result):
        x, row = inputs
        read = (lambda j: row[j]) if row.ndim == 1 else (lambda j: row[1, j])
        return te.compute(x.shape, lambda i, j: x[i, j] + read(j))

    @register_strategy(op, override=True)
    def strategy(attrs, inputs, result, target):
        made = OpStrategy()
        made.add_implementation(compute, schedule_default, name, cost=getattr(attrs, used_cost))
        return made

    return op


ADD_PACKED_ROW = _add_row_op("test.add_packed_row", "packed_cost")


def _add_row_uses(call, given, target, copies=2):
    packed = Packed(Doubled(copies), tensor_type((2, *call.args[1].type.shape), "float32"))
    yield LayoutCandidate((None, packed), call.attrs, None, op=ADD_PACKED_ROW)


ADD_ROW = _add_row_op("test.add_row", "cost", _add_row_uses)


@pytest.mark.parametrize("lead", [(64,), (te.var("n"),), (te.var("n"), 16)], ids=["known", "open", "open_batch"])
def test_the_constant_of_a_product_is_packed_whether_its_rows_are_known_or_not(lead):
    x, w = lw.var("x", (*lead, 256)), lw.const(np.ones((256, 512), np.float32))
    plan = plan_layouts(lw.Function([x], lw.nn.dense(x, w, transposed=False)), CompileSettings(TARGET))
    assert [made.op.name for made in calls(plan.function)] == ["nn.packed_matmul"]


def test_a_large_constant_is_packed_for_a_single_row():
    x, w = lw.var("x", (1, 2048)), lw.const(np.ones((2048, 2048), np.float32))
    plan = plan_layouts(lw.Function([x], lw.nn.matmul(x, w)), CompileSettings(lw.resolve_target("x86-64-v4")))
    assert [made.op.name for made in calls(plan.function)] == ["nn.packed_matmul"]


def test_rows_that_are_copied_with_panels_and_without_leave_a_large_constant_packed():
    x, w = lw.var("x", (2048, 2048)), lw.const(np.ones((2048, 2048), np.float32))
    plan = plan_layouts(lw.Function([x], lw.nn.matmul(x, w)), CompileSettings(lw.resolve_target("x86-64-v4")))
    assert [made.op.name for made in calls(plan.function)] == ["nn.packed_matmul"]


@pytest.mark.parametrize(("terms", "expected"), [(1000, "nn.packed_matmul"), (1024, "nn.matmul")])
def test_a_narrow_constant_is_packed_unless_rows_would_be_copied_for_it(terms, expected):
    x, w = lw.var("x", (64, terms)), lw.const(np.ones((terms, 64), np.float32))
    plan = plan_layouts(lw.Function([x], lw.nn.matmul(x, w)), CompileSettings(lw.resolve_target("x86-64-v4")))
    assert [made.op.name for made in calls(plan.function)] == [expected]


def test_a_constant_is_packed_where_the_operator_for_it_costs_less():
    x, row = lw.var("x", (3, 5)), lw.const(np.arange(5, dtype="float32"))
    call = ADD_ROW(ADD_ROW(x, row, attrs=AddRowAttrs(9.0, 5.0)), row, attrs=AddRowAttrs(5.0, 9.0))
    plan = plan_layouts(lw.Function([x], call), CompileSettings(TARGET))
    assert (plan.before, plan.after) == (14.0, 10.0)
    assert [made.op.name for made in calls(plan.function)] == ["test.add_packed_row", "test.add_row"]
    (packed,) = (n for n in post_order(plan.function.body) if isinstance(n, Constant) and n.value.ndim == 2)
    np.testing.assert_array_equal(packed.value, np.stack([row.value] * 2))
    assert "test.add_packed_row(-, Doubled(copies=2)) → -: 5 *" in str(plan)
    value = np.random.default_rng(0).standard_normal((3, 5), dtype="float32")
    (result,) = lw.Engine(lw.compile(lw.Function([x], call), target="native"))({"x": value})
    np.testing.assert_array_equal(result, value + row.value + row.value)


def test_only_constants_are_packed():
    x, row = lw.var("x", (3, 5)), lw.var("row", (5,))
    f = lw.Function([x, row], ADD_ROW(x, row, attrs=AddRowAttrs(9.0, 5.0)))
    assert plan_layouts(f, CompileSettings(TARGET)).function is f


def test_a_rule_that_is_wrong_about_what_it_packs_is_told():
    add_row = _add_row_op("test.wrongly_packed", "cost", lambda *given: _add_row_uses(*given, copies=3))
    x, row = lw.var("x", (3, 5)), lw.const(np.zeros(5, "float32"))
    call = add_row(x, row, attrs=AddRowAttrs(9.0, 5.0))
    with pytest.raises(lw.LoopwrightError, match=r"Doubled\(copies=3\) should pack .* to .*\[2, 5\].*, but it gives"):
        lw.compile(lw.Function([x], call), TARGET, jobs=1)


def test_a_rule_that_is_wrong_is_told():
    wrong = replace(STEP, name="test.wrong", relation=lambda types, attrs: types[0])
    register_strategy(wrong, override=True)(_step_strategy)
    x = lw.var("x", (64, 64))
    call = wrong(x, attrs=StepAttrs(0, costs=(((1.0,) * 3,) * 3,)))
    with pytest.raises(
        lw.LoopwrightError, match=r"layout rule of test.wrong says that its result is .* in layout AB4b"
    ):
        plan_layouts(lw.Function([x], call), CompileSettings(TARGET))


def test_a_call_that_records_know_is_left_as_it_is():
    x = image()
    first = conv(x, 64)
    f = lw.Function([x], conv(nn.relu(first), 32))
    records = lw.TuningRecords([lw.TuningRecord.of(first, TARGET, "conv.shifted", [1e-3])])
    assert out_layouts(plan_layouts(f, CompileSettings(TARGET, records=records)).function) == ["NCHW", "NCHW8c"]


# Channels and filters that fill no blocks


def image_of(channels, extent=None):
    """Of an open size if there is no ``extent``."""
    size = (te.var("h"), te.var("w")) if extent is None else (extent, extent)
    return lw.var("x", (1, channels, *size))


def filled(function):
    """The extents that changes of layout give, where they are not those that they are given."""
    return [call.attrs.extent for call in calls(function, "layout_transform") if call.attrs.extent]


def check_against_strict(f, x, values=None):
    """Values against those of plain layouts, whose sums are in another order."""
    plain, engine = (lw.Engine(lw.compile(f, target=TARGET, precision=p)) for p in ("strict", "standard"))
    sizes = [(20, 20)] if None not in [const_int(e) for e in x.type.shape] else [(20, 20), (7, 23), (1, 1), (33, 2)]
    for h, w in sizes:
        sample = np.random.default_rng(h).standard_normal((1, int(x.type.shape[1]), h, w)).astype(np.float32)
        if values is not None:
            sample.reshape(-1)[:: max(1, sample.size // 5)] = values
        for found, expected in zip(engine([sample]), plain([sample]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("channels", "filters", "extent", "extents"),
    [(64, 36, None, [36]), (64, 91, 20, [91]), (61, 64, 20, [64]), (37, 100, None, [40, 100])],
)
def test_channels_and_filters_that_fill_no_blocks_are_filled_up(channels, filters, extent, extents):
    x = image_of(channels, extent)
    y = nn.sigmoid(nn.add(conv(x, filters, 3), weight(filters, 1, 1)))
    f = lw.Function([x], y)
    planned = plan_layouts(f, CompileSettings(TARGET)).function
    assert planned.body.type is f.body.type
    assert filled(planned) == extents
    check_against_strict(f, x)


def test_filters_that_fill_halves_of_vectors_are_filled_up_in_images_of_open_sizes():
    """Small images are parts of vectors, too, if vectors hold positions."""
    x = image_of(364)
    f = lw.Function([x], nn.relu(nn.conv2d(x, weight(364, 364, 1, 1))))
    assert filled(plan_layouts(f, CompileSettings(TARGET)).function) == [364]
    check_against_strict(f, x)


def test_a_chain_of_channels_that_fill_no_blocks_stays_in_blocks():
    """What is behind the channels becomes zeros where the next convolution reads it."""
    x = image_of(37)
    y = nn.exp(nn.add(conv(x, 37, 3), weight(37, 1, 1)))
    y = nn.add(conv(y, 37, 3), y)
    f = lw.Function([x], conv(y, 37, 3))
    planned = plan_layouts(f, CompileSettings(TARGET)).function
    assert len(calls(planned, "layout_transform")) == 2
    assert len(calls(planned, "where")) == 2
    check_against_strict(f, x)


def test_what_fills_blocks_up_is_read_by_elementwise_operators_alone():
    """Sums over channels, slices, and convolutions get the channels that there are."""
    x = image_of(64)
    y = nn.relu(nn.add(conv(x, 36, 3), weight(36, 1, 1)))
    f = lw.Function([x], Tuple((nn.sum(y, [1]), nn.softmax(y, 1), conv(y, 40, 3), nn.concatenate([y, y], 1))))
    planned = plan_layouts(f, CompileSettings(TARGET)).function
    wide = {c.op.name for c in calls(planned) if c.type.ndim == 5 and c.args[0].type.ndim == 5}
    assert 36 in filled(planned)
    assert wide <= {"nn.conv2d", "nn.open_winograd_conv2d", "add", "nn.relu"}
    check_against_strict(f, x)


def test_what_fills_blocks_up_does_not_spoil_what_is_there():
    """Zeros are multiplied by weights that are finite, and quotients that nobody reads have divisors."""
    x = image_of(37)
    y = nn.divide(lw.const(np.float32(1)), nn.add(nn.abs(conv(x, 37)), lw.const(np.float32(0.5))))
    check_against_strict(lw.Function([x], Tuple((y, conv(y, 21)))), x)
    check_against_strict(lw.Function([x], Tuple((conv(x, 37),))), x, np.inf)


def test_a_value_of_other_channels_is_not_held_in_blocks_that_are_filled_up():
    x = image_of(64)
    y = conv(x, 36, 3)
    f = lw.Function([x, m := lw.var("m", (1, 1, 1, 1))], nn.multiply(nn.add(y, nn.mean(y, [1], keepdims=True)), m))
    engine, plain = (lw.Engine(lw.compile(f, target=TARGET, precision=p)) for p in ("standard", "strict"))
    sample = np.random.default_rng(0).standard_normal((1, 64, 9, 11)).astype(np.float32)
    by = np.full((1, 1, 1, 1), 2, np.float32)
    np.testing.assert_allclose(engine([sample, by])[0], plain([sample, by])[0], atol=1e-4)


def test_weights_that_only_a_run_knows_are_not_filled_up():
    x = image_of(64, 20)
    w = lw.var("w", (36, 64, 3, 3))
    planned = plan_layouts(lw.Function([x, w], nn.conv2d(x, w, padding=1)), CompileSettings(TARGET)).function
    assert not filled(planned)
