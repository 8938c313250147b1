"""Models whose shapes are open, as exporters leave them: one compilation serves them all. Against onnx's."""

import ml_dtypes
import numpy as np
import pytest
from contrib_cases import in_onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import floats
from open_models import FLOAT, engine, model, same

import loopwright as lw
from loopwright import te
from loopwright.graph.node import Call
from loopwright.graph.visit import post_order
from loopwright.runtime.measure.onnx_reference import onnx_evaluator

INT64 = TensorProto.INT64


def agrees(made, *feeds):
    """One compilation, on each of the feeds."""
    compiled, reference = engine(made), onnx_evaluator(made)
    for feed in feeds:
        same(compiled(feed), reference.run(None, feed), 1e-4)
    return compiled


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


# Extents that have to be equal


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes"),
    [
        ("Add", (("n", 4), ("m", 4)), {}),
        ("Concat", (("n", 4), ("m", "k")), {"axis": 1}),
        ("MatMul", ((3, "n"), ("m", 4)), {}),
        ("Mul", (("b", "n", 4), ("m", 4)), {}),
        ("PRelu", (("b", "n"), ("m",)), {}),
    ],
)
def test_dimensions_that_meet_are_one(kind, shapes, attributes):
    inputs = dict(zip("xy", shapes, strict=True))
    made = model([node(kind, "x y", "z", **attributes)], {k: (FLOAT, shape) for k, shape in inputs.items()}, ["z"])

    def feed(**numbers):
        return {k: floats(*(numbers.get(e, e) for e in shape)) for k, shape in inputs.items()}

    compiled = agrees(made, feed(n=5, m=5, b=2, k=3))
    with pytest.raises(lw.RuntimeArgumentError, match=r"input y: .* should have extent 5 .* of input x"):
        compiled(feed(n=5, m=6, b=2, k=3))


def test_extents_that_are_computed_are_compared_by_each_run():
    made = model(
        [
            node("MaxPool", "x", "half", kernel_shape=[2], strides=[2]),
            node("MaxPool", "y", "third", kernel_shape=[3], strides=[3]),
            node("Add", "half third", "z"),
        ],
        {"x": (FLOAT, [1, 2, "n"]), "y": (FLOAT, [1, 2, "m"])},
        ["z"],
    )
    compiled = agrees(made, *({"x": floats(1, 2, n), "y": floats(1, 2, m)} for n, m in [(8, 12), (9, 14), (2, 3)]))
    with pytest.raises(lw.RuntimeArgumentError, match=r"should be .*, found .*n = 8"):
        compiled({"x": floats(1, 2, 8), "y": floats(1, 2, 9)})


def test_a_dimension_is_put_in_for_another_one_also_in_graphs_by_hand():
    x, y = lw.var("x", (te.var("n"), 4)), lw.var("y", (te.var("m"), 4))
    library = lw.compile(lw.Function([x, y], x[:-1] + y), target="x86-64-v3", jobs=1)
    assert [str(spec.shape[0]) for spec in library.model.inputs] == ["n", "max(n - 1, 0)"]
    a, b = floats(5, 4), floats(4, 4)
    same(lw.Engine(library)([a, b]), [a[:-1] + b])


@pytest.mark.parametrize("width", [7, 8])
def test_a_bound_on_a_dimension_may_be_the_extent_of_another_axis(width):
    """Embeddings of 8 positions, of vectors of 8 elements."""
    made = model(
        [
            node("Shape", "x", "length", start=1, end=2),
            node("Slice", "table zero length zero", "own"),
            node("Add", "x own", "z"),
        ],
        {"x": (FLOAT, ["batch", "length", width])},
        ["z"],
        {"table": floats(8, width), "zero": np.array([0])},
    )
    compiled = agrees(made, *({"x": floats(batch, length, width)} for batch, length in [(2, 3), (1, 8)]))
    with pytest.raises(lw.RuntimeArgumentError, match="should"):
        compiled({"x": floats(2, 9, width)})


def test_a_known_extent_is_required_where_a_bound_is_that_number_by_chance():
    """The first axis has to be 8, not any number up to it."""
    made = model(
        [
            node("Shape", "x", "n", start=0, end=1),
            node("Slice", "table zero n zero", "own"),
            node("Transpose", "own", "turned", perm=[1, 0]),
            node("Add", "x square", "sum"),
            node("MatMul", "sum turned", "z"),
        ],
        {"x": (FLOAT, ["n", 8])},
        ["z"],
        {"table": floats(8, 8), "zero": np.array([0]), "square": floats(8, 8)},
    )
    compiled = agrees(made, {"x": floats(8, 8)})
    for n in (3, 9):
        with pytest.raises(lw.RuntimeArgumentError):
            compiled({"x": floats(n, 8)})


