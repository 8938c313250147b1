"""``repr`` of whatever is public: one short line, however large the object is, that says which one it is."""

import inspect
from functools import cache

import numpy as np
import onnx
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir import expr, stmt
from loopwright.ir.constants import ZERO
from loopwright.ir.expr import Load
from loopwright.ir.stmt import Store

MOST = 200
MANY = 40
TARGET = "x86-64-v3"

INPUTS = [te.placeholder((MANY + k, 8), "float32", name=f"an_input_of_many_{k}") for k in range(MANY)]
AXIS = te.reduce_axis((0, 8), name="terms")


def sums():
    """The sum of all inputs, a compute for each."""
    total = INPUTS[0]
    for number, other in enumerate(INPUTS[1:]):
        total = te.compute(
            (MANY, 8),
            lambda row, column, *, a=total, b=other: te.tanh(a[row, column]) + b[row, column],
            name=f"partial{number}",
        )
    return total


TOTAL = sums()
ROWS = te.compute((MANY,), lambda row: te.sum(TOTAL[row, AXIS], axis=AXIS), name="rows")


def schedule():
    s = lw.create_schedule(ROWS)
    for stage in s.stages:
        if isinstance(stage.op, te.ComputeOp) and stage.name != "rows":
            stage.split("row", 4)
            stage.reorder("row_inner", "row_outer", "column")
    return s


S = schedule()
ARGS = [*INPUTS, ROWS]
FUNC = lw.lower(S, ARGS, name="rows", target=TARGET)


@cache
def kernel():
    return lw.build(S, ARGS, name="rows", target=TARGET)


def graph():
    x = lw.var("x", (1, 16))
    others = [lw.var(f"an_input_of_many_{k}", (1, 16)) for k in range(MANY)]
    value = x
    for other in others:
        value = lw.nn.softmax(lw.nn.add(value, other))
    return lw.Function([x, *others], value, "softmaxes")


GRAPH = graph()


def small():
    x = lw.var("x", (1, 16))
    w = lw.const(np.ones((16, 16), np.float32), "weights")
    value = x
    for _ in range(MANY):
        value = lw.nn.softmax(lw.nn.matmul(value, w))
    return lw.Function([x], value, "products")


VALUE = {"x": np.ones((1, 16), np.float32)}


@cache
def engine():
    return lw.Engine(lw.compile(small(), jobs=1))


@cache
def profile():
    return engine().profile(VALUE)


def comparison():
    x = np.ones((1, 4), np.float32)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"]
    made = onnx.helper.make_graph([node], "products", info[:1], info[1:])
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return lw.Engine(lw.compile(model, jobs=1)).compare({"x": x}, model)


def symbolic():
    return te.placeholder([te.var(f"extent{k}") for k in range(MANY)], "int8", name="T")


def pass_records():
    records = []
    lw.lower(S, ARGS, target=TARGET, trace_passes=records)
    return records


def deep_expression():
    x = expr.Var("x")
    value = x
    for _ in range(100):
        value = value * 3 + x
    return value


def intrinsic():
    x = te.placeholder((1,), "float32", name="x")
    y = te.compute((1,), lambda i: x[i] + 1.0, name="y")
    return lw.declare_intrinsic(
        "add_for_repr", y, lambda x, y: Store(y, (ZERO,), Load(x, (ZERO,)) + 1.0), override=True
    )


def state_and_scan():
    X = te.placeholder((8, 4), "float32", name="X")
    state = te.scan_state((8, 4), "float32", name="state")
    init = te.compute((1, 4), lambda t, i: X[t, i], name="init")
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    return state.op, te.scan(init, update, state, name="running").op


def nothing(ins, outs):
    return stmt.Seq(())


def small_schedule():
    A = te.placeholder((4,), "float32", name="A")
    return lw.create_schedule(te.compute((4,), lambda i: A[i] * 2.0, name="B"))


def tripled(*x):
    return x[0] * 3.0 + sum(x[1:], 0.0)


def specialized():
    return lw.kernel(tripled).specialize(*[np.zeros(4, np.float32)] * MANY)


def explored():
    return lw.explore({f"schedule{k}": small_schedule() for k in range(20)}, measure=False)


