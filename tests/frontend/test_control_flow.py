"""If, Loop and Scan of ONNX models, in all their versions, against onnx's reference evaluator."""

import importlib

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.backend.test.case import node as node_cases
from onnx.reference import ReferenceEvaluator
from onnx_cases import compare, floats, make_model, run

import loopwright as lw
from loopwright import onnx_backend

IF_VERSIONS = (1, 11, 13, 16, 19, 21, 23, 24, 25)
SCAN_VERSIONS = (9, 11, 16, 19, 21, 23, 24, 25)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def graph(nodes, inputs, outputs, stored=()):
    """A subgraph; ``inputs`` are names with dtype and shape, or names alone."""
    infos = []
    for name, declared in inputs.items():
        kind, shape = declared or (None, None)
        infos.append(
            onnx.ValueInfoProto(name=name)
            if kind is None
            else helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
        )
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in dict(stored).items()]
    return helper.make_graph(nodes, "inner", infos, [onnx.ValueInfoProto(name=name) for name in outputs], constants)


def by_iterations(body, opset, most, holds, states, outside):
    """What the standard says of a Loop, iteration by iteration: each by onnx's evaluator. ``holds`` is None where the
    condition is left out."""
    inputs = [i.name for i in body.input]
    declared = [onnx.ValueInfoProto(name=name) for name in (*inputs, *outside)]
    inner = helper.make_graph(body.node, "body", declared, body.output, body.initializer)
    evaluator = ReferenceEvaluator(helper.make_model(inner, opset_imports=[helper.make_opsetid("", opset)]))
    rows = [[] for _ in body.output[1 + len(states) :]]
    number = 0
    while (most is None or number < most) and holds in (None, True):
        fed = dict(zip(inputs, [np.array(number), np.array(True), *states], strict=True)) | outside
        again, *results = evaluator.run(None, fed)
        holds = None if holds is None else bool(again)
        states = results[: len(states)]
        for stack, row in zip(rows, results[len(states) :], strict=True):
            stack.append(row)
        number += 1
    return [*states, *(np.array(stack) for stack in rows)]


def agree(model, feeds, tolerance=1e-5):
    compare(run(model, feeds), ReferenceEvaluator(model).run(None, feeds), tolerance)


# If


def if_model(version, condition_shape=()):
    then = graph([node("MatMul", ["x", "w"], ["t"]), node("Tanh", ["t"], ["r"])], {}, ["r", "x"])
    otherwise = graph([node("Neg", ["n"], ["s"])], {}, ["s", "n"])
    nodes = [
        node("Abs", ["x"], ["n"]),
        node("If", ["c"], ["y", "z"], then_branch=then, else_branch=otherwise),
        node("Identity", ["y"], ["out"]),
    ]
    fed = {"x": floats(3, 3), "c": np.ones(condition_shape, bool)}
    return make_model(nodes, fed, ["out", "z"], version, {"w": floats(3, 3, seed=1)}), fed


@pytest.mark.parametrize("version", IF_VERSIONS[1:])
@pytest.mark.parametrize("holds", [True, False])
def test_if(version, holds):
    model, fed = if_model(version)
    agree(model, fed | {"c": np.array(holds)})


def test_a_condition_may_have_one_element_in_a_vector():
    model, fed = if_model(13, (1,))
    for holds in (True, False):
        agree(model, fed | {"c": np.array([holds])})


def test_branches_of_other_types_name_the_node():
    then, otherwise = graph([node("Neg", ["x"], ["t"])], {}, ["t"]), graph([node("Shape", ["x"], ["s"])], {}, ["s"])
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]
    model = make_model(nodes, {"x": floats(3), "c": np.array(True)}, ["y"], 13)
    with pytest.raises(lw.ModelError, match=r"node 'If_y' \(If\).*both branches have to give one type"):
        lw.from_onnx(model)


def ranked(following, outputs, declared=("n", 4)):
    """A model whose If adds an axis to x in one branch only, and what follows it."""
    then = graph([node("Unsqueeze", ["x", "first"], ["t"])], {}, ["t"])
    otherwise = graph([node("Neg", ["x"], ["o"])], {}, ["o"])
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise), *following]
    inputs = {"x": (np.float32, declared), "c": (np.bool_, ())}
    return make_model(nodes, inputs, outputs, 18, {"first": np.array([0])})


