"""Operands that only a run knows: shapes, indices, widths, counts and axes that are inputs of the model."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}
rng = np.random.default_rng(11)


def model_of(op, inputs, opset=21, outputs=1, open_axes=(), **attributes):
    """A model of one node, each of whose inputs is fed; ``open_axes`` of the first one have no extents."""
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], name="the_node", **attributes)
    shapes = [list(array.shape) for array in inputs]
    for axis in open_axes:
        shapes[0][axis] = f"n{axis}"
    given = [
        helper.make_tensor_value_info(name, KINDS[array.dtype.name], shape)
        for name, array, shape in zip(names, inputs, shapes, strict=True)
    ]
    made = [helper.make_tensor_value_info(f"y{k}", TensorProto.UNDEFINED, None) for k in range(outputs)]
    graph = helper.make_graph([node], "operands", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check(op, settings, **options):
    """One compilation for all settings of the operands, against onnx's reference evaluator."""
    settings = [[np.asarray(array) for array in arrays] for arrays in settings]
    model = model_of(op, settings[0], **options)
    library = lw.compile(model, jobs=1)
    engine, reference = lw.Engine(library), ReferenceEvaluator(model)
    for arrays in settings:
        found = engine(arrays)
        wanted = reference.run(None, {f"i{k}": array for k, array in enumerate(arrays)})
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.shape == np.shape(theirs)
            assert ours.dtype == np.asarray(theirs).dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return engine


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_reshape():
    x = floats(4, 6)
    engine = check("Reshape", [[x, [2, 12]], [x, [-1, 8]], [x, [0, -1]], [x, [24, 1]], [x, [3, 8]]])
    with pytest.raises(lw.RuntimeArgumentError):
        engine([x, np.array([5, 5])])
    with pytest.raises(lw.RuntimeArgumentError, match=r"the shape \(node the_node\) should be 0 or more"):
        engine([x, np.array([-2, -12])])
    assert engine([x, np.array([6, 4])])[0].shape == (6, 4)


def test_reshape_of_open_extents():
    check("Reshape", [[floats(4, 6), [2, 12]], [floats(5, 6), [-1, 10]], [floats(2, 6), [0, 6]]], open_axes=[0])


def test_expand():
    x = floats(1, 3)
    engine = check("Expand", [[x, [2, 4, 3]], [x, [1, 1, 1]], [x, [3, 1, 3]], [x, [0, 2, 3]]])
    with pytest.raises(lw.RuntimeArgumentError, match="3 should be the_node_2, found the_node_2 = 4"):
        engine([x, np.array([2, 2, 4])])


def test_expand_of_open_extents_that_a_run_may_stretch():
    """Of each axis a run alone knows which of both extents is 1, if any."""
    settings = [((3, 4), (3, 4)), ((1, 4), (5, 4)), ((3, 1), (3, 7)), ((1, 1), (2, 2)), ((3, 4), (1, 1))]
    settings += [((0, 4), (1, 4)), ((1, 4), (0, 4))]
    engine = check("Expand", [[floats(*own), wanted] for own, wanted in settings], open_axes=(0, 1))
    with pytest.raises(lw.RuntimeArgumentError, match="the shape"):
        engine([floats(2, 4), np.array([3, 4])])
    check("Expand", [[floats(*own), (2, *wanted)] for own, wanted in settings], open_axes=(0, 1))


def test_expand_keeps_an_extent_that_is_known():
    engine = check("Expand", [[floats(3, 4), (3, 4)], [floats(3, 1), (1, 7)]], open_axes=(1,))
    assert engine.outputs[0].shape[0] == 3
    with pytest.raises(lw.RuntimeArgumentError, match="3 should be the_node_0, found the_node_0 = 2"):
        engine([floats(3, 4), np.array([2, 4])])


def test_tile():
    x = floats(2, 3)
    check("Tile", [[x, [2, 2]], [x, [1, 3]], [x, [0, 1]], [x, [1, 1]]])


@pytest.mark.parametrize("opset", [10, 13])
def test_slice(opset):
    x = floats(7, 8)
    bounds = [([1, 2], [5, 7]), ([-3, 0], [100, -1]), ([5, 3], [2, 3]), ([0, -100], [0, 4])]
    check("Slice", [[x, starts, ends] for starts, ends in bounds], opset=opset)