def record():
    x = lw.var("x", (4, 64))
    trace = lw.function_schedules(lw.Function([x], lw.nn.softmax(x)), "fused_softmax")["softmax.rows"].trace
    return lw.TuningRecord.of(lw.nn.softmax(x), TARGET, "softmax.rows", [1e-6] * 100, trace=trace)


def tuned():
    return lw.TuningReport((), "tuned.jsonl", 3, 1, 1.2, 1.1, 100, 60)


CASES = {
    lw.Comparison: (comparison, "products: 1 value"),
    lw.Constant: (lambda: lw.const(np.ones((1000, 1000), np.float32), "weights"), "weights: float32[1000, 1000]"),
    lw.Engine: (engine, "products"),
    lw.ExplorerPage: (
        lambda: lw.explore({f"schedule{k}": small_schedule() for k in range(20)}, measure=False),
        "in no file",
    ),
    lw.ExecutorConfig: (lambda: lw.ExecutorConfig(threads=2), "threads=2"),
    lw.Explanation: (lambda: lw.explain(GRAPH), "fused_add_softmax"),
    lw.Function: (lambda: GRAPH, "softmaxes(%x: float32[1, 16]"),
    lw.FusionReport: (lambda: lw.fusion_report(GRAPH), "fused"),
    lw.IRModule: (lambda: lw.IRModule((FUNC,) * MANY), "rows"),
    lw.Kernel: (kernel, "rows(an_input_of_many_0: float32[40, 8]"),
    lw.KernelFunction: (lambda: lw.kernel(tripled), "tripled, 0 specializations"),
    lw.Specialization: (specialized, "tripled(x0: float32[4]"),
    lw.TensorSpec: (lambda: lw.Engine(lw.compile(GRAPH, jobs=1)).inputs[0], "name='x', shape=(1, 16)"),
    te.Buffer: (lambda: FUNC.buffers[0], "an_input_of_many_0: float32[40, 8]"),
    lw.Library: (lambda: engine().library, "products(x: float32[1, 16])"),
    lw.PassRecord: (lambda: pass_records()[0], "realize"),
    lw.PrimFunc: (lambda: FUNC, "rows(an_input_of_many_0: float32[40, 8]"),
    lw.Profile: (profile, "products"),
    lw.Schedule: (lambda: S, "rows"),
    lw.TacticRegistry: (lambda: lw.tactics, "TacticRegistry"),
    lw.Target: (lambda: lw.resolve_target(TARGET), "x86-64-v3"),
    lw.Tensor: (symbolic, "T: int8[extent0, extent1"),
    lw.TensorIntrinsic: (intrinsic, "add_for_repr"),
    lw.Timing: (lambda: lw.Timing(tuple(k / 3e6 for k in range(1, 1000)), 100), "number=100"),
    lw.Trace: (lambda: S.trace, "78 steps"),
    lw.Decision: (lambda: lw.Decision("rows", tuple(range(1, 99)), 4, 5), "rows"),
    lw.TuningCandidate: (lambda: lw.TuningCandidate("softmax.rows", (("rows", 4),) * MANY), "softmax.rows"),
    lw.TuningReport: (tuned, "tuned.jsonl"),
    lw.ScheduleRule: (lambda: lw.schedule_rules()[0], "inline"),
    lw.StageSketch: (lambda: lw.StageSketch(S, S.stages[-1].name, lw.resolve_target(TARGET), True), "StageSketch"),
    lw.ScheduleTuning: (lambda: lw.ScheduleTuning(S, 1.5, {}, ()), "gain=1.5"),
    lw.TriedSchedule: (lambda: lw.TriedSchedule(S, 1e6, 1.5, "measured"), "gain=1.5"),
    lw.TuningTask: (lambda: lw.tasks(small(), TARGET)[0], "nn.packed_matmul"),
    lw.TuningRecord: (record, "softmax.rows"),
    lw.TuningRecords: (lw.TuningRecords, "0 of 0"),
    lw.VectorReport: (lambda: kernel().vector_report(), "rows"),
    te.Axis: (lambda: te.reduce_axis((0, deep_expression()), name="r"), "r: reduce"),
    te.ComputeOp: (lambda: ROWS.op, "rows: float32[40]"),
    te.ExternFunction: (lambda: te.extern_function("many", ["read float32"] * MANY), "many(read float32"),
    te.PlaceholderOp: (lambda: INPUTS[0].op, "an_input_of_many_0: float32[40, 8]"),
    te.ScanOp: (lambda: state_and_scan()[1], "running: float32[8, 4]"),
    te.StateOp: (lambda: state_and_scan()[0], "state: float32[8, 4]"),
    te.ExternOp: (lambda: te.extern((3,), INPUTS[:1], nothing, name="outside").op, "outside: float32[3]"),
}
"""A large object of each public class, and what its ``repr`` has to say."""