EITHER_RANK = [
    node("Exp", ["x"], ["e"]),
    node("Mul", ["y", "e"], ["p"]),
    node("Flatten", ["p"], ["flat"], axis=1),
    node("ReduceSum", ["p"], ["sum"], keepdims=0),
]


@pytest.mark.parametrize("declared", [(3, 4), ("n", 4)], ids=["known", "open"])
@pytest.mark.parametrize("holds", [True, False])
def test_what_follows_branches_of_two_ranks_is_converted_in_both(declared, holds):
    feeds = {"x": floats(3, 4), "c": np.array(holds)}
    for outputs in (["sum"], ["e", "sum"], ["flat", "sum", "e"]):
        agree(ranked(EITHER_RANK, outputs, declared), feeds)


def again(number, x):
    """An If like that of ``ranked`` of another value, and the sum of what it gives."""
    then = graph([node("Unsqueeze", [x, "first"], [f"t{number}"])], {}, [f"t{number}"])
    otherwise = graph([node("Neg", [x], [f"o{number}"])], {}, [f"o{number}"])
    return node("If", ["c"], [f"y{number}"], then_branch=then, else_branch=otherwise)


def test_branches_of_two_ranks_that_follow_each_other():
    following = [again(2, "y"), node("ReduceSum", ["y2"], ["sum"], keepdims=0)]
    for holds in (True, False):
        agree(ranked(following, ["sum"]), {"x": floats(3, 4), "c": np.array(holds)})
    many = [again(2, "y"), again(3, "y2"), node("ReduceSum", ["y3"], ["sum"], keepdims=0)]
    with pytest.raises(
        lw.ModelError, match=r"node 'If_y3' \(If\).*in one branch and.*both branches have to give one type"
    ):
        lw.from_onnx(ranked(many, ["sum"]))


def test_outputs_of_two_ranks_are_refused():
    for following, output in (([], "y"), ([node("Exp", ["y"], ["z"])], "z")):
        with pytest.raises(lw.ModelError, match="both branches have to give one type"):
            lw.from_onnx(ranked(following, [output]))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("outputs", [["m"], ["m", "sum"], ["sum"]])
def test_what_fits_one_branch_only_is_computed_where_a_run_takes_it(outputs, swapped):
    following = [node("Transpose", ["y"], ["m"], perm=[1, 0]), node("ReduceSum", ["m"], ["sum"], keepdims=0)]
    model = ranked(following, outputs)
    if swapped:
        for attribute in model.graph.node[0].attribute:
            attribute.name = {"then_branch": "else_branch", "else_branch": "then_branch"}[attribute.name]
    for rows in (0, 3):
        agree(model, {"x": floats(rows, 4), "c": np.array(swapped)})
    engine = lw.Engine(lw.compile(model))
    wrong = "else" if swapped else "then"
    with pytest.raises(lw.LoopwrightError, match=f"-1 for the {wrong} branch, whose shapes do not fit.*If_y"):
        engine({"x": floats(3, 4), "c": np.array(not swapped)})


@pytest.mark.parametrize("takes", [True, False])
def test_a_branch_that_is_not_taken_checks_nothing(takes):
    following = [node("Transpose", ["y"], ["m"], perm=[1, 0])]
    model = ranked(following, ["m"])
    inner = graph(model.graph.node, {}, ["m"])
    for attribute in inner.node[0].attribute:
        attribute.name = {"then_branch": "else_branch", "else_branch": "then_branch"}[attribute.name]
    other = graph([node("Transpose", ["x"], ["w"], perm=[1, 0])], {}, ["w"])
    del model.graph.node[:]
    model.graph.node.append(node("If", ["outer"], ["m"], then_branch=inner, else_branch=other))
    model.graph.input.append(helper.make_tensor_value_info("outer", onnx.TensorProto.BOOL, ()))
    agree(model, {"x": floats(3, 4), "c": np.array(takes), "outer": np.array(takes)})


