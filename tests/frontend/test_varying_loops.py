"""Loops whose iterations have extents of their own: what they carry changes its shape, or they compute extents."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopwright as lw

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, kind=None, shape=None):
    return onnx.ValueInfoProto(name=name) if kind is None else helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def loop_model(nodes, carried, outputs, inputs, stored=None, results=None, opset=18):
    """A Loop of ``m`` iterations, as long as ``go`` holds; its body has ``i``, ``c``, and what is carried, whose first
    values are named ``first_…``."""
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (stored or {}).items()]
    given = [info("i", INT, []), info("c", BOOL, []), *map(info, carried)]
    body = helper.make_graph(nodes, "body", given, [info("c_", BOOL, []), *(results or map(info, outputs))])
    names = [f"y{k}" for k in range(len(outputs))]
    loop = node("Loop", ["m", "go", *(f"first_{name}" for name in carried)], names, body=body)
    graph = helper.make_graph([loop], "g", inputs, [info(name) for name in names], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def engine_of(model):
    return lw.Engine(lw.compile(model, jobs=1, progress=False))


M = info("m", INT, [])
ONWARDS = node("Identity", ["c"], ["c_"])


def values(*shape):
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_value_that_grows_with_each_iteration(axis):
    """As the tokens that a decoder has made, and its keys and values."""
    nodes = [ONWARDS, node("Mul", ["last", "half"], ["next"]), node("Concat", ["all", "next"], ["all_"], axis=axis)]
    inputs = [M, info("first_all", FLOAT, ["b", 3] if axis else ["n", 3]), info("first_last", FLOAT, ["b", 3])]
    stored = {"go": np.array(True), "half": np.float32(0.5)}
    model = loop_model(nodes, ["all", "last"], ["all_", "next"], inputs, stored)
    engine = engine_of(model)
    for trips, rows in ((0, 2), (1, 2), (5, 1), (3, 4)):
        first, last = values(rows, 3), values(rows, 3) + 1
        parts = [first, *(last * np.float32(0.5**k) for k in range(1, trips + 1))]
        found = engine({"m": np.array(trips), "first_all": first, "first_last": last})
        np.testing.assert_array_equal(found[0], np.concatenate(parts, axis))
        np.testing.assert_array_equal(found[1], parts[-1] if trips else last)


def test_a_value_that_grows_until_a_condition_ends_the_loop():
    nodes = [
        node("ReduceSum", ["all", "axes"], ["sum"], keepdims=0),
        node("Less", ["sum", "limit"], ["c_"]),
        node("Concat", ["all", "one"], ["all_"], axis=0),
    ]
    stored = {"go": np.array(True), "axes": np.array([0]), "one": np.ones(1, np.float32)}
    inputs = [M, info("first_all", FLOAT, ["n"]), info("limit", FLOAT, [])]
    engine = engine_of(loop_model(nodes, ["all"], ["all_"], inputs, stored))
    for most, count, limit in ((100, 2, 7), (3, 2, 7), (100, 9, 5), (100, 0, 1)):
        first = np.ones(count, np.float32)
        (found,) = engine({"m": np.array(most), "first_all": first, "limit": np.array(limit, np.float32)})
        wanted = count + min(most, max(limit - count, 0) + 1)
        np.testing.assert_array_equal(found, np.ones(wanted, np.float32))


def test_a_value_that_shrinks_to_what_is_left_of_it():
    """Each iteration keeps the elements above its number: an extent that it counts, of at most as many."""
    nodes = [
        ONWARDS,
        node("Cast", ["i"], ["number"], to=FLOAT),
        node("Greater", ["left", "number"], ["above"]),
        node("Compress", ["left", "above"], ["left_"], axis=0),
        node("ReduceSum", ["left_", "axes"], ["sum"], keepdims=0),
        node("Add", ["total", "sum"], ["total_"]),
    ]
    stored = {"go": np.array(True), "axes": np.array([0])}
    inputs = [M, info("first_left", FLOAT, ["n"]), info("first_total", FLOAT, [])]
    engine = engine_of(loop_model(nodes, ["left", "total"], ["left_", "total_"], inputs, stored))
    for trips, count in ((3, 8), (6, 8), (1, 1), (0, 4)):
        left = x = np.arange(count, dtype=np.float32)
        total = np.float32(1)
        for k in range(trips):
            left = left[left > k]
            total += left.sum(dtype=np.float32)
        found = engine({"m": np.array(trips), "first_left": x, "first_total": np.array(1, np.float32)})
        np.testing.assert_array_equal(found[0], left)
        np.testing.assert_allclose(found[1], total)


def test_a_recurrence_whose_first_state_is_one_row_for_all_of_a_batch():
    """As an LSTM cell that is written out, with zeros of one row for its first hidden and cell state."""
    nodes = [
        ONWARDS,
        node("Gather", ["x", "i"], ["step"], axis=1),
        node("MatMul", ["h", "w"], ["wh"]),
        node("Add", ["wh", "step"], ["sum"]),
        node("Sigmoid", ["sum"], ["gate"]),
        node("Mul", ["gate", "cell"], ["kept"]),
        node("Sub", ["sum", "kept"], ["cell_"]),
        node("Tanh", ["cell_"], ["h_"]),
        node("Identity", ["h_"], ["row"]),
    ]
    weight = values(3, 3)
    stored = {"go": np.array(True), "w": weight, "first_h": np.zeros((1, 3), np.float32)}
    inputs = [M, info("x", FLOAT, ["b", "t", 3]), info("first_cell", FLOAT, [1, 3])]
    engine = engine_of(loop_model(nodes, ["h", "cell"], ["h_", "cell_", "row"], inputs, stored))
    for trips, rows in ((3, 2), (1, 5), (2, 1), (0, 4)):
        x, cell, h = values(rows, 4, 3), values(1, 3), np.zeros((1, 3), np.float32)
        found = engine({"m": np.array(trips), "x": x, "first_cell": cell})
        made = []
        for k in range(trips):
            total = h @ weight + x[:, k]
            cell = total - cell / (1 + np.exp(-total))
            h = np.tanh(cell)
            made.append(h)
        np.testing.assert_allclose(found[0], h, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[1], cell, rtol=1e-5, atol=1e-6)
        if made:
            np.testing.assert_allclose(found[2], np.stack(made), rtol=1e-5, atol=1e-6)


def test_an_extent_that_an_iteration_computes_in_a_branch_of_it():
    odd = helper.make_graph([node("Slice", ["x", "zero", "end"], ["s"]),
                             node("ReduceSum", ["s", "axes"], ["a"], keepdims=0)], "odd", [], [info("a")])  # fmt: skip
    even = helper.make_graph([node("ReduceMax", ["x", "axes"], ["a"], keepdims=0)], "even", [], [info("a")])
    nodes = [
        ONWARDS,
        node("Unsqueeze", ["i", "zero"], ["end"]),
        node("Mod", ["i", "two"], ["rest"]),
        node("Cast", ["rest"], ["is_odd"], to=BOOL),
        node("If", ["is_odd"], ["p"], then_branch=odd, else_branch=even),
        node("Add", ["sum", "p"], ["sum_"]),
    ]
    stored = {"go": np.array(True), "zero": np.array([0]), "two": np.array(2), "axes": np.array([0])}
    inputs = [M, info("first_sum", FLOAT, []), info("x", FLOAT, ["n"])]
    engine = engine_of(loop_model(nodes, ["sum"], ["sum_"], inputs, stored))
    x = values(5)
    for trips in (0, 1, 4, 9):
        wanted = sum((x[:k].sum() if k % 2 else x.max() for k in range(trips)), np.float32(1))
        (found,) = engine({"m": np.array(trips), "first_sum": np.array(1, np.float32), "x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_loop_in_a_loop_whose_extents_the_outer_one_computes():
    """The inner loop runs over rows, the number of columns of which is that of the outer iteration."""
    inner = helper.make_graph(
        [node("Identity", ["d"], ["d_"]), node("Mul", ["t", "w"], ["t_"])], "inner",
        [info("k", INT, []), info("d", BOOL, []), info("t")], [info("d_", BOOL, []), info("t_")],
    )  # fmt: skip
    nodes = [
        ONWARDS,
        node("Unsqueeze", ["i", "zero"], ["end"]),
        node("Slice", ["x", "zero", "end", "one"], ["w"]),
        node("Loop", ["two", "", "w"], ["t2"], body=inner),
        node("ReduceSum", ["t2"], ["p"], keepdims=0),
        node("Add", ["sum", "p"], ["sum_"]),
    ]
    stored = {"go": np.array(True), "zero": np.array([0]), "one": np.array([1]), "two": np.array(2)}
    inputs = [M, info("first_sum", FLOAT, []), info("x", FLOAT, ["n", "k"])]
    engine = engine_of(loop_model(nodes, ["sum"], ["sum_"], inputs, stored))
    x = values(2, 5)
    for trips in (0, 3, 7):
        wanted = sum(((x[:, :k] ** 3).sum() for k in range(trips)), np.float32(0))
        (found,) = engine({"m": np.array(trips), "first_sum": np.array(0, np.float32), "x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_an_extent_that_nothing_bounds():
    """As many numbers as iterations so far have doubled, with a sum that has to be in memory."""
    nodes = [
        ONWARDS,
        node("Range", ["zero", "count", "one"], ["r"]),
        node("CumSum", ["r", "zero"], ["sums"]),
        node("ReduceMax", ["sums"], ["p"], keepdims=0),
        node("Add", ["sum", "p"], ["sum_"]),
        node("Add", ["count", "count"], ["count_"]),
    ]
    stored = {"go": np.array(True), "zero": np.array(0), "one": np.array(1)}
    inputs = [M, info("first_sum", INT, []), info("first_count", INT, [])]
    engine = engine_of(loop_model(nodes, ["sum", "count"], ["sum_", "count_"], inputs, stored))
    for trips, count in ((0, 3), (1, 3), (12, 2), (3, 1), (5, 1000)):
        found = engine({"m": np.array(trips), "first_sum": np.array(1), "first_count": np.array(count)})
        counts = count * 2 ** np.arange(trips)
        assert [int(value) for value in found] == [1 + sum(n * (n - 1) // 2 for n in counts), count * 2**trips]
    with pytest.raises(lw.KernelError, match=r"iteration 0: .*how many numbers a range has.*should be 0 or more"):
        engine({"m": np.array(3), "first_sum": np.array(1), "first_count": np.array(2**62)})


def test_one_element_is_a_scalar_or_a_vector_as_before_the_loop():
    """As exporters write flags: a scalar before the loop, a vector of one behind an iteration."""
    nodes = [ONWARDS, node("Concat", ["one", "x"], ["both"], axis=0), node("ReduceSum", ["both", "axes"], ["z"])]
    nodes += [node("Unsqueeze", ["s", "axes"], ["v"]), node("Add", ["z", "v"], ["s_"])]
    stored = {"go": np.array(True), "axes": np.array([0]), "one": np.ones(1, np.float32)}
    inputs = [M, info("first_s", FLOAT, []), info("x", FLOAT, ["n"])]
    engine = engine_of(loop_model(nodes, ["s"], ["s_"], inputs, stored))
    (found,) = engine({"m": np.array(3), "first_s": np.array(5, np.float32), "x": np.ones(4, np.float32)})
    assert found == 20
    assert found.shape == ()


def test_what_a_loop_only_writes_may_be_anything_before_it():
    nodes = [ONWARDS, node("Mul", ["state", "x"], ["state_"]), node("Concat", ["state_", "x"], ["written_"], axis=0)]
    inputs = [M, info("first_state", FLOAT, ["n"]), info("first_written", INT, []), info("x", FLOAT, ["n"])]
    model = loop_model(nodes, ["state", "written"], ["state_", "written_"], inputs, {"go": np.array(True)})
    engine = engine_of(model)
    fed = {"first_state": np.arange(3, dtype=np.float32), "first_written": np.array(7), "x": values(3)}
    for trips in (1, 4):
        state, written = engine({"m": np.array(trips), **fed})
        np.testing.assert_allclose(state, fed["first_state"] * fed["x"] ** trips, rtol=1e-5)
        np.testing.assert_array_equal(written, np.concatenate([state, fed["x"]]))
    with pytest.raises(lw.RuntimeArgumentError, match=r"whether a loop|should be 1"):
        engine({"m": np.array(0), **fed})


def test_a_stack_that_begins_empty():
    """As a parser that shifts and reduces: what it computes of the last two rows needs some, which a stack without any
    does not have."""
    then = [node("Gather", ["x", "i"], ["row"], axis=0), node("Unsqueeze", ["row", "zero"], ["top"]),
            node("Concat", ["stack", "top"], ["pushed"], axis=0)]  # fmt: skip
    otherwise = [
        *(node("Gather", ["stack", at], [at + "_row"], axis=0) for at in ("last", "before")),
        node("Sub", ["last_row", "before_row"], ["difference"]), node("Unsqueeze", ["difference", "zero"], ["made"]),
        node("Slice", ["stack", "zero", "minus_two"], ["rest"]), node("Concat", ["rest", "made"], ["reduced"], axis=0),
    ]  # fmt: skip
    parts = [
        helper.make_graph(each, "part", [], [info(each[-1].output[0], FLOAT, [None, 2])]) for each in (then, otherwise)
    ]
    nodes = [ONWARDS, node("Gather", ["shifts", "i"], ["shift"], axis=0),
             node("If", ["shift"], ["stack_"], then_branch=parts[0], else_branch=parts[1])]  # fmt: skip
    stored = {"go": np.array(True), "first_stack": np.zeros((0, 2), np.float32), "zero": np.array([0]),
              "minus_two": np.array([-2]), "last": np.array(-1), "before": np.array(-2)}  # fmt: skip
    inputs = [M, info("x", FLOAT, ["n", 2]), info("shifts", BOOL, ["n"])]
    engine = engine_of(loop_model(nodes, ["stack"], ["stack_"], inputs, stored))
    for steps in ("", "+", "++-", "++++", "+++-+-+--"):
        x, wanted = values(len(steps), 2), []
        for step, row in zip(steps, x, strict=True):
            wanted = [*wanted, row] if step == "+" else [*wanted[:-2], wanted[-1] - wanted[-2]]
        shifts = np.array([step == "+" for step in steps], bool)
        (found,) = engine({"m": np.array(len(steps)), "x": x, "shifts": shifts})
        np.testing.assert_allclose(found, np.reshape(wanted, (-1, 2)), rtol=1e-6)