def test_slice_along_axes_and_by_steps_of_the_run():
    x = floats(7, 8, 3)
    settings = [
        ([1], [6], [0], [2]),
        ([1], [6], [1], [1]),
        ([-1], [-100], [1], [-1]),
        ([6], [1], [-3], [-2]),
        ([2], [2], [2], [3]),
    ]
    check("Slice", [[x, *operands] for operands in settings], opset=13)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode):
    x = floats(3, 4)
    widths = [[1, 0, 2, 1], [0, 2, 0, 0], [0, 0, 0, 0], [2, 1, 1, 3]]
    check("Pad", [[x, pads] for pads in widths], opset=19, mode=mode)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad_adds_by_counts_of_the_run_at_once(mode):
    x = floats(3, 20)
    widths = [[1, 0, 2, 19], [2, 17, 0, 1], [0, 0, 0, 0], [0, 16, 1, 3]]
    engine = check("Pad", [[x, pads] for pads in widths], opset=19, mode=mode, open_axes=(0,))
    used = [function.implementation for function in engine.library.functions]
    assert [name for name in used if name.startswith("pad.")] == ["pad.generic"]
    with pytest.raises(lw.RuntimeArgumentError, match=r"an extent behind the padding \(node the_node\)"):
        engine([x, np.array([-4, 0, 0, 0])])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad_takes_away_more_than_there_is_before_it_adds(mode):
    x = floats(3, 4)
    engine = lw.Engine(lw.compile(model_of("Pad", [x, np.array([0] * 4)], opset=19, mode=mode), jobs=1))
    beyond = np.pad(x, ((0, 4), (0, 0)), mode=mode)[5:]
    np.testing.assert_array_equal(engine([x, np.array([-5, 0, 4, 0])])[0], beyond)
    np.testing.assert_array_equal(engine([x, np.array([-1, -2, 0, 0])])[0], x[1:, 2:])


def test_pad_wraps_what_is_left_where_elements_are_taken_away():
    """As onnxruntime does; the standard does not say."""
    x = np.arange(5, dtype=np.float32)
    engine = lw.Engine(lw.compile(model_of("Pad", [x, np.array([0] * 2)], opset=19, mode="wrap"), jobs=1))
    for begin, end in ((-2, 2), (-1, 1), (1, -2), (2, -1), (-1, -2), (2, 7)):
        left = x[max(-begin, 0) : 5 - max(-end, 0)]
        wanted = np.pad(left, (max(begin, 0), max(end, 0)), mode="wrap")
        np.testing.assert_array_equal(engine([x, np.array([begin, end])])[0], wanted)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_of_an_empty_axis(mode):
    empty = np.zeros((0, 4), np.float32)
    engine = lw.Engine(lw.compile(model_of("Pad", [empty, np.array([0] * 4)], opset=19, mode=mode), jobs=1))
    assert engine([empty, np.array([0, 1, 0, 2])])[0].shape == (0, 7)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_an_axis_that_a_run_finds_empty_has_nothing_to_pad_with(mode):
    """Reading its first element would be reading beyond its memory."""
    x = floats(2, 5)
    model = model_of("Pad", [x, np.array([0] * 4)], opset=19, mode=mode, open_axes=(0, 1))
    engine = lw.Engine(lw.compile(model, jobs=1))
    with pytest.raises(lw.RuntimeArgumentError, match="should not be negative"):
        engine([np.zeros((2, 0), np.float32), np.array([0, 1, 0, 1])])
    assert engine([np.zeros((2, 0), np.float32), np.array([1, 0, 1, 0])])[0].shape == (4, 0)


@pytest.mark.parametrize("value", [np.array(2**60 + 1), np.array(True), np.array(-np.inf, np.float32)])
def test_pad_with_a_known_number_of_each_type(value):
    x = np.array([[3, 0], [0, 1]]).astype(value.dtype)
    model = model_of("Pad", [x, np.array([0] * 4), value], opset=21)
    del model.graph.input[2]
    model.graph.initializer.append(numpy_helper.from_array(value, "i2"))
    (found,) = lw.Engine(lw.compile(model, jobs=1))([x, np.array([1, 0, -1, 2])])
    np.testing.assert_array_equal(found, np.pad(x[:1], ((1, 0), (0, 2)), constant_values=value))