def with_run_time_axes():
    """A branch adds axes that a run gives, and what follows asks for the extents that result for the first of them."""
    then = graph([node("Unsqueeze", ["x", "at"], ["t"])], {}, ["t"])
    otherwise = graph([node("Identity", ["x"], ["o"])], {}, ["o"])
    nodes = [
        node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise),
        node("Mul", ["y", "k"], ["p"]),
        node("ReduceSum", ["p"], ["sum"], keepdims=0),
    ]
    inputs = {"x": (np.float32, (3, 4)), "c": (np.bool_, ()), "at": (np.int64, (1,))}
    return make_model(nodes, inputs, ["sum"], 17, {"k": floats(3, 4)})


def with_cut_rows():
    """A branch asks of what was cut before how long it is."""
    then = graph([node("Mul", ["part", "k"], ["t"]), node("ReduceSum", ["t"], ["a"], keepdims=0)], {}, ["a"])
    otherwise = graph([node("ReduceMax", ["part"], ["b"], keepdims=0)], {}, ["b"])
    nodes = [
        node("Slice", ["x", "at", "last"], ["part"]),
        node("If", ["c"], ["sum"], then_branch=then, else_branch=otherwise),
    ]
    inputs = {"x": (np.float32, (5,)), "c": (np.bool_, ()), "at": (np.int64, (1,))}
    return make_model(nodes, inputs, ["sum"], 17, {"k": floats(3), "last": np.array([3])})


@pytest.mark.parametrize(("make", "shape", "fitting"), [(with_run_time_axes, (3, 4), 0), (with_cut_rows, (5,), 0)])
def test_a_branch_asks_of_extents_of_a_run_what_its_operators_do(make, shape, fitting):
    model = make()
    feeds = {"x": floats(*shape), "at": np.array([fitting])}
    for holds in (True, False):
        agree(model, feeds | {"c": np.array(holds)})


def test_extents_of_a_run_that_a_branch_cannot_take_are_refused_there():
    engine = lw.Engine(lw.compile(with_run_time_axes()))
    feeds = {"x": floats(3, 4), "at": np.array([2])}
    with pytest.raises(lw.LoopwrightError, match="should be 1 or 3"):
        engine(feeds | {"c": np.array(True)})
    engine(feeds | {"c": np.array(False)})


# Loop


def counting(condition_by):
    """A body that doubles what it carries, adds the number and a value from outside, and says whether to go on."""
    return graph(
        [
            node("Cast", ["number"], ["k"], to=onnx.TensorProto.FLOAT),
            node("Add", ["state", "k"], ["a"]),
            node("Mul", ["a", "outside"], ["next"]),
            node("ReduceMax", ["next"], ["largest"], keepdims=0),
            node("Less", ["largest", "limit"], ["small"]),
            node("Identity", ["small" if condition_by == "value" else "holds"], ["go"]),
            node("ReduceSum", ["next"], ["row"], keepdims=1),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, (4,))},
        ["go", "next"],
        {"limit": np.float32(50)},
    )


def loop_model(version, trips, condition, condition_by="value"):
    names = ["m" if trips is not None else "", "c" if condition is not None else "", "x"]
    nodes = [node("Exp", ["o"], ["outside"]), node("Loop", names, ["y"], body=counting(condition_by))]
    fed = {"x": floats(4, low=0.5), "o": floats(4, low=0.1, high=0.6)}
    stored = {}
    for name, value in (("m", trips), ("c", condition)):
        if isinstance(value, np.ndarray):
            fed[name] = value
        elif value is not None:
            stored[name] = np.array(value)
    return make_model(nodes, fed, ["y"], version, stored), fed


@pytest.mark.parametrize("version", IF_VERSIONS[1:])
def test_loop(version):
    agree(*loop_model(version, np.array(3), np.array(True)))


TRIPS = (None, 0, 1, 7, np.array(0), np.array(1), np.array(6))
CONDITIONS = (None, True, False, np.array(True), np.array(False))
ENDINGS = [
    (trips, condition, condition_by)
    for trips in TRIPS
    for condition in CONDITIONS
    for condition_by in ("value", "input")
    if trips is not None or (condition is not None and condition_by == "value")
]


@pytest.mark.parametrize(("trips", "condition", "condition_by"), ENDINGS)
def test_loops_end_by_trips_and_conditions(trips, condition, condition_by):
    model, fed = loop_model(13, trips, condition, condition_by)
    holds = None if condition is None else bool(condition)
    most = None if trips is None else int(trips)
    wanted = by_iterations(counting(condition_by), 13, most, holds, [fed["x"]], {"outside": np.exp(fed["o"])})
    compare(run(model, fed), wanted)


