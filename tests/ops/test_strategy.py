"""Strategies: scopes, names, generic functions over target keys, levels, shared computes, adapters."""

import re
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ops.definition import strategy as st
from loopwright.ops.definition.attrs import Attrs, attr
from loopwright.ops.definition.evaluate import evaluate_call
from loopwright.ops.definition.generic import GenericFunction
from loopwright.ops.definition.registry import OpPattern, get_op, register_op

CPU = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
EDGE = replace(CPU, keys=("edge", *CPU.keys))
m = te.var("m")


def compute(attrs, inputs, result):
    (x,) = inputs
    return te.compute(x.shape, lambda *i: x[i] + 1, name="plus_one")


@pytest.fixture
def op(request):
    """An operator that only this test has."""
    name = re.sub(r"\W", "_", request.node.name)
    made = register_op(name, "x + 1", [("x", "any")], lambda types, attrs: types[0], OpPattern.ELEMENTWISE)
    yield made
    from loopwright.ops.definition import registry

    del registry._ops[name]
    st._strategies.pop(name, None)
    st._schedules.pop(name, None)


def offered(op, target=CPU):
    x = lw.var("x", (4,))
    return [i.name for _, i in st.strategy_of(op, None, [x.type], x.type, target).candidates()]


def offering(name):
    def strategy(attrs, inputs, result, target):
        made = st.OpStrategy()
        made.add_implementation(compute, st.schedule_default, name)
        return made

    return strategy


# OpStrategy


def test_a_scope_is_one_specialization_and_candidates_keep_their_order():
    strategy = st.OpStrategy()
    strategy.add_implementation(compute, st.schedule_default, "a")
    with strategy.specialized(m >= 16):
        strategy.add_implementation(compute, st.schedule_default, "b", plevel=15)
        with strategy.specialized(m % 16 == 0):
            strategy.add_implementation(compute, st.schedule_default, "c", plevel=20)
        strategy.add_implementation(compute, st.schedule_default, "d")
    strategy.add_implementation(compute, st.schedule_default, "e")
    assert [i.name for _, i in strategy.candidates()] == ["a", "b", "c", "d", "e"]
    found = [(str(s.condition), [i.name for i in s.implementations]) for s in strategy.specializations]
    assert found == [
        ("None", ["a", "e"]),
        ("m >= 16", ["b", "d"]),
        ("m >= 16 and m % 16 == 0", ["c"]),
    ]


def test_a_scope_ends_where_an_error_leaves_it():
    strategy = st.OpStrategy()
    with pytest.raises(KeyError), strategy.specialized(m >= 16):
        raise KeyError
    strategy.add_implementation(compute, st.schedule_default, "a")
    assert [s.condition for s in strategy.specializations] == [None]


@pytest.mark.parametrize(("name", "plevel"), [("", 10), (None, 10), ("a", "high"), ("a", 1.5)])
def test_an_implementation_has_a_name_and_a_whole_priority(name, plevel):
    with pytest.raises(lw.SelectionError, match=rf"a name and a whole plevel, found {name!r} and {plevel!r}"):
        st.OpStrategy().add_implementation(compute, st.schedule_default, name, plevel)


def test_two_implementations_of_one_name_are_refused():
    strategy = st.OpStrategy()
    strategy.add_implementation(compute, st.schedule_default, "a")
    with strategy.specialized(m >= 16), pytest.raises(lw.SelectionError, match="'a' already"):
        strategy.add_implementation(compute, st.schedule_default, "a")


# Generic functions


def test_the_most_specific_key_of_the_target_decides():
    function = GenericFunction("greeting", lambda: "default")
    function.register("cpu")(lambda: "cpu")
    assert function.find(CPU)() == "cpu"
    function.register("x86")(lambda: "x86")
    assert function.find(CPU)() == "x86"
    assert function.find(replace(CPU, keys=("tpu",)))() == "default"
    assert function.keys() == ("default", "cpu", "x86")


def test_a_generic_function_without_a_default_may_have_nothing_for_a_target():
    function = GenericFunction("greeting")
    function.register("arm")(lambda: "arm")
    assert function.find(CPU) is None
    with pytest.raises(lw.SelectionError, match="greeting is registered for arm, not for llvm"):
        function.for_target(CPU)