def test_dimensions_may_be_named_by_formulas():
    made = model(
        [node("Concat", "past x", "all", axis=0), node("Add", "all mask", "z")],
        {"past": (FLOAT, ["p", 2]), "x": (FLOAT, [1, 2]), "mask": (FLOAT, ["p + 1", 1])},
        ["z"],
    )
    compiled = agrees(made, *({"past": floats(p, 2), "x": floats(1, 2), "mask": floats(p + 1, 1)} for p in (0, 1, 6)))
    assert compiled.library.model.dims == ("p",)
    with pytest.raises(lw.RuntimeArgumentError, match="should have extent 4"):
        compiled([floats(3, 2), floats(1, 2), floats(5, 1)])


def test_a_formula_over_what_no_input_has_is_a_name():
    made = model([node("Relu", "x", "z")], {"x": (FLOAT, ["sequence-length", "2*k"])}, ["z"])
    assert agrees(made, {"x": floats(3, 5)}).library.model.dims == ("sequence-length", "2*k")


@pytest.mark.parametrize("extent", [-1, -7])
def test_extents_below_0_are_open(extent):
    made = model([node("Relu", "x", "z")], {"x": (FLOAT, [extent, 3])}, ["z"])
    agrees(made, {"x": floats(2, 3)}, {"x": floats(0, 3)})


# Shapes that are computed


def test_shapes_are_data_too():
    made = model(
        [
            node("Shape", "x", "shape"),
            node("Cast", "shape", "numbers", to=FLOAT),
            node("Size", "x", "size"),
            node("Cast", "size", "count", to=FLOAT),
            node("Div", "numbers count", "z"),
        ],
        {"x": (FLOAT, ["n", 3, "m"])},
        ["z"],
    )
    agrees(made, {"x": floats(2, 3, 5)}, {"x": floats(1, 3, 1)})


def test_how_many_elements_are_chosen_may_depend_on_shapes_and_be_data_itself():
    """As where detectors drop boxes beyond the edge of their image."""
    made = model(
        [
            node("Shape", "x", "shape"),
            node("Cast", "shape", "limit", to=FLOAT),
            node("Less", "x limit", "inside"),
            node("NonZero", "inside", "where"),
            node("Shape", "where", "counts"),
            node("Add", "counts shape", "sum"),
        ],
        {"x": (FLOAT, ["n"])},
        ["where", "counts", "sum"],
    )
    agrees(made, *({"x": np.arange(3, 3 + n, dtype=np.float32)} for n in (1, 4, 9)))


def test_what_extents_depend_on_is_computed_once():
    """Numbers of a shape that are data, and what is made of them, stand before two births and the results."""
    made = model(
        [
            node("Shape", "x", "shape"),
            node("Cast", "shape", "limit", to=FLOAT),
            node("Mul", "x limit", "scaled"),
            node("MatMul", "scaled w", "product"),
            node("Greater", "product zero", "positive"),
            node("NonZero", "positive", "where"),
            node("Transpose", "where", "rows"),
            node("GatherND", "product rows", "chosen"),
            node("Less", "chosen limit_of_all", "small"),
            node("NonZero", "small", "which"),
            node("Transpose", "which", "columns"),
            node("GatherND", "chosen columns", "z"),
            node("Shape", "z", "count"),
        ],
        {"x": (FLOAT, ["n", 2])},
        ["z", "product", "count"],
        {"w": floats(2, 2, seed=3), "zero": np.float32(0), "limit_of_all": np.float32(4)},
    )
    agrees(made, {"x": floats(3, 2)}, {"x": floats(8, 2, seed=1)})
    names = [call.op.name for call in post_order(lw.from_onnx(made).body) if isinstance(call, Call)]
    assert names.count("nn.dense") == names.count("greater") == names.count("less") == 1


@pytest.mark.parametrize(("start", "step"), [(0, 1), (2, 3), (-1, 1)])
def test_ranges_end_at_open_extents(start, step):
    made = model(
        [
            node("Shape", "x", "n", start=0, end=1),
            node("Squeeze", "n axis", "limit"),
            node("Range", "start limit step", "r"),
            node("Cast", "r", "z", to=FLOAT),
        ],
        {"x": (FLOAT, ["n", 3])},
        ["z"],
        {"axis": np.array([0]), "start": np.array(start), "step": np.array(step)},
    )
    agrees(made, *({"x": floats(n, 3)} for n in (0, 1, 4, 17)))