@pytest.mark.parametrize("most", [2**63 - 1, 2**62 + 1])
def test_a_loop_may_have_more_trips_than_any_index_counts(most):
    """So exporters write one that only its condition ends."""
    model, fed = loop_model(13, most, True)
    compare(
        run(model, fed), by_iterations(counting("value"), 13, most, True, [fed["x"]], {"outside": np.exp(fed["o"])})
    )


def test_a_loop_that_nothing_ends_is_refused():
    model, _ = loop_model(13, None, None)
    with pytest.raises(lw.ModelError, match="nothing ends the loop"):
        lw.from_onnx(model)


def rows_body():
    return graph(
        [
            node("Add", ["state", "w"], ["next"]),
            node("Mul", ["next", "next"], ["row"]),
            node("Identity", ["holds"], ["go"]),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, (2, 3))},
        ["go", "next", "row", "number"],
    )


def test_a_loop_stacks_rows_where_its_trips_are_known():
    nodes = [node("Loop", ["m", "", "x"], ["y", "rows", "numbers"], body=rows_body())]
    fed = {"x": floats(2, 3), "w": floats(3)}
    model = make_model(nodes, fed, ["y", "rows", "numbers"], 13, {"m": np.array(5)})
    compare(run(model, fed), by_iterations(rows_body(), 13, 5, None, [fed["x"]], {"w": fed["w"]}))


def test_a_loop_has_as_many_trips_as_a_dimension():
    nodes = [
        node("Shape", ["s"], ["extents"]),
        node("Gather", ["extents", "zero"], ["m"]),
        node("Loop", ["m", "", "x"], ["y", "rows", "numbers"], body=rows_body()),
    ]
    inputs = {"x": (np.float32, (2, 3)), "w": (np.float32, (3,)), "s": (np.int8, ("n", 2))}
    model = make_model(nodes, inputs, ["y", "rows", "numbers"], 13, {"zero": np.array(0)})
    engine = lw.Engine(lw.compile(model))
    for rows in (4, 0, 1):
        feeds = {"x": floats(2, 3), "w": floats(3), "s": np.zeros((rows, 2), np.int8)}
        y, stacked, numbers = by_iterations(rows_body(), 13, rows, None, [feeds["x"]], {"w": feeds["w"]})
        compare(engine(feeds), [y, stacked.reshape(rows, 2, 3).astype(np.float32), numbers.astype(np.int64)])


def doubling():
    """A body that doubles what it carries while it is small, and gives rows of it, and of numbers."""
    return graph(
        [
            node("Add", ["state", "state"], ["next"]),
            node("ReduceMax", ["next"], ["largest"], keepdims=0),
            node("Less", ["largest", "limit"], ["go"]),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, (2, 3))},
        ["go", "next", "next", "number"],
        {"limit": np.float32(50)},
    )


@pytest.mark.parametrize("condition", ["", "c"])
def test_rows_are_as_many_as_a_run_has_iterations(condition):
    nodes = [node("Loop", ["m", condition, "x"], ["y", "rows", "numbers"], body=doubling())]
    nodes += [node("ReduceSum", ["rows"], ["sum"], keepdims=0), node("Transpose", ["rows"], ["turned"])]
    fed = {"x": floats(2, 3, low=0.1), "m": np.array(4)} | ({"c": np.array(True)} if condition else {})
    engine = lw.Engine(lw.compile(make_model(nodes, fed, ["y", "rows", "numbers", "sum", "turned"], 13)))
    for most, scale in ((4, 1.0), (0, 1.0), (9, 1.0), (3, 20.0), (9, 0.1)):
        feeds = fed | {"x": fed["x"] * np.float32(scale), "m": np.array(most)}
        y, rows, numbers = by_iterations(doubling(), 13, most, True if condition else None, [feeds["x"]], {})
        rows = rows.reshape(-1, 2, 3).astype(np.float32)
        compare(engine(feeds), [y, rows, numbers.astype(np.int64), rows.sum(dtype=np.float32), rows.T], 1e-4)