def test_a_second_registration_must_be_asked_for():
    function = GenericFunction("greeting", offering)
    with pytest.raises(
        lw.LoopwrightError, match=r"greeting is registered for 'default' already, as .*offering.*override"
    ):
        function.register()(compute)
    function.register(override=True)(compute)
    assert function.find(CPU) is compute


def test_of_many_threads_one_registers():
    function, refused = GenericFunction("greeting"), []
    barrier = threading.Barrier(8)

    def register():
        barrier.wait()
        try:
            function.register("x86")(lambda: 0)
        except lw.LoopwrightError:
            refused.append(1)

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7


# register_strategy


def test_a_strategy_may_be_for_a_key(op):
    st.register_strategy(op)(offering("all"))
    st.register_strategy(op, offering("edge"), key="edge")
    assert offered(op) == ["all"]
    assert offered(op, EDGE) == ["edge"]


def test_a_higher_level_wins_whatever_the_order_and_the_key(op):
    st.register_strategy(op, offering("late"), level=20)
    st.register_strategy(op, offering("edge"), key="edge")
    assert offered(op, EDGE) == ["late"]
    st.register_strategy(op, offering("edge, later"), key="edge", level=30)
    assert (offered(op, EDGE), offered(op)) == (["edge, later"], ["late"])


def test_the_same_level_twice_is_refused_and_says_what_is_there(op):
    st.register_strategy(op, offering("a"), level=11)
    with pytest.raises(lw.LoopwrightError, match=rf"strategy of {op.name} at level 11 .*already, as .*offering"):
        st.register_strategy(op, offering("b"), level=11)
    st.register_strategy(op, offering("b"), level=11, override=True)
    assert offered(op) == ["b"]


def test_a_generic_function_takes_a_level(op):
    function = GenericFunction("a strategy", offering("default"))
    st.register_strategy(op, function, level=12)
    function.register("edge")(offering("edge"))
    assert (offered(op), offered(op, EDGE)) == (["default"], ["edge"])
    with pytest.raises(lw.LoopwrightError, match="at level 12 is registered already, for default, edge"):
        st.register_strategy(op, GenericFunction("another"), level=12)


def test_an_operator_without_a_strategy_for_the_target_says_so(op):
    st.register_strategy(op, offering("edge"), key="edge")
    with pytest.raises(lw.SelectionError, match=f"{op.name} has no implementation"):
        offered(op)


def test_what_a_strategy_returns_is_an_op_strategy(op):
    st.register_strategy(op, lambda attrs, inputs, result, target: None)
    with pytest.raises(lw.SelectionError, match=rf"the strategy .*lambda> of {op.name} should return an OpStrategy"):
        offered(op)


def test_strategies_are_functions_of_operators(op):
    with pytest.raises(lw.LoopwrightError, match=r"for an operator, as get_op\(name\) gives it, not for 'nn.relu'"):
        st.register_strategy("nn.relu", offering("a"))
    with pytest.raises(lw.LoopwrightError, match=f"the strategy of {op.name} .* should be a function, found 3"):
        st.register_strategy(op, 3)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (lambda attrs, inputs, result: te.compute((3,), lambda i: inputs[0][i], name="short"), r"float32\[3\]"),
        (
            lambda attrs, inputs, result: te.compute((4,), lambda i: te.cast(inputs[0][i], "float64"), name="wide"),
            "float64",
        ),
        (lambda attrs, inputs, result: (compute(attrs, inputs, result),) * 2, r"float32\[4\], float32\[4\]"),
        (lambda attrs, inputs, result: None, "None"),
        (lambda attrs, inputs, result: st.Stages(te.compute((3,), lambda i: inputs[0][i])), r"float32\[3\]"),
        (lambda attrs, inputs, result: st.Stages(None), "Stages"),
    ],
)
def test_a_compute_gives_what_the_relation_says(op, wrong, found):
    st.register_compute(op, wrong, name="wrong.one")
    x = lw.var("x", (4,))
    with pytest.raises(
        lw.SelectionError, match=rf"wrong.one of {op.name} should compute float32\[4\], but it gives .*{found}"
    ):
        lw.compile(lw.Function([x], op(x)))


