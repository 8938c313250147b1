"""Loops that carry something else behind the first iteration than before it: of another rank, or broadcast."""

import numpy as np
import onnx
import pytest
from needed_tools import module
from onnx import TensorProto, helper

import loopwright as lw

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ONWARDS = helper.make_node("Identity", ["c"], ["c_"])
ADD = helper.make_node("Add", ["s", "w"], ["s_"])
COUNTED = {"m": ((), np.int64)}


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def loop(nodes, carried=("s",), rows=(), inputs=("m", "yes"), names=("i", "c")):
    """A Loop whose body makes ``s_`` of ``s``; its results are ``y_s`` and, of rows, ``z_r``."""
    number, holds = names
    infos = [helper.make_tensor_value_info(number, INT, []), helper.make_tensor_value_info(holds, BOOL, [])]
    given = [onnx.ValueInfoProto(name=name) for name in carried]
    made = [onnx.ValueInfoProto(name=name) for name in (*(f"{name}_" for name in carried), *rows)]
    goes_on = helper.make_tensor_value_info(f"{holds}_", BOOL, [])
    body = helper.make_graph(nodes, "body", [*infos, *given], [goes_on, *made])
    results = [*(f"y_{name}" for name in carried), *(f"z_{name}" for name in rows)]
    return node("Loop", [*inputs, *(f"first_{name}" for name in carried)], results, body=body)