@pytest.mark.parametrize("most", [None, 2**63 - 1])
def test_rows_of_a_loop_that_only_its_condition_ends(most):
    nodes = [node("Loop", ["" if most is None else "m", "c", "x"], ["y", "rows", "numbers"], body=doubling())]
    stored = {} if most is None else {"m": np.array(most)}
    fed = {"x": floats(2, 3, low=0.1), "c": np.array(True)}
    engine = lw.Engine(lw.compile(make_model(nodes, fed, ["y", "rows", "numbers"], 13, stored), progress=False))
    for scale, holds in ((1.0, True), (20.0, True), (0.001, True), (1.0, False)):
        feeds = {"x": fed["x"] * np.float32(scale), "c": np.array(holds)}
        y, rows, numbers = by_iterations(doubling(), 13, most, holds, [feeds["x"]], {})
        compare(engine(feeds), [y, rows.reshape(-1, 2, 3).astype(np.float32), numbers.astype(np.int64)])


def collecting(condition):
    """A body that halves a value while it is large, and concatenates it to what it has so far."""
    return graph(
        [
            node("Mul", ["state", "half"], ["next"]),
            node("Concat", ["list", "next"], ["longer"], axis=0),
            node("ReduceMax", ["longer" if condition == "list" else "next"], ["largest"], keepdims=0),
            node("Size", ["longer"], ["count"]),
            node("Greater", ["largest", "limit"], ["large"]),
            node("Less", ["count", "most"], ["few"]),
            node("Identity", ["few" if condition == "count" else "large"], ["go"]),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, (2,)), "list": (np.float32, ("k",))},
        ["go", "next", "longer"],
        {"limit": np.float32(1), "half": np.float32(0.5), "most": np.array(9)},
    )


def collecting_model(condition):
    nodes = [node("Loop", ["", "c", "x", "none"], ["y", "all"], body=collecting(condition))]
    return make_model(nodes, {"x": floats(2)}, ["y", "all"], 13, {"none": np.zeros(0, np.float32), "c": np.array(True)})


@pytest.mark.parametrize("condition", ["value", "list", "count"])
def test_a_loop_concatenates_until_a_value_or_the_result_itself_ends_it(condition):
    engine = lw.Engine(lw.compile(collecting_model(condition), jobs=1, progress=False))
    for scale in (0.2, 1.0, 9.0, 1000.0):
        x = floats(2, low=0.5) * np.float32(scale)
        if condition == "list" and x.max() > 2:
            continue  # it holds the first value for ever
        y, collected = by_iterations(collecting(condition), 13, None, True, [x, np.zeros(0, np.float32)], {})
        compare(engine({"x": x}), [y, collected])


def test_rows_of_what_is_drawn_until_a_condition_ends_the_loop():
    body = graph(
        [
            node("Bernoulli", ["chance"], ["drawn"]),
            node("Greater", ["drawn", "limit"], ["go"]),
            node("Add", ["state", "drawn"], ["next"]),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, ())},
        ["go", "next", "next"],
        {"limit": np.float32(0.5), "chance": np.float32(0.9)},
    )
    nodes = [node("Loop", ["", "c", "x"], ["y", "rows"], body=body)]
    model = make_model(nodes, {"x": np.zeros((), np.float32)}, ["y", "rows"], 15, {"c": np.array(True)})
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for _ in range(9):
        y, rows = engine({"x": np.array(2, np.float32)})
        np.testing.assert_array_equal(rows, 2 + np.minimum(np.arange(1, len(rows) + 1), len(rows) - 1))
        assert y == rows[-1]


def test_a_loop_concatenates_rows_in_a_branch():
    """How many there are behind an iteration is computed before the branch, but differs by iteration."""
    then = graph([node("Concat", ["state", "row"], ["longer"], axis=0)], {}, ["longer"])
    otherwise = graph([node("Identity", ["state"], ["same"])], {}, ["same"])
    body = graph(
        [
            node("Gather", ["x", "number"], ["flat"]),
            node("ReduceSum", ["flat"], ["sum"], keepdims=0),
            node("Unsqueeze", ["flat", "first"], ["row"]),
            node("Greater", ["sum", "zero"], ["positive"]),
            node("If", ["positive"], ["next"], then_branch=then, else_branch=otherwise),
            node("Identity", ["holds"], ["go"]),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, ("rows", 3))},
        ["go", "next"],
        {"zero": np.float32(0)},
    )
    nodes = [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "begin"], ["m"])]
    nodes += [node("Loop", ["m", "", "none"], ["y"], body=body)]
    stored = {"begin": np.array(0), "first": np.array([0]), "none": np.zeros((0, 3), np.float32)}
    engine = lw.Engine(lw.compile(make_model(nodes, {"x": (np.float32, ("n", 3))}, ["y"], 13, stored), progress=False))
    for rows in (1, 7, 40):
        x = floats(rows, 3, low=-1, seed=rows)
        compare(engine({"x": x}), [x[x.sum(1) > 0]])