def test_errors_say_which_compute_is_there_already(op):
    st.register_compute(op, compute)
    with pytest.raises(
        lw.LoopwrightError, match=r"already, as the shared compute .*test_strategy.compute, and now as "
    ):
        st.register_compute(op, compute)


@dataclass(frozen=True, slots=True)
class Doubled(st.Stages):
    sums: te.Tensor


def test_a_schedule_is_given_the_stages_of_its_compute(op):
    """What is computed without a schedule is the result."""

    def doubled(attrs, inputs, result):
        sums = te.compute((4,), lambda i: inputs[0][i] + inputs[0][i], name="sums")
        return Doubled(te.compute((4,), lambda i: sums[i], name="doubled"), sums)

    def vectors(attrs, anchor, outputs, target):
        seen.append(anchor)
        schedule = lw.create_schedule(list(outputs))
        schedule[anchor.sums].vectorize(schedule[anchor.sums].loops[-1])
        return schedule

    seen = []
    st.register_compute(op, doubled, vectors)
    x, values = lw.var("x", (4,)), np.arange(4, dtype=np.float32)
    (y,) = lw.Engine(lw.compile(lw.Function([x], op(x)), jobs=1))(values)
    np.testing.assert_array_equal(y, 2 * values)
    assert {type(stages) for stages in seen} == {Doubled}
    np.testing.assert_array_equal(evaluate_call(op(lw.const(values))), 2 * values)


# register_compute, register_schedule


def marked(schedule_name, seen):
    def schedule(attrs, anchor, outputs, target):
        seen.append(schedule_name)
        return lw.create_schedule(list(outputs))

    return schedule


def chosen(op, target=CPU):
    x = lw.var("x", (4,))
    ((_, implementation),) = st.strategy_of(op, None, [x.type], x.type, target).candidates()
    tensor = implementation.compute(None, (te.placeholder((4,), "float32", name="x"),), x.type)
    implementation.schedule(None, (tensor,), (tensor,), target)
    return implementation.name


def test_computes_are_shared_where_schedules_differ(op):
    seen = []
    st.register_compute(op, compute)
    st.register_schedule(op, marked("edge", seen), key="edge")
    assert (chosen(op), seen) == (f"{op.name}.generic", [])
    assert (chosen(op, EDGE), seen) == (f"{op.name}.edge", ["edge"])
    with pytest.raises(lw.LoopwrightError, match=rf"schedule of {op.name} is registered for 'edge' already"):
        st.register_schedule(op, marked("other", seen), key="edge")


def test_targets_may_override_the_schedule_of_a_pattern(op, monkeypatch):
    seen = []
    monkeypatch.setattr(st.broadcast_schedule, "_functions", dict(st.broadcast_schedule._functions))
    st.broadcast_schedule.register("edge")(marked("broadcast", seen))
    st.register_compute(op, compute)
    assert (chosen(op, EDGE), seen) == (f"{op.name}.generic", ["broadcast"])
    assert (chosen(op), seen) == (f"{op.name}.generic", ["broadcast"])


@pytest.mark.parametrize("kind", ["injective", "broadcast", "reduce"])
def test_an_operator_may_be_scheduled_as_another_pattern(op, kind, monkeypatch):
    seen = []
    generic = getattr(st, f"{kind}_schedule")
    monkeypatch.setattr(generic, "_functions", {"default": marked(kind, seen)})
    st.register_compute(op, compute)
    getattr(st, f"register_{kind}_schedule")(op)
    chosen(op)
    assert seen == [kind]


@pytest.mark.parametrize(
    "call",
    [
        lw.nn.max_pool(lw.var("x", (1, 2, 8, 8)), 2),
        lw.nn.einsum("ij->i", [lw.var("x", (2, 8))]),
    ],
    ids=lambda call: call.op.name,
)
def test_complex_operators_that_fold_are_scheduled_as_reductions(call, monkeypatch):
    schedule = marked("reduce", [])
    monkeypatch.setattr(st.reduce_schedule, "_functions", dict(st.reduce_schedule._functions) | {"edge": schedule})
    offer = st.strategy_of(call.op, call.attrs, [a.type for a in call.args], call.type, EDGE)
    assert next(made for _, made in offer.candidates()).schedule is schedule