def test_ranges_begin_at_open_extents():
    made = model(
        [
            node("Shape", "past", "p", start=0, end=1),
            node("Shape", "x", "s", start=0, end=1),
            node("Add", "p s", "end"),
            node("Squeeze", "p", "first"),
            node("Squeeze", "end", "last"),
            node("Range", "first last one", "r"),
            node("Cast", "r", "z", to=FLOAT),
        ],
        {"past": (FLOAT, ["p"]), "x": (FLOAT, ["s"])},
        ["z"],
        {"one": np.array(1)},
    )
    agrees(made, *({"past": floats(p), "x": floats(s)} for p, s in [(0, 3), (5, 1), (7, 9)]))


def test_ranges_of_known_length_begin_at_open_extents():
    """Positions of one more token, of which there is one whatever the past is."""
    made = model(
        [
            node("Shape", "past", "p", start=0, end=1),
            node("Squeeze", "p", "first"),
            node("Add", "first two", "last"),
            node("Range", "first last one", "r"),
            node("Cast", "r", "z", to=FLOAT),
        ],
        {"past": (FLOAT, ["p"])},
        ["z"],
        {"one": np.array(1), "two": np.array(2)},
    )
    agrees(made, *({"past": floats(p)} for p in (0, 1, 7)))


def test_tensors_are_made_and_expanded_to_open_shapes():
    made = model(
        [
            node("Shape", "x", "shape"),
            node("ConstantOfShape", "shape", "c", value=helper.make_tensor("v", FLOAT, [1], [2.5])),
            node("Shape", "y", "k"),
            node("Concat", "k shape", "wide", axis=0),
            node("Expand", "c wide", "z"),
        ],
        {"x": (FLOAT, ["n", "m"]), "y": (FLOAT, ["k"])},
        ["z"],
    )
    agrees(made, {"x": floats(2, 3), "y": floats(4)}, {"x": floats(1, 7), "y": floats(1)})


def test_reshapes_to_the_shape_of_another_tensor_are_checked():
    made = model(
        [node("Shape", "y", "shape"), node("Reshape", "x shape", "z")],
        {"x": (FLOAT, ["n", 6]), "y": (FLOAT, ["m", 3, 2])},
        ["z"],
    )
    compiled = agrees(made, {"x": floats(4, 6), "y": floats(4, 3, 2)})
    with pytest.raises(lw.RuntimeArgumentError):
        compiled([floats(4, 6), floats(5, 3, 2)])


REST = np.array([-1])


@pytest.mark.parametrize(
    ("nodes", "x", "numbers"),
    [
        ([node("Shape", "y", "shape")], ["k"], {"k": lambda n, m: n * m}),
        ([node("Shape", "y", "s"), node("Concat", "s rest", "shape", axis=0)], ["n", "m", 6], {}),
        ([node("Shape", "y", "s"), node("Concat", "rest s", "shape", axis=0)], ["m", "n", 5], {}),
        (
            [node("Shape", "y", "s", start=1), node("Concat", "rest s", "shape", axis=0)],
            [2, "k"],
            {"k": lambda n, m: 3 * m},
        ),
        ([node("Shape", "y", "shape")], ["m", "n"], {}),
    ],
    ids=["of-one", "rest-last", "rest-first", "rest-checked", "exchanged"],
)
def test_reshapes_to_several_open_extents(nodes, x, numbers):
    made = model(
        [*nodes, node("Reshape", "x shape", "z")],
        {"x": (FLOAT, x), "y": (FLOAT, ["n", "m"])},
        ["z"],
        {"rest": REST},
    )

    def feed(n, m):
        known = {"n": n, "m": m} | {name: of(n, m) for name, of in numbers.items()}
        return {"x": floats(*(known.get(e, e) for e in x)), "y": floats(n, m)}

    agrees(made, feed(3, 4), feed(1, 1), feed(5, 2), feed(7, 6))


def test_elements_that_do_not_fill_an_open_shape_are_refused_by_the_run():
    made = model(
        [node("Shape", "y", "s", start=1), node("Concat", "rest s", "shape", axis=0), node("Reshape", "x shape", "z")],
        {"x": (FLOAT, ["k"]), "y": (FLOAT, ["n", "m"])},
        ["z"],
        {"rest": REST},
    )
    compiled = agrees(made, {"x": floats(12), "y": floats(2, 4)})
    with pytest.raises(lw.RuntimeArgumentError, match="should be"):
        compiled([floats(13), floats(2, 4)])


def test_what_the_terms_of_a_sum_share_is_a_factor_of_it():
    n, m = te.var("n"), te.var("m")
    made = lw.nn.reshape(lw.var("x", (2 * n * m + 4 * n, 3), "float32"), (6, -1))
    assert [str(extent) for extent in made.type.shape] == ["6", "m * n + n * 2"]
    with pytest.raises(lw.TypeInferenceError, match="evenly"):
        lw.nn.reshape(lw.var("x", (2 * n * m + 3 * n, 3), "float32"), (6, -1))