def test_pad_along_axes_of_the_run_and_with_widths_below_0():
    x = floats(3, 4)
    settings = [([1, 2], [1]), ([0, 1], [0]), ([2, 0], [-1])]
    check("Pad", [[x, pads, np.float32(7), axes] for pads, axes in settings], opset=19)
    engine = lw.Engine(lw.compile(model_of("Pad", [x, np.array([0] * 4), np.array(0, np.float32)], opset=19), jobs=1))
    (found,) = engine([x, np.array([-1, 1, 0, -2]), np.array(2, np.float32)])
    np.testing.assert_array_equal(found, np.pad(x[1:, :2], ((0, 0), (1, 0)), constant_values=2))


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_range(kind):
    bounds = [(0, 5, 1), (3, 20, 4), (5, 0, -2), (0, 0, 1), (4, 1, 1), (-7, 8, 3)]
    engine = check("Range", [[kind(value) for value in each] for each in bounds])
    if kind is np.int64:
        with pytest.raises(lw.RuntimeArgumentError, match="how many numbers a range has"):
            engine([np.array(0), np.array(5), np.array(0)])


def test_constant_of_shape():
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [2.5])
    check("ConstantOfShape", [[[2, 3]], [[0, 4]], [[5, 1]]], value=value)


def test_one_hot():
    settings = [([0, 3, -1, 9], 4), ([1, 1, -2, 0], 2), ([0, 1, 2, 3], 10)]
    check("OneHot", [[np.array(i), np.int64(depth), floats(2)] for i, depth in settings], axis=0)
    check("OneHot", [[np.array(i), np.int64(depth), floats(2)] for i, depth in settings])


def test_split():
    x = floats(2, 9)
    engine = check("Split", [[x, [2, 3, 4]], [x, [0, 9, 0]], [x, [1, 1, 7]]], outputs=3, axis=1)
    with pytest.raises(lw.RuntimeArgumentError):
        engine([x, np.array([2, 3, 5])])


def test_trilu():
    x = floats(4, 5)
    for upper in (0, 1):
        check("Trilu", [[x, np.int64(k)] for k in (-2, 0, 1, 7)], upper=upper)


def test_nonzero_and_compress():
    x = rng.integers(-1, 2, (4, 5)).astype(np.float32)
    check("NonZero", [[x], [np.zeros_like(x)], [np.ones_like(x)]])
    flags = [[True, False, True, True], [False] * 4, [True] * 4]
    check("Compress", [[x, np.array(each)] for each in flags], axis=0)
    check("Compress", [[x, np.array(each)] for each in flags])


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_over_axes_of_the_run(op, keepdims):
    x = floats(3, 4, 5)
    check(op, [[x, [0]], [x, [2]], [x, [-2]]], opset=18, keepdims=keepdims)
    check(op, [[x, [0, 2]], [x, [1, -1]]], opset=18, keepdims=keepdims)


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_folds_of_all_elements_up_to_each_along_an_axis_of_the_run(op):
    x = floats(3, 4, 5)
    check(op, [[x, np.int64(axis)] for axis in (0, 1, 2, -1)], reverse=1, opset=26)


@pytest.mark.parametrize("axis", [0, -1])
def test_topk(axis):
    x = floats(40, 35)
    engine = check("TopK", [[x, [k]] for k in (1, 5, 0, 35, 2)], outputs=2, axis=axis)
    with pytest.raises(lw.RuntimeArgumentError, match="the_node should not be negative, found the_node = 41"):
        engine([x, np.array([41])])
    with pytest.raises(lw.RuntimeArgumentError, match=r"k \(node the_node\) should be 0 or more"):
        engine([x, np.array([-1])])


def test_topk_of_open_extents():
    check(
        "TopK", [[floats(n, 3), [k]] for n, k in ((4, 2), (9, 9), (5, 0))], outputs=2, axis=0, largest=0, open_axes=[0]
    )


def test_axes_of_extent_1_at_places_of_the_run():
    x = floats(3, 1, 4, 1)
    check("Squeeze", [[x, [1, 3]], [x, [-1, 1]]])
    check("Squeeze", [[x, [1]], [x, [3]]])
    check("Unsqueeze", [[x, [0, 2]], [x, [-1, 1]], [x, [0, 5]]])


