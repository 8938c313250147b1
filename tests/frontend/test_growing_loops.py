"""Loops that give what nobody knows the size of before: memory grows while they run."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright.base.idle_memory import IDLE_RUNS

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
NAMES = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT, np.dtype(np.bool_): BOOL}


def info(name, kind=None, shape=None):
    return onnx.ValueInfoProto(name=name) if kind is None else helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def stored(**values):
    return [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]


def loop(nodes, carried, rows, outputs, trips="m", condition="true", kinds=None, inner=""):
    """A Loop whose body has ``i``, ``c`` and what is ``carried``: ``{name: first}``; it gives ``c_`` and ``name_`` for
    each, and ``rows``. Names of the first two begin with ``inner`` in the body of another loop."""
    kinds = {**dict.fromkeys(carried, FLOAT), **(kinds or {})}
    i, c, again = f"{inner}i", f"{inner}c", f"{inner}c_"
    given = [info(i, INT, []), info(c, BOOL, []), *(info(name, kinds[name], None) for name in carried)]
    if not any(again in each.output for each in nodes):
        nodes = [node("Identity", [c], [again]), *nodes]
    results = [info(again, BOOL, []), *(info(f"{name}_", kinds[name], None) for name in carried)]
    body = helper.make_graph(
        nodes, "body", given, [*results, *(info(row, kinds.get(row, FLOAT), None) for row in rows)]
    )
    return node("Loop", [trips, condition, *carried.values()], outputs, body=body)


def model_of(nodes, inputs, outputs, constants=(), opset=18):
    given = [info(name, NAMES[np.dtype(kind)], shape) for name, (kind, shape) in inputs.items()]
    wanted = [info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph(nodes, "g", given, wanted, [*constants, *stored(true=np.array(True))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def library_of(model):
    return lw.compile(model, jobs=1, progress=False)


def same(found, wanted, tolerance=0.0):
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance)


def check(model, feeds, tolerance=1e-6, evaluator_too=True):
    """An engine gives what onnxruntime gives for all feeds in turn, and onnx's evaluator where that can."""
    engine = lw.Engine(library_of(model))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    evaluator = ReferenceEvaluator(model)
    for fed in feeds:
        found = engine(fed)
        same(found, session.run(None, fed), tolerance)
        if evaluator_too:
            same(found, evaluator.run(None, fed), tolerance)
    return engine