OTHERS = {
    "inputs of an engine": (lambda: lw.Engine(lw.compile(GRAPH, jobs=1)).inputs, "x: float32[1, 16]"),
    "call": (lambda: GRAPH.body, "softmax: float32[1, 16]"),
    "variable of a graph": (lambda: GRAPH.params[0], "x: float32[1, 16]"),
    "step": (lambda: S.trace[-1], "reorder"),
    "state": (lambda: S.state, "rows"),
    "stage": (lambda: S["partial3"], "partial3: loops row_inner, row_outer, column"),
    "stage of a state": (lambda: S.state.stages[-1], "rows: loops row, terms"),
    "loop": (lambda: S["rows"].loops[0], "row"),
    "bound kernel": (
        lambda: kernel().bind(*[np.zeros([int(e) for e in t.shape], np.float32) for t in ARGS]),
        "float32[40, 8]",
    ),
    "bound engine": (lambda: engine().bind(VALUE), "float32[1, 16]"),
    "request": (lambda: engine().request(), "products"),
    "code": (lambda: kernel().code, "rows"),
    "compiled function": (lambda: engine().library.functions[0], "fused_nn_packed_matmul"),
    "compiled model": (lambda: engine().library.model, "products"),
    "explained function": (lambda: lw.explain(GRAPH).functions[0], "fused_add_softmax"),
    "choice": (lambda: lw.explain(GRAPH).functions[0].choices[0], "add.generic"),
    "fused group": (lambda: lw.fusion_report(GRAPH).groups[0], "fused"),
    "stage of a model": (lambda: lw.dump(GRAPH, "graph")[0], "softmaxes"),
    "step of a profile": (lambda: profile().steps[0], "packed_matmul"),
    "function of a profile": (lambda: next(f for f in profile().functions if "softmax" in f.name), "softmax"),
    "loop of a vector report": (lambda: kernel().vector_report().loops[0], "row"),
    "statement": (lambda: FUNC.body, "Allocate partial0: float32[320]"),
    "expression": (deep_expression, "x * 3 + x"),
    "buffer": (lambda: FUNC.buffers[0], "an_input_of_many_0: float32[40, 8]"),
    "sequence": (lambda: stmt.Seq((FUNC.body,) * MANY), "Seq"),
}
EXEMPT = {"AbstractTactic", "IRBuilder", "Node", "Searcher", "Space"}
"""Base classes, protocols and unions of classes, and what has no state that a line could tell."""


def check(made, told):
    text = repr(made)
    assert len(text) <= MOST, f"{len(text)} characters: {text}"
    assert "\n" not in text
    assert told in text


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_an_object_of_a_public_class_is_shown_in_a_line_that_says_which_it_is(kind):
    make, told = CASES[kind]
    made = make()
    assert isinstance(made, kind)
    check(made, told)


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS)
def test_what_public_objects_hold_is_shown_in_a_line_that_says_which_it_is(case):
    make, told = case
    check(make(), told)


def test_every_public_class_has_a_case():
    names = {name: getattr(module, name) for module in (lw, te) for name in module.__all__}
    classes = {n for n, c in names.items() if inspect.isclass(c) and not issubclass(c, Exception)}
    assert classes - EXEMPT == {kind.__name__ for kind in CASES}


@pytest.mark.parametrize("made", [FUNC, GRAPH, FUNC.body, S, S.trace], ids=lambda made: type(made).__name__)
def test_the_whole_text_of_what_has_one_is_its_str(made):
    assert len(str(made).splitlines()) > MANY


def test_a_short_expression_is_shown_whole():
    a = te.var("a")
    assert repr(a * 2 + 1) == str(a * 2 + 1) == "a * 2 + 1"