def test_what_follows_from_shapes_becomes_no_dimension_of_the_run():
    """Of a shape that is put together of extents and of data, the data alone is born."""
    nodes = [
        helper.make_node("Shape", ["x"], ["rows"], start=0, end=1),
        helper.make_node("Concat", ["rows", "k"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    given = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6]),
        helper.make_tensor_value_info("k", TensorProto.INT64, [2]),
    ]
    graph = helper.make_graph(nodes, "parts", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    library = lw.compile(model, jobs=1)
    assert str(library.outputs[0].shape[0]) == "n"
    (stage,) = (stage for stage in library.model.body.stages if stage.births)
    assert len(stage.births[0].dims) == 2
    x = floats(5, 6)
    np.testing.assert_array_equal(lw.Engine(library)([x, np.array([2, 3])])[0], x.reshape(5, 2, 3))


@pytest.mark.parametrize(("scale", "births"), [(2.0, 0), (0.5, 1)])
def test_whole_numbers_in_floats_are_extents(scale, births):
    """The limit of a Range is an extent that went through floats, as exporters of anchors write it; a fraction of one
    is left to the run."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=0, end=1),
        helper.make_node("Squeeze", ["shape"], ["n"]),
        helper.make_node("Cast", ["n"], ["whole"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["whole", "scale"], ["limit"]),
        helper.make_node("Range", ["zero", "limit", "one"], ["y"]),
    ]
    numbers = {"scale": scale, "zero": 0.0, "one": 1.0}
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])]
    graph = helper.make_graph(
        nodes,
        "anchors",
        given,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(name, TensorProto.FLOAT, [], [value]) for name, value in numbers.items()],
    )
    library = lw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), jobs=1)
    assert sum(len(stage.births) for stage in library.model.body.stages) == births
    engine = lw.Engine(library)
    for n in (1, 4, 7):
        np.testing.assert_array_equal(engine([floats(n, 6)])[0], np.arange(0, n * scale, dtype=np.float32))


def test_an_operand_of_open_length_is_refused():
    x, shape = floats(4, 6), np.array([2, 12])
    model = model_of("Reshape", [x, shape])
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "rank"
    with pytest.raises(lw.ModelError, match="the_node"):
        lw.from_onnx(model)


def test_one_element_at_a_place_of_the_run_broadcasts():
    """``w / x[i : i + 1]``, whose extent is 1 at most, and so is not that of a row of w."""
    nodes = [
        helper.make_node("Add", ["i", "one"], ["next"]),
        helper.make_node("Unsqueeze", ["i", "axes"], ["start"]),
        helper.make_node("Unsqueeze", ["next", "axes"], ["end"]),
        helper.make_node("Slice", ["x", "start", "end"], ["part"]),
        helper.make_node("Div", ["w", "part"], ["y"]),
    ]
    x, w, i = (
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (("x", TensorProto.FLOAT, ["n"]), ("w", TensorProto.FLOAT, [1, 6]), ("i", 7, []))
    )
    known = [helper.make_tensor("one", 7, [], [1]), helper.make_tensor("axes", 7, [1], [0])]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "one_of_many", [x, w, i], [y], known)
    engine = lw.Engine(lw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), jobs=1))
    many, row = floats(5), floats(1, 6)
    for at in (0, 3):
        np.testing.assert_array_equal(engine([many, row, np.array(at)])[0], row / many[at])
    with pytest.raises(lw.RuntimeArgumentError):
        engine([many, row, np.array(5)])


def test_parts_that_are_left_of_products_of_counts():
    """As patches behind the token of a class: for most numbers of n and of two counts the rest is below 0."""
    nodes = [node for k in "ab" for node in (
        helper.make_node("NonZero", [k], [f"{k}_found"]),
        helper.make_node("Size", [f"{k}_found"], [f"{k}_count"]),
    )]  # fmt: skip
    nodes += [
        helper.make_node("Mul", ["a_count", "b_count"], ["product"]),
        helper.make_node("Unsqueeze", ["product", "axes"], ["second"]),
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Sub", ["n", "second"], ["first"]),
        helper.make_node("Concat", ["first", "second"], ["parts"], axis=0),
        helper.make_node("Split", ["x", "parts"], ["left", "right"], axis=0),
        helper.make_node("Concat", ["right", "left"], ["y"], axis=0),
    ]
    kinds = {"x": (TensorProto.FLOAT, ["n", 4]), "a": (TensorProto.BOOL, ["a"]), "b": (TensorProto.BOOL, ["b"])}
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "patches", inputs, [y], [helper.make_tensor("axes", 7, [1], [0])])
    engine = lw.Engine(lw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), jobs=1))
    x, a, b = floats(7, 4), np.array([True, False, True]), np.array([True, True, True])
    np.testing.assert_array_equal(engine([x, a, b])[0], np.roll(x, 6, 0))
    np.testing.assert_array_equal(engine([x, a, ~b])[0], x)
    with pytest.raises(lw.RuntimeArgumentError, match="negative"):
        engine([x[:5], a, b])