def test_operands_of_which_only_a_run_knows_how_many_numbers_they_have_may_have_one():
    """A bound of a slice, and a condition, that are slices themselves, of a data-dependent beginning."""
    kept = graph([node("Slice", ["x", "start", "end"], ["t"])], {}, ["t"])
    whole = graph([node("Identity", ["x"], ["e"])], {}, ["e"])
    nodes = [
        node("Add", ["k", "one"], ["next"]),
        node("Slice", ["table", "k", "next"], ["start"]),
        node("Add", ["next", "one"], ["last"]),
        node("Slice", ["table", "next", "last"], ["end"]),
        node("Less", ["start", "end"], ["c"]),
        node("If", ["c"], ["part"], then_branch=kept, else_branch=whole),
        node("ReduceSum", ["part"], ["y"], keepdims=0),
    ]
    inputs = {"x": (np.float32, (9, 2)), "table": (np.int64, ("n",)), "k": (np.int64, (1,))}
    model = make_model(nodes, inputs, ["y"], 13, {"one": np.array([1])})
    engine = lw.Engine(lw.compile(model))
    x, table = floats(9, 2), np.array([0, 4, 4, 9, 2])
    for k in range(4):
        feeds = {"x": x, "table": table, "k": np.array([k])}
        compare(engine(feeds), ReferenceEvaluator(model).run(None, feeds))
    with pytest.raises(lw.LoopwrightError, match="should be 1, found Slice_start_1 = 1, Slice_end_1 = 0"):
        engine({"x": x, "table": table, "k": np.array([4])})


def test_what_doubles_in_each_iteration_runs_as_long_as_there_is_memory():
    body = graph(
        [node("Concat", ["state", "state"], ["next"], axis=0), node("Identity", ["holds"], ["go"])],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, None)},
        ["go", "next"],
    )
    nodes = [node("Loop", ["m", "", "x"], ["y"], body=body)]
    x, inputs = floats(2), {"m": (np.int64, ()), "x": (np.float32, (2,))}
    engine = lw.Engine(lw.compile(make_model(nodes, inputs, ["y"], 13), jobs=1, progress=False), memory=1 << 20)
    for trips in (0, 1, 12, 100, 3):
        feeds = {"m": np.array(trips), "x": x}
        if trips == 100:
            with pytest.raises(lw.OutOfMemoryError, match=r"append_to_segment|loop.*, iteration 1\d: .*The limit is"):
                engine(feeds)
        else:
            compare(engine(feeds), [np.tile(x, 2**trips)])


# Scan


def scan_body():
    return graph(
        [
            node("MatMul", ["h", "w"], ["p"]),
            node("Add", ["p", "a"], ["q"]),
            node("Mul", ["q", "b"], ["r"]),
            node("Tanh", ["r"], ["g"]),
            node("Transpose", ["g"], ["turned"]),
        ],
        {"h": (np.float32, (2, 3)), "a": (np.float32, (2, 3)), "b": (np.float32, (2, 3))},
        ["g", "q", "turned"],
    )


def scan_model(version, axes, directions, out_axes, out_directions, length=5):
    a, b = (np.moveaxis(floats(length, 2, 3, seed=k), 0, axis) for k, axis in enumerate(axes))
    fed = {"h": floats(2, 3), "a": np.ascontiguousarray(a), "b": np.ascontiguousarray(b)}
    scan = node(
        "Scan", ["h", "a", "b"], ["last", "y", "z"], body=scan_body(), num_scan_inputs=2, scan_input_axes=axes,
        scan_input_directions=directions, scan_output_axes=out_axes, scan_output_directions=out_directions,
    )  # fmt: skip
    return make_model([scan], fed, ["last", "y", "z"], version, {"w": floats(3, 3, seed=3)}), fed