def test_schedules_are_registered_for_shared_computes_only():
    with pytest.raises(lw.LoopwrightError, match=r"nn\.dense shares no compute .*register_strategy\(nn\.dense"):
        st.register_schedule(get_op("nn.dense"), st.schedule_default, key="edge")


def test_auto_inline_injective_inlines_all_but_what_is_kept():
    x = te.placeholder((8,), "float32", name="x")
    a = te.compute((8,), lambda i: x[i] + 1, name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")
    c = te.compute((8,), lambda i: b[i] - 3, name="c")
    schedule = lw.create_schedule(c)
    st.auto_inline_injective(schedule, keep=[b])
    assert [s.name for s in schedule.state.stages if type(s.place).__name__ == "Inlined"] == ["a"]


# Adapters


@dataclass(frozen=True)
class ScaleAttrs(Attrs):
    factor: int = attr("what to multiply by", 2)
    offset: int = attr("what to add", 0)


def topi_scale(x, y, factor, offset):
    return te.compute(x.shape, lambda *i: x[i] * factor + y[i] + offset, name="scale")


def topi_schedule(outputs, target=None):
    schedule = lw.create_schedule(list(outputs))
    loop = schedule[outputs[0]].loops[0]
    _, lane = schedule[outputs[0]].split(loop, factor=4 if target is None else target.lanes("float32"))
    schedule[outputs[0]].vectorize(lane)
    return schedule


@pytest.mark.parametrize("with_target", [False, True])
def test_functions_in_tvm_style_are_adapted(with_target):
    x, y = (te.placeholder((20,), "float32", name=name) for name in "xy")
    result = st.wrap_compute(topi_scale)(ScaleAttrs(3, 1), (x, y), lw.var("r", (20,)).type)
    schedule = st.wrap_schedule(topi_schedule, with_target)(ScaleAttrs(), (result,), (result,), CPU)
    assert "factor=8" in str(schedule.trace) if with_target else "factor=4" in str(schedule.trace)
    a, b, found = np.arange(20, dtype="f4"), np.ones(20, "f4"), np.zeros(20, "f4")
    lw.interpret(lw.lower(schedule, [x, y, result]))(a, b, found)
    np.testing.assert_array_equal(found, a * 3 + b + 1)


def test_attributes_to_unpack_may_be_named():
    x = te.placeholder((4,), "float32", name="x")
    wrapped = st.wrap_compute(lambda x, offset: (te.compute(x.shape, lambda i: x[i] + offset),), "offset")
    (result,) = wrapped(ScaleAttrs(3, 5), (x,), lw.var("r", (4,)).type)
    assert "5" in str(result.op.body[0])


def test_an_operator_without_attributes_passes_tensors_only():
    x = te.placeholder((4,), "float32", name="x")
    result = st.wrap_compute(lambda x: te.compute(x.shape, lambda i: x[i]))(None, (x,), lw.var("r", (4,)).type)
    assert isinstance(result, te.Tensor)


# Code from outside


def test_only_operators_that_are_served_from_outside_depend_on_other_code_than_ours(op):
    st.register_compute(op, compute)
    assert st.foreign_code(op, CPU)
    assert [st.foreign_code(get_op(name), CPU) for name in ("nn.dense", "exp", "nn.conv2d")] == ["", "", ""]


# register_op


@pytest.mark.parametrize("level", [0, 11, "1"])
def test_support_levels_are_from_1_to_10(level):
    with pytest.raises(lw.LoopwrightError, match="support levels are 1, basic, to 10"):
        register_op("level", "", [], lambda types, attrs: types[0], OpPattern.OPAQUE, support_level=level)


def test_operators_know_their_number_of_inputs():
    assert [get_op(name).num_inputs for name in ("nn.dense", "exp", "full", "concatenate")] == [2, 1, 0, None]