def model_of(nodes, inputs, outputs):
    kinds = {np.int64: INT, np.bool_: BOOL, np.float32: FLOAT}
    infos = [helper.make_tensor_value_info(name, kinds[kind], shape) for name, (shape, kind) in inputs.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "g", infos, results, [helper.make_tensor("yes", BOOL, (), [True])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def floats(**shapes):
    return {name: (shape, np.float32) for name, shape in shapes.items()}


def drawn(*shape):
    return np.asarray(np.random.default_rng(sum(shape)).uniform(0.5, 2, shape), np.float32)


def engine_of(model):
    return lw.Engine(lw.compile(model, jobs=1, progress=False))


def agree(engine, model, feeds):
    """The engine gives what onnxruntime gives; onnx's own evaluator stacks no rows of other ranks than 0."""
    session = module("onnxruntime").InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for found, wanted in zip(engine(feeds), session.run(None, feeds), strict=True):
        assert found.shape == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("first", [(), (4,)])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_what_follows_holds_for_either_rank(first, trips):
    following = [node("Exp", ["y_s"], ["e"]), node("ReduceMax", ["e"], ["y"], keepdims=0)]
    model = model_of([loop([ONWARDS, ADD]), *following], COUNTED | floats(first_s=first, w=("b", 4)), ["y"])
    engine = engine_of(model)
    for rows in (1, 3):
        agree(engine, model, {"m": np.array(trips), "first_s": drawn(*first), "w": drawn(rows, 4)})


def test_a_result_of_the_rank_that_iterations_give_needs_one():
    total = node("ReduceSum", ["s_"], ["r"], keepdims=0)
    model = model_of(
        [loop([ONWARDS, ADD, total], rows=["r"])], COUNTED | floats(first_s=(4,), w=("b", 4)), ["y_s", "z_r"]
    )
    engine = engine_of(model)
    for trips, rows in ((1, 3), (4, 1)):
        agree(engine, model, {"m": np.array(trips), "first_s": drawn(4), "w": drawn(rows, 4)})
    with pytest.raises(lw.RuntimeArgumentError, match="-1 for no iteration, whose shapes do not fit what follows"):
        engine({"m": np.array(0), "first_s": drawn(4), "w": drawn(3, 4)})


def test_a_rank_that_a_loop_in_a_loop_changes():
    """The outer loop carries a vector; the number of the inner iterations may be 0 in some of its iterations."""
    nodes = [node("Identity", ["d"], ["d_"]), ADD]
    inner = loop(nodes, inputs=("i", "yes"), names=("j", "d"))
    inner.input[2] = "t"
    add = [node("ReduceSum", ["y_s"], ["sum"], keepdims=0), node("Add", ["t", "sum"], ["t_"])]
    model = model_of([loop([ONWARDS, inner, *add], ["t"])], COUNTED | floats(first_t=(4,), w=("b", 4)), ["y_t"])
    engine = engine_of(model)
    for trips in (0, 1, 3):
        agree(engine, model, {"m": np.array(trips), "first_t": drawn(4), "w": drawn(2, 4)})


def test_a_rank_that_falls_until_a_condition_ends_the_loop():
    nodes = [
        node("ReduceSum", ["s"], ["sum"], keepdims=0),
        node("Mul", ["sum", "w"], ["s_"]),
        node("ReduceMax", ["s_"], ["most"], keepdims=0),
        node("Less", ["most", "limit"], ["c_"]),
    ]
    inputs = {"go": ((), np.bool_)} | floats(first_s=("a", 4), w=(4,), limit=())
    following = node("ReduceSum", ["y_s"], ["y"], keepdims=0)
    model = model_of([loop(nodes, inputs=("", "go")), following], inputs, ["y"])
    engine = engine_of(model)
    for holds in (True, False):
        for limit in (0, 100, 10000):
            feeds = {"first_s": drawn(3, 4), "w": drawn(4), "limit": np.array(limit, np.float32)}
            agree(engine, model, {"go": np.array(holds), **feeds})


def test_a_rank_that_grows_with_each_iteration_is_refused():
    grow = node("Reshape", ["s", "shape"], ["s_"])
    shape = node("Concat", ["one", "old"], ["shape"], axis=0)
    one = node("Constant", [], ["one"], value_ints=[1])
    nodes = [loop([ONWARDS, one, node("Shape", ["s"], ["old"]), shape, grow])]
    with pytest.raises(lw.ModelError, match=r"'first_s'.*only the first iteration of a loop may change a rank"):
        engine_of(model_of(nodes, COUNTED | floats(first_s=(4,)), ["y_s"]))


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_what_is_carried_is_broadcast_to_what_it_meets(trips):
    """Both extents are open, and each of them is 1 in some runs, as of the first state of a recurrence."""
    scaled = node("Mul", ["s_", "s"], ["r"])
    inputs = COUNTED | floats(first_s=("q", 4), w=("b", 4))
    model = model_of([loop([ONWARDS, ADD])], inputs, ["y_s"])
    stacked = model_of([loop([ONWARDS, ADD, scaled], rows=["r"])], inputs, ["y_s", "z_r"])
    engines = engine_of(model), engine_of(stacked)
    for q, b in ((1, 3), (3, 1), (3, 3), (1, 1)):
        feeds = {"m": np.array(trips), "first_s": drawn(q, 4), "w": drawn(b, 4)}
        agree(engines[0], model, feeds)
        if trips:
            agree(engines[1], stacked, feeds)
    if trips:
        with pytest.raises(lw.KernelError, match="should be 1 or"):
            engines[0]({"m": np.array(trips), "first_s": drawn(2, 4), "w": drawn(3, 4)})


def test_what_is_carried_is_broadcast_in_rows_alone():
    """The state keeps its own extent; it meets the other one in what is stacked."""
    nodes = [ONWARDS, node("Exp", ["s"], ["s_"]), node("Add", ["s", "w"], ["r"])]
    model = model_of([loop(nodes, rows=["r"])], COUNTED | floats(first_s=("q", 4), w=("b", 4)), ["y_s", "z_r"])
    engine = engine_of(model)
    for q, b in ((1, 3), (3, 1), (3, 3)):
        agree(engine, model, {"m": np.array(2), "first_s": drawn(q, 4), "w": drawn(b, 4)})


def test_several_values_and_axes_are_broadcast():
    nodes = [ONWARDS, ADD, node("Mul", ["t", "s_"], ["t_"])]
    inputs = COUNTED | floats(first_s=("q", "r"), first_t=("p", "r"), w=("a", "b"))
    model = model_of([loop(nodes, ["s", "t"])], inputs, ["y_s", "y_t"])
    engine = engine_of(model)
    for trips in (0, 1, 3):
        for q, r, p, a, b in ((1, 1, 1, 1, 1), (3, 2, 3, 3, 2), (1, 2, 3, 3, 1), (3, 1, 1, 1, 2), (1, 1, 3, 1, 2)):
            feeds = {"first_s": drawn(q, r), "first_t": drawn(p, r), "w": drawn(a, b)}
            agree(engine, model, {"m": np.array(trips), **feeds})


@pytest.mark.parametrize("carried", ["t", "first_u"])
def test_a_loop_in_a_loop_broadcasts_what_either_carries(carried):
    """The inner loop begins with the outer one's state, which it broadcasts; or carries a number, and reads that."""
    nodes = [node("Identity", ["d"], ["d_"])]
    if carried == "t":
        nodes.append(ADD)
    else:
        nodes += [node("Mul", ["t", "w"], ["tw"]), node("ReduceSum", ["tw"], ["sum"], keepdims=0)]
        nodes.append(node("Add", ["s", "sum"], ["s_"]))
    inner = loop(nodes, inputs=("n", "yes"), names=("j", "d"))
    inner.input[2] = carried
    following = [node("Tanh", ["y_s"], ["t_"])]
    if carried != "t":
        following = [node("Add", ["t", "y_s"], ["t_"])]
    inputs = COUNTED | {"n": ((), np.int64)} | floats(first_t=("q", 4), first_u=(), w=("b", 4))
    model = model_of([loop([ONWARDS, inner, *following], ["t"])], inputs, ["y_t"])
    engine = engine_of(model)
    for outer, iterations in ((0, 2), (1, 0), (3, 2)):
        for q, b in ((1, 3), (3, 1), (3, 3)):
            feeds = {"first_t": drawn(q, 4), "first_u": drawn(), "w": drawn(b, 4)}
            agree(engine, model, {"m": np.array(outer), "n": np.array(iterations), **feeds})


def test_a_loop_whose_extents_go_on_changing_is_converted_once_by_its_first_iteration():
    """Each iteration of the outer loop meets what the inner one has broadcast: equal extents are asked for there."""
    inner = loop([node("Identity", ["d"], ["d_"]), ADD], inputs=("n", "yes"), names=("j", "d"))
    inner.input[2] = "t"
    following = [node("Tanh", ["y_s"], ["tanh"]), node("Add", ["t", "tanh"], ["t_"])]
    inputs = COUNTED | {"n": ((), np.int64)} | floats(first_t=("q", 4), w=("b", 4))
    model = model_of([loop([ONWARDS, inner, *following], ["t"])], inputs, ["y_t"])
    engine = engine_of(model)
    for outer, iterations in ((0, 2), (1, 0), (3, 2)):
        feeds = {"m": np.array(outer), "n": np.array(iterations), "first_t": drawn(3, 4), "w": drawn(3, 4)}
        agree(engine, model, feeds)