@pytest.mark.parametrize("version", SCAN_VERSIONS)
def test_scan(version):
    agree(*scan_model(version, [0, 0], [0, 0], [0, 0], [0, 0]))


@pytest.mark.parametrize(
    ("axes", "directions", "out_axes", "out_directions"),
    [([1, 0], [0, 0], [1, 2], [0, 0]), ([0, 0], [1, 0], [0, 0], [0, 1]), ([-1, 1], [1, 1], [-1, 1], [1, 0])],
)
def test_scans_along_other_axes_and_backwards(axes, directions, out_axes, out_directions):
    # onnx's evaluator knows neither: what it computes of rows in the order that is meant is brought to the same form.
    model, fed = scan_model(16, axes, directions, out_axes, out_directions)
    plain, _ = scan_model(16, [0, 0], [0, 0], [0, 0], [0, 0])
    rows = {"h": fed["h"]}
    for name, axis, back in zip("ab", axes, directions, strict=True):
        moved = np.moveaxis(fed[name], axis, 0)
        rows[name] = np.ascontiguousarray(moved[::-1] if back else moved)
    last, *stacked = ReferenceEvaluator(plain).run(None, rows)
    turned = [s[::-1] if back else s for s, back in zip(stacked, out_directions, strict=True)]
    compare(run(model, fed), [last, *map(np.moveaxis, turned, [0, 0], out_axes)])


def test_a_state_of_open_extents_stays_as_an_iteration_gives_it():
    """Each run checks that it has those extents before."""
    body = graph([node("Add", ["h", "row"], ["after"])], {"h": None, "row": None}, ["after"])
    scan = node("Scan", ["h", "rows"], ["last"], body=body, num_scan_inputs=1)
    fed = {"h": floats(2, 3), "rows": floats(4, 2, 3, seed=1)}
    model = make_model([scan], fed, ["last"], 21)
    for axis in range(2):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
    agree(model, fed)
    with pytest.raises(lw.RuntimeArgumentError, match="h should have shape"):
        run(model, {**fed, "h": floats(3, 3)})


@pytest.mark.parametrize("nested", [False, True])
def test_a_body_compares_extents_of_tensors_that_it_does_not_read(nested):
    """Halves of inputs, which only formulas over their extents tell: each run checks that they are alike, or 1."""
    add = [node("Add", ["v", "other"], ["w"]), node("Identity", ["c"], ["again"])]
    if nested:
        first = {
            name: graph([node(op, ["v", "other"], [name])], {}, [name]) for name, op in (("s", "Add"), ("d", "Sub"))
        }
        add[0] = node("If", ["c"], ["w"], then_branch=first["s"], else_branch=first["d"])
    body = graph(add, {"i": None, "c": None, "v": None}, ["again", "w"])
    halves = [node("Reshape", [name, "two"], [half]) for name, half in (("x", "first"), ("y", "other"))]
    loop = node("Loop", ["trips", "yes", "first"], ["last"], body=body)
    fed = {"x": floats(3, 8), "y": floats(4, 6, seed=1), "yes": np.array(True)}
    stored = {"two": np.array([2, -1]), "trips": np.array(3)}
    model = make_model([*halves, loop], fed, ["last"], 21, stored)
    for k in range(2):
        for axis in range(2):
            model.graph.input[k].type.tensor_type.shape.dim[axis].dim_param = f"n{k}{axis}"
    agree(model, fed)
    with pytest.raises((lw.RuntimeArgumentError, lw.KernelError), match="should be"):
        run(model, {**fed, "y": floats(4, 4)})


# Together