def test_a_mask_of_computed_positions_has_the_shape_that_they_have():
    """As exporters write the mask of a batch: element b·s + k of the flat mask, reshaped to the positions' shape."""
    nodes = [
        node("Reshape", "mask rest", "flat"),
        node("Shape", "mask", "batch", start=0, end=1),
        node("Shape", "mask", "count", start=1, end=2),
        node("Squeeze", "batch", "b"),
        node("Squeeze", "count", "s"),
        node("Range", "zero b one", "rows"),
        node("Range", "zero s one", "columns"),
        node("Unsqueeze", "rows away", "row"),
        node("Mul", "row count", "start"),
        node("Add", "start columns", "positions"),
        node("Gather", "flat positions", "taken"),
        node("Reshape", "taken rest", "listed"),
        node("Shape", "positions", "shape"),
        node("Reshape", "listed shape", "z"),
    ]
    constants = {"rest": REST, "zero": np.array(0), "one": np.array(1), "away": np.array([1, 2, 3])}
    made = model(nodes, {"mask": (FLOAT, ["batch", "seq"])}, ["z"], constants)
    agrees(made, {"mask": floats(2, 5)}, {"mask": floats(1, 1)}, {"mask": floats(3, 17)})


def test_tiles_by_open_extents():
    made = model(
        [node("Shape", "y", "repeats"), node("Tile", "x repeats", "z")],
        {"x": (FLOAT, [1, "k"]), "y": (FLOAT, ["n", "m"])},
        ["z"],
    )
    agrees(made, *({"x": floats(1, k), "y": floats(n, m)} for k, n, m in [(3, 2, 4), (1, 1, 1), (5, 0, 2), (2, 3, 1)]))


@pytest.mark.parametrize("less", [0, 1, 3, 9])
def test_quotients_of_what_may_be_negative_are_rounded_towards_0(less):
    made = model(
        [
            node("Shape", "x", "n"),
            node("Sub", "n less", "fewer"),
            node("Div", "fewer four", "quotient"),
            node("Add", "quotient eight", "shape"),
            node("ConstantOfShape", "shape", "z"),
        ],
        {"x": (FLOAT, ["n"])},
        ["z"],
        {"less": np.array([less]), "four": np.array([4]), "eight": np.array([8])},
    )
    agrees(made, *({"x": floats(n)} for n in (0, 1, 2, 3, 4, 5, 8, 9, 13, 100)))


def test_quotients_by_an_open_factor_are_exact():
    made = model(
        [
            node("Shape", "x", "n", start=0, end=1),
            node("Shape", "x", "m", start=1, end=2),
            node("Mul", "n m", "count"),
            node("Mul", "n four", "rows"),
            node("Mul", "count four", "all"),
            node("Div", "all rows", "columns"),
            node("ConstantOfShape", "columns", "z"),
        ],
        {"x": (FLOAT, ["n", "m"])},
        ["z"],
        {"four": np.array([4])},
    )
    agrees(made, *({"x": floats(n, m)} for n, m in [(1, 1), (3, 7), (2, 0)]))


def test_an_axis_that_is_filled_up_to_a_multiple_falls_into_blocks():
    made = model(
        [
            node("Shape", "x", "n", end=1),
            node("Neg", "n", "less"),
            node("Mod", "less eight", "more"),
            node("Concat", "zeros more zero", "pads", axis=0),
            node("Pad", "x pads", "padded"),
            node("Shape", "padded", "filled", end=1),
            node("Div", "filled eight", "blocks"),
            node("Concat", "blocks eight two", "shape", axis=0),
            node("Reshape", "padded shape", "z"),
        ],
        {"x": (FLOAT, ["n", 2])},
        ["z"],
        {"eight": np.array([8]), "zeros": np.array([0, 0]), "zero": np.array([0]), "two": np.array([2])},
    )
    agrees(made, *({"x": floats(n, 2)} for n in (13, 8, 1)))


@pytest.mark.parametrize("step", [1, 2])
def test_slices_between_open_extents(step):
    made = model(
        [node("Shape", "y", "m"), node("Slice", "x start m axis step", "z")],
        {"x": (FLOAT, [3, "n"]), "y": (FLOAT, ["m"])},
        ["z"],
        {"start": np.array([1]), "axis": np.array([1]), "step": np.array([step])},
    )
    agrees(made, *({"x": floats(3, n), "y": floats(m)} for n, m in [(9, 5), (4, 9), (3, 0), (1, 2), (6, 6)]))