def floats(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def count(number):
    return np.array(number, np.int64)


# Rows whose extents iterations compute.


def pasted():
    """Rows [w] made of a part of x, of a size that data decide, between zeros: as masks are pasted into an image."""
    body = [
        node("Gather", ["begins", "i"], ["begin"]),
        node("Unsqueeze", ["begin", "axes"], ["b"]),
        node("Gather", ["ends", "i"], ["end"]),
        node("Unsqueeze", ["end", "axes"], ["e"]),
        node("Slice", ["x", "b", "e"], ["part"]),
        node("Sub", ["w", "e"], ["after"]),
        node("ConstantOfShape", ["b"], ["left"]),
        node("ConstantOfShape", ["after"], ["right"]),
        node("Concat", ["left", "part", "right"], ["row"], axis=0),
    ]
    around = [node("Shape", ["x"], ["w"]), node("Size", ["begins"], ["m"])]
    return around, body


PASTED = {"x": (np.float32, ["w"]), "begins": (np.int64, ["n"]), "ends": (np.int64, ["n"])}


def pasted_feeds():
    rng = np.random.default_rng(0)
    for rows, width in ((3, 7), (1, 4), (0, 4), (20, 300), (2, 9)):
        begins = rng.integers(0, width, rows)
        yield {"x": floats(width, seed=rows), "begins": begins, "ends": rng.integers(begins, width + 1)}


def test_rows_of_extents_that_data_decide():
    around, body = pasted()
    model = model_of([*around, loop(body, {}, ["row"], ["y"])], PASTED, {"y": FLOAT}, stored(axes=[0]))
    engine = lw.Engine(library_of(model))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for fed in pasted_feeds():
        (found,) = engine(fed)
        (wanted,) = session.run(None, fed)
        np.testing.assert_array_equal(found.reshape(wanted.shape) if not wanted.size else found, wanted)


def test_what_is_concatenated_to_rows_of_extents_that_data_decide():
    """As torchvision's Mask R-CNN collects its masks."""
    around, body = pasted()
    body += [node("Unsqueeze", ["row", "axes"], ["new"]), node("Concat", ["all", "new"], ["all_"], axis=0)]
    around += [node("Concat", ["axes", "w"], ["none_shape"], axis=0), node("ConstantOfShape", ["none_shape"], ["none"])]
    model = model_of([*around, loop(body, {"all": "none"}, [], ["y"])], PASTED, {"y": FLOAT}, stored(axes=[0]))
    check(model, pasted_feeds())


def test_rows_of_other_extents_than_those_before_are_refused_by_the_run():
    body = [node("Gather", ["sizes", "i"], ["size"]), node("Unsqueeze", ["size", "axes"], ["shape"])]
    body += [node("ConstantOfShape", ["shape"], ["row"])]
    nodes = [node("Size", ["sizes"], ["m"]), loop(body, {}, ["row"], ["y"])]
    engine = lw.Engine(library_of(model_of(nodes, {"sizes": (np.int64, ["n"])}, {"y": FLOAT}, stored(axes=[0]))))
    same(engine({"sizes": np.array([3, 3, 3])}), [np.zeros((3, 3), np.float32)])
    with pytest.raises(lw.KernelError, match=r"iteration 2: ConstantOfShape_row should be Loop_y"):
        engine({"sizes": np.array([3, 3, 4])})
    same(engine({"sizes": np.array([5])}), [np.zeros((1, 5), np.float32)])


def until(limit):
    """A body that adds to ``s``, until that is above a limit."""
    return [
        node("Add", ["s", "x"], ["s_"]),
        node("ReduceMax", ["s_"], ["top"], keepdims=0),
        node("Less", ["top", limit], ["c_"]),
        node("Mul", ["s_", "s_"], ["row"]),
    ]


@pytest.mark.parametrize("most", ["", "m"])
def test_rows_of_a_loop_that_a_condition_ends(most):
    nodes = [loop(until("limit"), {"s": "x"}, ["row"], ["last", "rows"], most, "go")]
    inputs = {"x": (np.float32, ["n", 2]), "limit": (np.float32, []), "go": (np.bool_, [])}
    inputs |= {"m": (np.int64, [])} if most else {}
    model = model_of(nodes, inputs, {"last": FLOAT, "rows": FLOAT})

    def feeds():
        for rows, limit, trips in ((3, 50, 2**62), (1, 2, 5), (4, 1000, 7), (2, 900, 2**62), (1, 5, 1)):
            x = np.abs(floats(rows, 2)) + np.float32(0.5)
            fed = {"x": x, "limit": np.array(limit, np.float32), "go": np.array(True)}
            yield fed | ({"m": count(trips)} if most else {})

    engine = check(model, feeds(), evaluator_too=False)
    fed = {"x": floats(3, 2), "limit": np.array(1, np.float32), "go": np.array(False)}
    last, rows = engine(fed | ({"m": count(3)} if most else {}))
    same([last, rows], [fed["x"], np.zeros((0, 3, 2), np.float32)])


def test_rows_of_a_loop_of_at_most_so_many_iterations_that_there_is_no_memory_for_all():
    """As exporters write 2**31 - 1 for loops that a condition ends."""
    constants = stored(m=count(2**31 - 1), go=np.array(True))
    nodes = [loop(until("limit"), {"s": "x"}, ["row"], ["last", "rows"], "m", "go")]
    inputs = {"x": (np.float32, ["n", 2]), "limit": (np.float32, [])}
    model = model_of(nodes, inputs, {"last": FLOAT, "rows": FLOAT}, constants)
    feeds = [{"x": np.abs(floats(3, 2)) + 1, "limit": np.array(limit, np.float32)} for limit in (1, 20, 300)]
    check(model, feeds, evaluator_too=False)


def test_what_a_scan_stacks_may_have_extents_that_data_decide():
    scanned = helper.make_graph(
        [
            node("Unsqueeze", ["b", "axes"], ["begin"]),
            node("Sub", ["w", "begin"], ["after"]),
            node("ConstantOfShape", ["begin"], ["left"]),
            node("ConstantOfShape", ["after"], ["right"], value=helper.make_tensor("v", FLOAT, [1], [1])),
            node("Concat", ["left", "right"], ["row"], axis=0),
            node("Add", ["t", "b"], ["t_"]),
        ],
        "scanned",
        [info("t", INT, []), info("b", INT, [])],
        [info("t_", INT, []), info("row", FLOAT, ["k"])],
    )
    for back in (0, 1):
        scan = node("Scan", ["zero", "begins"], ["total", "y"], body=scanned, num_scan_inputs=1)
        scan.attribute.append(helper.make_attribute("scan_output_directions", [back]))
        inputs = {"w": (np.int64, [1]), "begins": (np.int64, ["n"])}
        model = model_of([scan], inputs, {"total": INT, "y": FLOAT}, stored(axes=[0], zero=0))
        engine = lw.Engine(library_of(model))
        for width, begins in ((5, [0, 5, 2]), (3, [1]), (4, [4, 4, 0, 1])):
            found = engine({"w": np.array([width]), "begins": np.array(begins)})
            wanted = (np.arange(width)[None] >= np.array(begins)[:, None]).astype(np.float32)
            same(found, [np.array(sum(begins)), wanted[::-1] if back else wanted])


# Carried values that nothing bounds.


def doubled(times="m", condition=""):
    body = [node("Concat", ["a", "a"], ["a_"], axis=0)]
    return model_of(
        [loop(body, {"a": "x"}, [], ["y"], times, condition)],
        {"x": (np.float32, ["n", 3]), "m": (np.int64, [])},
        {"y": FLOAT},
    )


def test_a_value_that_doubles():
    feeds = [{"x": floats(n, 3), "m": count(m)} for n, m in ((2, 0), (2, 1), (1, 9), (5, 3), (0, 4))]
    check(doubled(), feeds, evaluator_too=False)


def test_memory_that_is_refused_is_an_error_that_names_the_step_and_the_iteration():
    engine = lw.Engine(library_of(doubled()), memory=1 << 20)
    x = floats(2, 3)
    with pytest.raises(lw.OutOfMemoryError, match=r"loop.*, iteration 1\d: .*The limit is 1048576"):
        engine({"x": x, "m": count(60)})
    assert engine.memory().held <= 1 << 20
    same(engine({"x": x, "m": count(3)}), [np.tile(x, (8, 1))])
    engine.trim()
    assert engine.memory().held < 1000
    same(engine({"x": x, "m": count(2)}), [np.tile(x, (4, 1))])


def test_values_that_change_their_shapes_and_take_the_place_of_each_other():
    """Lengths are Fibonacci's numbers."""
    body = [node("Identity", ["b"], ["a_"]), node("Concat", ["a", "b"], ["b_"], axis=0)]
    nodes = [loop(body, {"a": "x", "b": "y"}, [], ["p", "q"])]
    inputs = {"x": (np.float32, ["n"]), "y": (np.float32, ["k"]), "m": (np.int64, [])}
    model = model_of(nodes, inputs, {"p": FLOAT, "q": FLOAT})
    check(model, [{"x": floats(n), "y": floats(k), "m": count(m)} for n, k, m in ((1, 2, 0), (1, 2, 1), (0, 1, 12))])


def test_what_is_chosen_of_a_value_that_grows():
    """It grows by what is above 0 of the row, and what is below a bound leaves it."""
    body = [
        node("Gather", ["x", "i"], ["row"]),
        node("Greater", ["row", "zero"], ["above"]),
        node("Compress", ["row", "above"], ["new"], axis=0),
        node("Concat", ["a", "new", "a"], ["longer"], axis=0),
        node("Less", ["longer", "bound"], ["below"]),
        node("Compress", ["longer", "below"], ["a_"], axis=0),
    ]
    nodes = [loop(body, {"a": "none"}, [], ["y"])]
    inputs = {"x": (np.float32, ["n", 5]), "m": (np.int64, [])}
    constants = stored(zero=np.float32(0), bound=np.float32(1.5), none=np.zeros(0, np.float32))
    check(
        model_of(nodes, inputs, {"y": FLOAT}, constants),
        [{"x": floats(9, 5, seed=k), "m": count(k)} for k in (0, 1, 5, 9, 3)],
    )


@pytest.mark.parametrize("holds", [True, False])
def test_a_loop_in_a_branch_runs_where_that_is_taken(holds):
    """The other branch would never end."""
    inner = [node("Concat", ["a", "a"], ["a_"], axis=0), node("Size", ["a_"], ["size"])]
    inner += [node("Less", ["size", "limit"], ["c_"])]
    then = helper.make_graph([loop(inner, {"a": "x"}, [], ["p"], "", "go")], "then", [], [info("p")])
    endless = [node("Concat", ["a", "x"], ["a_"], axis=0)]
    loops = [then, helper.make_graph([loop(endless, {"a": "x"}, [], ["q"], "", "go")], "other", [], [info("q")])]
    branches = loops if holds else loops[::-1]
    nodes = [node("If", ["holds"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    inputs = {"x": (np.float32, ["n"]), "limit": (np.int64, []), "holds": (np.bool_, [])}
    engine = lw.Engine(library_of(model_of(nodes, inputs, {"y": FLOAT}, stored(go=np.array(True)))))
    for size, limit in ((3, 20), (1, 1), (2, 500)):
        times = max(1, int(np.ceil(np.log2(limit / size))))
        fed = {"x": floats(size), "limit": count(limit), "holds": np.array(holds)}
        same(engine(fed), [np.tile(fed["x"], 2**times)])


def test_loops_that_grow_within_each_other():
    """The inner one doubles what the outer one has added to."""
    inner = [node("Concat", ["b", "b"], ["b_"], axis=0)]
    body = [
        node("Gather", ["times", "i"], ["k"]),
        node("Concat", ["a", "x"], ["more"], axis=0),
        loop(inner, {"b": "more"}, [], ["a_"], "k", inner="inner_"),
    ]
    nodes = [node("Size", ["times"], ["m"]), loop(body, {"a": "x"}, [], ["y"])]
    model = model_of(nodes, {"x": (np.float32, ["n"]), "times": (np.int64, ["t"])}, {"y": FLOAT})
    check(model, [{"x": floats(2), "times": np.array(t, np.int64)} for t in ([], [0], [1], [2, 0, 1], [3, 1, 2, 0])])


def test_two_loops_of_one_body_have_memory_of_their_own():
    body = [node("Concat", ["a", "a"], ["a_"], axis=0)]
    nodes = [loop(body, {"a": "x"}, [], ["p"]), loop(body, {"a": "y"}, [], ["q"])]
    nodes += [node("Concat", ["p", "q"], ["z"], axis=0)]
    inputs = {"x": (np.float32, ["n"]), "y": (np.float32, ["k"]), "m": (np.int64, [])}
    check(model_of(nodes, inputs, {"z": FLOAT}), [{"x": floats(2), "y": floats(3), "m": count(m)} for m in (0, 1, 4)])


def test_a_library_file_has_what_grows(tmp_path):
    path = tmp_path / "doubled.lwlib"
    library_of(doubled()).save(path)
    engine = lw.Engine(lw.load(path))
    for m in (0, 1, 7):
        x = floats(4, 3)
        same(engine({"x": x, "m": count(m)}), [np.tile(x, (2**m, 1))])


def test_memory_stays_between_runs_and_is_not_asked_for_again():
    engine = lw.Engine(library_of(doubled()))
    x = floats(2, 3)
    held = []
    for _ in range(5):
        engine({"x": x, "m": count(10)})
        held.append(engine.memory().held)
    assert held[1:] == held[:1] * 4


def test_memory_that_many_runs_had_no_need_of_is_given_back():
    engine = lw.Engine(library_of(doubled()))
    x = floats(2, 3)
    engine({"x": x, "m": count(14)})
    held = engine.memory().held
    for _ in range(2 * IDLE_RUNS):
        engine({"x": x, "m": count(2)})
    assert engine.memory().held < held / 100
    same(engine({"x": x, "m": count(9)}), [np.tile(x, (2**9, 1))])


def test_a_loop_in_a_branch_of_an_iteration():
    """Every second iteration doubles the value as often as its number says, the others add to it."""
    inner = [node("Concat", ["b", "b"], ["b_"], axis=0)]
    doubles = helper.make_graph([loop(inner, {"b": "a"}, [], ["p"], "i", inner="inner_")], "doubles", [], [info("p")])
    adds = helper.make_graph([node("Concat", ["a", "x"], ["q"], axis=0)], "adds", [], [info("q")])
    body = [
        node("Mod", ["i", "two"], ["rest"]),
        node("Cast", ["rest"], ["odd"], to=BOOL),
        node("If", ["odd"], ["a_"], then_branch=doubles, else_branch=adds),
    ]
    inputs = {"x": (np.float32, ["n"]), "m": (np.int64, [])}
    model = model_of([loop(body, {"a": "x"}, [], ["y"])], inputs, {"y": FLOAT}, stored(two=2))
    engine = lw.Engine(library_of(model))
    for m in (0, 1, 2, 5, 6):
        x = wanted = floats(2)
        for i in range(m):
            wanted = np.tile(wanted, 2**i) if i % 2 else np.concatenate([wanted, x])
        same(engine({"x": x, "m": count(m)}), [wanted])


def test_rows_of_an_inner_loop_are_appended_by_the_outer_one():
    inner = [node("Add", ["v", "x"], ["v_"]), node("Mul", ["v_", "v_"], ["row"])]
    body = [
        node("Gather", ["times", "i"], ["k"]),
        loop(inner, {"v": "s"}, ["row"], ["s_", "rows"], "k", inner="inner_"),
        node("Concat", ["all", "rows"], ["all_"], axis=0),
        node("Identity", ["rows"], ["of_iteration"]),
    ]
    nodes = [node("Size", ["times"], ["m"]), loop(body, {"s": "x", "all": "none"}, ["of_iteration"], ["p", "q", "r"])]
    inputs = {"x": (np.float32, [3]), "times": (np.int64, ["t"])}
    outputs = {"p": FLOAT, "q": FLOAT, "r": FLOAT}
    model = model_of(nodes, inputs, outputs, stored(none=np.zeros((0, 3), np.float32)))
    feeds = [{"x": floats(3), "times": np.array(t, np.int64)} for t in ([2, 2, 2], [1], [5, 5])]
    engine = check(model, feeds, evaluator_too=False)
    with pytest.raises(lw.KernelError, match=r"iteration 1: .* should be "):
        engine({"x": floats(3), "times": np.array([2, 3])})
    x, none = floats(3), np.zeros((0, 3), np.float32)
    same(engine({"x": x, "times": np.array([0, 0])}), [x, none, none[None].repeat(2, 0)])  # where onnxruntime fails