def test_control_flow_in_control_flow_reads_values_of_all_graphs_around():
    inner = graph(
        [
            node("Mul", ["state2", "x"], ["m"]),
            node("Add", ["m", "state"], ["next2"]),
            node("Identity", ["holds2"], ["go2"]),
        ],
        {"number2": (np.int64, ()), "holds2": (np.bool_, ()), "state2": (np.float32, (3,))},
        ["go2", "next2"],
    )
    branches = {
        "then_branch": graph([node("Loop", ["number", "", "state"], ["t"], body=inner)], {}, ["t"]),
        "else_branch": graph([node("Sub", ["state", "doubled"], ["e"])], {}, ["e"]),
    }
    outer = graph(
        [
            node("ReduceSum", ["state"], ["total"], keepdims=0),
            node("Less", ["total", "zero"], ["negative"]),
            node("If", ["negative"], ["next"], **branches),
            node("Identity", ["holds"], ["go"]),
        ],
        {"number": (np.int64, ()), "holds": (np.bool_, ()), "state": (np.float32, (3,))},
        ["go", "next", "state"],
    )
    nodes = [node("Add", ["x", "x"], ["doubled"]), node("Loop", ["m", "", "s"], ["y", "states"], body=outer)]
    fed = {"x": floats(3, low=0.2, high=0.9), "s": floats(3, seed=2)}
    state, states = fed["s"], []
    for number in range(6):
        states.append(state)
        if state.sum() < 0:
            before = state
            for _ in range(number):
                state = state * fed["x"] + before
        else:
            state = state - 2 * fed["x"]
    model = make_model(nodes, fed, ["y", "states"], 13, {"m": np.array(6), "zero": np.float32(0)})
    compare(run(model, fed), [state, np.array(states)])


BACKEND = ("test_if", "test_scan_sum", "test_scan9_sum", "test_scan9_multi_state", "test_scan9_scalar")


def backend_case(name):
    """A case of onnx's: importing its module enters it in a list."""
    for module in ("if_", "scan"):
        importlib.import_module(f"onnx.backend.test.case.node.{module}")
    return next(case for case in node_cases._NodeTestCases if case.name == name)


@pytest.mark.parametrize("name", BACKEND)
def test_cases_of_the_official_runner(name):
    case = backend_case(name)
    for inputs, expected in case.data_sets:
        for found, wanted in zip(onnx_backend.run_model(case.model, inputs), expected, strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=case.rtol, atol=case.atol)


def squeezing(window):
    """Pools x, drops the last axis where it has one element, as exporters write ``squeeze``, and multiplies: a product
    of matrices, which rank 3 would not be."""
    squeezed = graph([node("Squeeze", ["p", "two"], ["t"])], {}, ["t"])
    kept = graph([node("Identity", ["p"], ["e"])], {}, ["e"])
    nodes = [
        node("MaxPool", ["x"], ["p"], kernel_shape=[window], strides=[window]),
        node("Shape", ["p"], ["extents"]),
        node("Gather", ["extents", "last"], ["extent"], axis=0),
        node("Equal", ["extent", "one"], ["single"]),
        node("If", ["single"], ["s"], then_branch=squeezed, else_branch=kept),
        node("Gemm", ["s", "w"], ["g"]),
        node("Add", ["g", "state"], ["r"]),
    ]
    stored = {"two": np.array([2]), "last": np.array(2), "one": np.array(1), "w": floats(1, 3)}
    return graph(nodes, {}, ["r"], stored)


def squeezing_model():
    nodes = [node("If", ["c"], ["y"], then_branch=squeezing(4), else_branch=squeezing(8))]
    inputs = {"x": (np.float32, ("b", 1, "n")), "state": (np.float32, ("samples", 3)), "c": (np.bool_, ())}
    return make_model(nodes, inputs, ["y"], 13)


def test_an_open_axis_is_dropped_where_it_is_one_and_a_branch_that_is_not_taken_asks_for_nothing():
    engine = lw.Engine(lw.compile(squeezing_model()))
    for holds, n, b in ((True, 5, 2), (False, 9, 3), (True, 4, 1), (False, 15, 2)):
        feeds = {"x": floats(b, 1, n), "state": floats(b, 3), "c": np.array(holds)}
        compare(engine(feeds), ReferenceEvaluator(squeezing_model()).run(None, feeds))


@pytest.mark.parametrize(("holds", "n"), [(True, 9), (False, 16)])
def test_an_open_axis_that_should_be_one_is_refused_where_it_is_not(holds, n):
    engine = lw.Engine(lw.compile(squeezing_model()))
    with pytest.raises(lw.LoopwrightError, match="should be 1"):
        engine({"x": floats(2, 1, n), "state": floats(2, 3), "c": np.array(holds)})
    feeds = {"x": floats(2, 1, 5), "state": floats(2, 3), "c": np.array(True)}
    compare(engine(feeds), ReferenceEvaluator(squeezing_model()).run(None, feeds))