def test_whether_an_index_counts_from_the_end_may_depend_on_the_shapes():
    """What fills a length up to a multiple of 8 is taken away again; of 8 nothing is left, as onnx has it."""
    made = model(
        [
            node("Shape", "x", "n"),
            node("Neg", "n", "less"),
            node("Mod", "less eight", "more"),
            node("Neg", "more", "end"),
            node("Slice", "x zero end", "z"),
            node("Slice", "x end n", "w"),
        ],
        {"x": (FLOAT, ["n"])},
        ["z", "w"],
        {"eight": np.array([8]), "zero": np.array([0])},
    )
    agrees(made, *({"x": floats(n)} for n in (13, 8, 9, 1, 16)))


def test_slices_run_backwards_from_an_open_index():
    made = model(
        [node("Shape", "y", "m"), node("Slice", "x m lowest axis back", "z")],
        {"x": (FLOAT, [3, "n"]), "y": (FLOAT, ["m"])},
        ["z"],
        {"lowest": np.array([-(2**63)]), "axis": np.array([1]), "back": np.array([-2])},
    )
    agrees(made, *({"x": floats(3, n), "y": floats(m)} for n, m in [(9, 5), (4, 9), (3, 0), (1, 2)]))


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Min", "n largest", "z")],
        [node("Max", "n lowest", "z")],
        [node("Max", "n largest", "z")],
        [node("Add", "n largest", "z")],
        [node("Mul", "n largest", "z")],
        [node("Div", "n largest", "z")],
        [node("Sub", "lowest n", "z")],
        [node("Equal", "n largest", "same"), node("Cast", "same", "z", to=INT64)],
        [node("Min", "n largest", "end"), node("Slice", "x zero end", "z")],
        [node("Slice", "x n largest", "z")],
        [node("Slice", "x lowest n", "z")],
    ],
    ids=lambda nodes: f"{nodes[0].op_type} {' '.join(nodes[0].input)}",
)
def test_extents_meet_numbers_that_no_extent_is_as_large_as(nodes):
    """Exporters write the largest and the least number for no bound."""
    made = model(
        [node("Shape", "x", "n"), *nodes],
        {"x": (FLOAT, ["n"])},
        ["z"],
        {"largest": np.array([2**63 - 1]), "lowest": np.array([-(2**63)]), "zero": np.array([0])},
    )
    if nodes[-1].op_type != "Slice":
        made.graph.output[0].type.tensor_type.elem_type = INT64
    compiled, reference = engine(made), onnx_evaluator(made)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(compiled([floats(5)])[0], reference.run(None, {"x": floats(5)})[0])


@pytest.mark.parametrize("far", [2**31 - 1, 2**47 + 1, 1 << 60, 2**63 - 1])
@pytest.mark.parametrize(("start", "step"), [(1, 1), (0, 2), (-1, -1)])
def test_slices_end_where_an_open_axis_does(far, start, step):
    """What exporters write for the end is in no extent, so that what reads the slice may compute with it."""
    made = model(
        [
            node("Slice", "x start end axis step", "part"),
            node("Resize", "part none scales", "z", mode="linear", coordinate_transformation_mode="asymmetric"),
        ],
        {"x": (FLOAT, ["n", "w"])},
        ["z"],
        {
            "start": np.array([start]),
            "end": np.array([far if step > 0 else -far]),
            "axis": np.array([1]),
            "step": np.array([step]),
            "none": np.array([], np.float32),
            "scales": np.array([1, 2], np.float32),
        },
    )
    compiled = agrees(made, *({"x": floats(3, w)} for w in (9, 2, 17)))
    assert "2147483647" not in str(compiled.library.functions[-1].loop_ir)


@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("inputs", ["n", "n m", "n two m"])
def test_the_places_of_one_number_everywhere_are_counted_when_the_model_is_compiled(inputs, value):
    made = model(
        [
            node("Shape", "x", "n", end=1),
            node("Shape", "x", "m", start=1),
            node("Concat", inputs, "shape", axis=0),
            node("ConstantOfShape", "shape", "full", value=numpy_helper.from_array(np.array([value]))),
            node("NonZero", "full", "z"),
        ],
        {"x": (FLOAT, ["n", "m"])},
        ["z"],
        {"two": np.array([2])},
    )
    made.graph.output[0].type.tensor_type.elem_type = INT64
    compiled = agrees(made, *({"x": floats(n, m)} for n, m in [(3, 5), (1, 1), (4, 0)]))
    rank = len(inputs.split())
    count = {1: "n", 2: "n * m", 3: "(n * m) * 2"}[rank] if value else 0
    assert compiled.outputs[0].type_text == f"int64[{rank}, {count}]"


def test_an_open_axis_that_is_squeezed_has_one_element():
    made = model(
        [
            node("MaxPool", "x", "pooled", kernel_shape=[4], strides=[4]),
            node("Squeeze", "pooled axis", "z"),
        ],
        {"x": (FLOAT, [2, 3, "n"])},
        ["z"],
        {"axis": np.array([2])},
    )
    compiled = agrees(made, {"x": floats(2, 3, 4)}, {"x": floats(2, 3, 7)})
    with pytest.raises(lw.RuntimeArgumentError, match="should be 1, found n = 8"):
        compiled([floats(2, 3, 8)])


# Resizing


@pytest.mark.parametrize(
    ("mode", "coordinates", "nearest"),
    [
        ("nearest", "asymmetric", "floor"),
        ("nearest", "half_pixel", "round_prefer_floor"),
        ("nearest", "pytorch_half_pixel", "ceil"),
        ("nearest", "align_corners", "round_prefer_ceil"),
        ("linear", "half_pixel", "floor"),
        ("linear", "half_pixel_symmetric", "floor"),
        ("linear", "align_corners", "floor"),
        ("cubic", "asymmetric", "floor"),
    ],
)
@pytest.mark.parametrize("scale", [2.0, 0.5, None])
def test_open_images_are_resized(mode, coordinates, nearest, scale):
    modes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
    inputs = {"x": (FLOAT, [1, 2, "h", "w"])}
    if scale is None:
        inputs["y"] = (FLOAT, [1, 2, "a", "b"])
        resized = helper.make_node("Resize", ["x", "", "", "sizes"], ["z"], **modes)
        nodes, constants = [node("Shape", "y", "sizes"), resized], {}
    else:
        nodes = [helper.make_node("Resize", ["x", "", "scales"], ["z"], **modes)]
        constants = {"scales": np.array([1, 1, scale, scale], np.float32)}
    feeds = []
    for h, w, a, b in [(4, 6, 7, 3), (2, 8, 5, 20)]:
        sizes = {} if scale is not None else {"y": floats(1, 2, a, b)}
        feeds.append({"x": floats(1, 2, h, w), **sizes})
    agrees(model(nodes, inputs, ["z"], constants), *feeds)


# One function for several sizes


def pyramid():
    weight = np.random.default_rng(0).standard_normal((4, 4, 3, 3)).astype(np.float32) / 6
    nodes, name = [], "x"
    for level in range(5):
        nodes.append(node("MaxPool", name, f"p{level}", kernel_shape=[2, 2], strides=[2, 2]))
        nodes.append(node("Conv", f"p{level} w", f"c{level}", pads=[1, 1, 1, 1]))
        nodes.append(node("Relu", f"c{level}", name := f"r{level}"))
    return model(nodes, {"x": (FLOAT, [1, 4, "h", "w"])}, [name], {"w": weight})


def test_levels_of_a_pyramid_share_their_functions(tmp_path):
    compiled = agrees(pyramid(), {"x": floats(1, 4, 64, 96)}, {"x": floats(1, 4, 33, 40)})
    library = compiled.library
    levels = [s.symbol for s in library.model.steps if library.model.function_of(s).name == "fused_nn_conv2d_relu"]
    assert len(levels) - len(set(levels)) >= 2
    assert library.model.first_stage.derived
    library.save(tmp_path / "pyramid.lwlib")
    x = floats(1, 4, 40, 40)
    same(lw.Engine(lw.load(tmp_path / "pyramid.lwlib"))([x]), compiled([x]))


def test_functions_keep_what_their_calls_need_to_know_of_extents():
    n = te.var("n")
    x, rows = lw.var("x", ((n + 1) * 4,)), lw.var("rows", (n,))
    made = lw.Function([x, rows], lw.nn.reshape(lw.nn.relu(x), (-1, 4)) + 1)
    a = floats(24)
    same(lw.Engine(lw.compile(made, target="x86-64-v3", jobs=1))([a, floats(5)]), [np.maximum(a, 0).reshape(6, 4) + 1])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_widths_of_padding_follow_from_open_extents(mode):
    """To a multiple of 4, as windows of an image ask for, and by a number in front."""
    made = model(
        [
            node("Shape", "x", "n", start=1, end=2),
            node("Neg", "n", "less"),
            node("Mod", "less four", "behind"),
            node("Concat", "none one none behind", "pads", axis=0),
            node("Pad", "x pads", "z", mode=mode),
        ],
        {"x": (FLOAT, [2, "n"])},
        ["z"],
        {name: np.array([number]) for name, number in [("four", 4), ("none", 0), ("one", 1)]},
    )
    agrees(made, *({"x": floats(2, n)} for n in (2, 4, 5, 11)))


def test_a_width_of_padding_that_comes_out_negative_takes_elements_away():
    made = model(
        [
            node("Shape", "x", "n", start=0, end=1),
            node("Sub", "wanted n", "behind"),
            node("Concat", "none behind", "pads", axis=0),
            node("Pad", "x pads", "z"),
        ],
        {"x": (FLOAT, ["n"])},
        ["z"],
        {"wanted": np.array([8]), "none": np.array([0])},
    )
    compiled = engine(made)
    for n in (0, 3, 8, 13):  # onnx's evaluator has no negative widths
        x = floats(n)
        same(compiled({"x": x}), [np.pad(x[:8], (0, max(8 - n, 0)))])


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [2, 3], "strides": [2, 2]}),
        ("MaxPool", {"kernel_shape": [1, 2], "strides": [2, 3]}),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [3, 2], "strides": [2, 3], "count_include_pad": 1}),
        ("LpPool", {"kernel_shape": [3, 3], "strides": [2, 2]}),
        ("Conv", {"strides": [2, 3]}),
        ("Conv", {"strides": [1, 1], "dilations": [2, 1]}),
    ],
)
def test_windows_of_open_images_are_padded_to_the_same_size(kind, attributes, auto_pad):
    weights = {"w": floats(3, 2, 3, 2)} if kind == "Conv" else {}
    made = model(
        [node(kind, "x w" if weights else "x", "z", auto_pad=auto_pad, **attributes)],
        {"x": (FLOAT, [1, 2, "h", "w"])},
        ["z"],
        weights,
    )
    compiled = engine(made)
    for height, width in [(5, 6), (8, 7), (1, 9), (10, 3)]:
        x = floats(1, 2, height, width)
        fixed = engine(model(made.graph.node, {"x": (FLOAT, [1, 2, height, width])}, ["z"], weights))
        same(compiled({"x": x}), fixed({"x": x}), 1e-4)  # onnx's evaluator takes SAME for something else in some


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("storage_order", "spatial"), [(0, "hw"), (1, "hw"), (0, "l"), (0, "dhw"), (0, ("h", 5))])
def test_places_of_largest_elements_are_those_of_the_open_image(storage_order, spatial, auto_pad):
    """Windows that reach beyond the image count its own elements, of which several may be the largest."""
    made = model(
        [
            helper.make_node(
                "MaxPool",
                ["x"],
                ["y", "places"],
                kernel_shape=[3, 2, 3][: len(spatial)],
                strides=[2, 3, 2][: len(spatial)],
                storage_order=storage_order,
                auto_pad=auto_pad,
            )
        ],
        {"x": (FLOAT, ["n", 2, *spatial])},
        ["y", "places"],
    )
    made.graph.output[1].type.tensor_type.elem_type = TensorProto.INT64
    compiled = engine(made)
    for shape in [(5, 6, 7), (8, 4, 3), (1, 9, 2)]:
        extents = [n if isinstance(named, str) else named for n, named in zip(shape, spatial, strict=False)]
        x = np.random.default_rng(2).integers(-3, 3, (2, 2, *extents)).astype(np.float32)
        same(compiled({"x": x}), in_onnxruntime(made, {"x": x}))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("zeros", ["", "x", "known x", "known x and w"])
def test_windows_of_open_images_of_integers_are_padded_with_zero_points(zeros, auto_pad):
    rng = np.random.default_rng(3)
    known = {"p": np.array(7, np.uint8), "q": np.array(5, np.uint8)}
    given = {"": "", "x": " p", "known x": " p", "known x and w": " p q"}[zeros]
    inputs: dict = {"p": (TensorProto.UINT8, [])} if zeros == "x" else {}
    weights = {"w": rng.integers(0, 9, (3, 2, 3, 3), np.uint8)} | {n: v for n, v in known.items() if n not in inputs}
    nodes = [node("ConvInteger", f"x w{given}", "z", auto_pad=auto_pad, strides=[2, 2])]
    made = model(nodes, {"x": (TensorProto.UINT8, [1, 2, "h", "w"])} | inputs, ["z"], weights)
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    compiled = engine(made)
    for shape in [(1, 2, 5, 6), (1, 2, 8, 7), (1, 2, 1, 9)]:
        feed = {"x": rng.integers(0, 255, shape, np.uint8)} | {name: known[name] for name in inputs}
        same(compiled(feed), in_onnxruntime(made, feed))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "uint8"])
def test_largest_elements_of_all_types_are_those_of_the_image_alone(kind):
    """What is added to an open image is less than anything in it, all of which is negative here where it can be."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, kind, kind)))
    values = np.arange(1, 36).reshape(1, 1, 5, 7) * (1 if kind == "uint8" else -1)
    x = values.astype(helper.tensor_dtype_to_np_dtype(element))
    made = model(
        [node("MaxPool", "x", "z", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER")],
        {"x": (element, [1, 1, "h", "w"])},
        ["z"],
    )
    (found,) = engine(made)({"x": x})
    rows, columns = [(0, 2), (1, 4), (3, 5)], [(0, 2), (2, 4), (4, 6), (6, 7)]
    wanted = [[values[0, 0, a:b, c:d].max() for c, d in columns] for a, b in rows]
    np.testing.assert_array_equal(np.asarray(found).astype(int), [[wanted]])


def test_elements_fill_a_shape_that_no_formula_divides():
    """Whole frames of a signal that is padded to them."""
    made = model(
        [
            node("Shape", "x", "n", start=0, end=1),
            node("Neg", "n", "less"),
            node("Mod", "less eight", "behind"),
            node("Concat", "none behind", "pads", axis=0),
            node("Pad", "x pads", "padded"),
            node("Reshape", "padded frames", "z"),
        ],
        {"x": (FLOAT, ["n"])},
        ["z"],
        {"eight": np.array([8]), "none": np.array([0]), "frames": np.array([-1, 8])},
    )
    agrees(made, *({"x": floats(n)} for n in (1, 8, 21)))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_batch_of_a_known_first_state_is_that_of_the_steps(kind):
    """A Squeeze without axes behind it knows so, too."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    made = model(
        [
            node(kind, "x w r", "y", hidden_size=5),
            node("Squeeze", "y", "z"),
        ],
        {"x": (FLOAT, ["time", "batch", 3])},
        ["z"],
        {"w": floats(1, gates * 5, 3), "r": floats(1, gates * 5, 5), "h": floats(1, 1, 5)},
    )
    made.graph.node[0].input.extend(["", "", "h"])
    compiled = agrees(made, *({"x": floats(time, 1, 3)} for time in (4, 9)))
    with pytest.raises(lw.RuntimeArgumentError, match="should"):
        compiled({"x": floats(4, 2, 3)})


def test_a_first_state_of_open_directions_has_one():
    made = model(
        [
            node("Slice", "states first last", "h"),
            node("GRU", "x w r", "y last_state", hidden_size=5),
        ],
        {"x": (FLOAT, ["time", "batch", 3]), "states": (FLOAT, ["layers", "batch", 5])},
        ["y", "last_state"],
        {"w": floats(1, 15, 3), "r": floats(1, 15, 5), "first": np.array([2]), "last": np.array([3])},
    )
    made.graph.node[1].input.extend(["", "", "h"])
    compiled = agrees(made, *({"x": floats(4, n, 3), "states": floats(k, n, 5)} for n, k in [(1, 3), (2, 7)]))
    with pytest.raises(lw.RuntimeArgumentError, match="should"):
        compiled({"x": floats(4, 1, 3), "states": floats(2, 1, 5)})


@pytest.mark.parametrize("born", [False, True], ids=["declared", "computed"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_the_channels_of_integers_are_those_of_the_weights_of_their_convolution(kind, born):
    """Weights of integers lie in blocks of channels, so that no extent of theirs is the number of channels."""
    rng = np.random.default_rng(0)
    weight = rng.integers(-9, 9, (4, 8, 3)).astype(np.int8 if kind == "int8" else np.uint8)
    x = rng.integers(0, 99, (2, 8, 11)).astype(kind)
    made = model(
        [*([node("Reshape", "x shape", "r")] if born else []), node("ConvInteger", f"{'r' if born else 'x'} w", "z")],
        {"x": (helper.np_dtype_to_tensor_dtype(x.dtype), ["n", "c", "l"]), **({"shape": (INT64, [3])} if born else {})},
        ["z"],
        {"w": weight},
    )
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    agrees(made, {"x": x, "shape": np.array([1, 8, 22])} if born else {"x": x})


def test_a_grid_of_open_extents_has_a_coordinate_for_each_axis_of_an_image():
    made = model(
        [node("GridSample", "x grid", "z")],
        {"x": (FLOAT, ["n", "c", "h", "w"]), "grid": (FLOAT, ["n", "i", "j", "k"])},
        ["z"],
    )
    compiled = agrees(made, {"x": floats(2, 3, 5, 6), "grid": floats(2, 4, 3, 2, seed=1) / 2})
    with pytest.raises(lw.RuntimeArgumentError, match=r"should have shape \(n, i, j, 2\)"):
        compiled({"x": floats(2, 3, 5, 6), "grid": floats(2, 4, 3, 3)})
