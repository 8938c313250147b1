"""Two dimensions that have to be equal, and inputs with 1 in place of one of them, which broadcasts. Against onnx's."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import floats
from open_models import FLOAT, engine, model, same

import loopwright as lw
from loopwright.runtime.measure.onnx_reference import onnx_evaluator

INT64 = TensorProto.INT64


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def feed(inputs, shapes, seed=0):
    """Floats, and integers from 0 to 3."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(0, 4, shape) if kind == INT64 else rng.standard_normal(shape).astype(np.float32)
        for (name, (kind, _)), shape in zip(inputs.items(), shapes, strict=True)
    }


MASK = [node("Sub", "one y", "d"), node("Mul", "d least", "e"), node("Add", "x e", "z"), node("Softmax", "z", "r")]
ROTARY = [
    node("Gather", "table y", "g"),
    node("Sin", "g", "s"),
    node("Cos", "g", "c"),
    node("Mul", "x s", "a"),
    node("Mul", "x c", "b"),
    node("Add", "a b", "r"),
]
HEADS = [
    node("MatMul", "y weights", "k"),
    node("Shape", "y", "n", start=0, end=2),
    node("Concat", "n heads", "shape", axis=0),
    node("Reshape", "k shape", "h"),
    node("Transpose", "h", "t", perm=[0, 2, 3, 1]),
    node("MatMul", "x t", "r"),
]
TIME = [
    node("Shape", "x", "n", start=0, end=1),
    node("Expand", "y n", "e"),
    node("Unsqueeze", "e last", "u"),
    node("Sin", "u", "s"),
    node("Add", "x s", "r"),
]
WEIGHTS = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
MODELS = {
    "mask": (
        MASK,
        {"x": (FLOAT, ["n", 2, "s", "s"]), "y": (FLOAT, ["m", 1, 1, "t"])},
        {"one": np.float32(1), "least": np.float32(-1e9)},
        [((3, 2, 5, 5), (1, 1, 1, 5)), ((3, 2, 5, 5), (3, 1, 1, 1)), ((1, 2, 5, 5), (3, 1, 1, 5))],
    ),
    "rotary": (
        ROTARY,
        {"x": (FLOAT, ["n", "s", 6]), "y": (INT64, ["m", "t"])},
        {"table": WEIGHTS},
        [((3, 4, 6), (1, 4)), ((3, 4, 6), (1, 1)), ((1, 4, 6), (2, 4)), ((2, 1, 6), (1, 3))],
    ),
    "heads": (
        HEADS,
        {"x": (FLOAT, ["n", 2, "s", 3]), "y": (FLOAT, ["m", "t", 4])},
        {"weights": WEIGHTS, "heads": [2, 3]},
        [((3, 2, 5, 3), (1, 7, 4)), ((1, 2, 5, 3), (3, 7, 4))],
    ),
    "time": (
        TIME,
        {"x": (FLOAT, ["n", 4]), "y": (FLOAT, ["steps"])},
        {"last": [1]},
        [((3, 4), (1,)), ((0, 4), (1,)), ((1, 4), (1,))],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_computed_position_by_position_is_repeated(name):
    nodes, inputs, constants, cases = MODELS[name]
    made = model(nodes, inputs, ["r"], constants)
    compiled, reference = engine(made), onnx_evaluator(made)
    for shapes in cases:
        given = feed(inputs, shapes)
        same(compiled(given), reference.run(None, given), 1e-4)
        request = compiled.request()
        for key, value in given.items():
            request.set_input(key, value)
        request.run()
        same([request.get_output(0)], reference.run(None, given), 1e-4)


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([node("Exp", "y", "e"), node("Add", "x e", "r")], ["r", "e"]),
        ([node("ReduceMean", "y axes", "e"), node("Sub", "y e", "d"), node("Add", "x d", "r")], ["r"]),
        ([node("CumSum", "y first", "c"), node("Add", "x c", "r")], ["r"]),
        ([node("Softmax", "y", "c", axis=0), node("Add", "x c", "r")], ["r"]),
        ([node("Gather", "y zero", "c"), node("Add", "y c", "d"), node("Add", "x d", "r")], ["r"]),
        ([node("Shape", "y", "n", end=1), node("Cast", "n", "f", to=FLOAT), node("Mul", "y f", "d"),
          node("Add", "x d", "r")], ["r"]),
        ([node("Add", "x y", "z"), node("Shape", "y", "n", end=1), node("Concat", "n rest", "s", axis=0),
          node("Reshape", "z s", "r")], ["r"]),
    ],
    ids=["an output", "a mean", "a running sum", "softmax", "a row", "its length", "a shape"],
)  # fmt: skip
def test_what_is_computed_of_several_positions_is_not_repeated(nodes, outputs):
    constants = {"first": np.int64(0), "zero": np.int64(0), "rest": [-1], "axes": [0]}
    compiled = engine(model(nodes, {"x": (FLOAT, ["n", 4]), "y": (FLOAT, ["m", 4])}, outputs, constants))
    with pytest.raises(lw.RuntimeArgumentError, match=r"compile with shapes=\{'y': \(1, None\)\}"):
        compiled({"x": floats(3, 4), "y": floats(1, 4)})


def test_an_extent_that_has_to_be_a_number_may_be_1_as_well():
    nodes = [node("Sub", "x mean", "z"), node("Conv", "z weights", "r")]
    constants = {"mean": floats(3, 1, 1), "weights": floats(8, 3, 3, 3)}
    made = model(nodes, {"x": (FLOAT, ["n", "c", "h", "w"])}, ["r"], constants)
    compiled, reference = engine(made), onnx_evaluator(made)
    for channels in (3, 1):
        given = {"x": floats(2, channels, 6, 5)}
        same(compiled(given), reference.run(None, given), 1e-4)
    with pytest.raises(lw.RuntimeArgumentError, match=r"should have shape \(n, 3, h, w\), found \(2, 2, 6, 5\)"):
        compiled({"x": floats(2, 2, 6, 5)})


def test_three_names_of_one_dimension():
    nodes = [node("Add", "x y", "s"), node("Mul", "s z", "r")]
    inputs = {name: (FLOAT, [dim, 2]) for name, dim in (("x", "n"), ("y", "m"), ("z", "k"))}
    made = model(nodes, inputs, ["r"])
    compiled, reference = engine(made), onnx_evaluator(made)
    for extents in ((3, 1, 1), (1, 3, 3), (1, 3, 1), (1, 1, 3), (3, 3, 1), (3, 1, 3)):
        given = feed(inputs, [(extent, 2) for extent in extents])
        same(compiled(given), reference.run(None, given))
    for extents in ((2, 3, 3), (3, 2, 1), (1, 2, 3)):
        with pytest.raises(lw.RuntimeArgumentError, match="should have extent"):
            compiled(feed(inputs, [(extent, 2) for extent in extents]))


def test_saved_libraries_repeat_and_bound_inputs_do_not(tmp_path):
    inputs = {"x": (FLOAT, ["n", 4]), "y": (FLOAT, ["m", 4])}
    library = lw.compile(model([node("Add", "x y", "r")], inputs, ["r"]), jobs=1)
    library.save(tmp_path / "added.lwlib")
    loaded = lw.Engine(lw.load(tmp_path / "added.lwlib"))
    x, y = floats(3, 4), floats(1, 4)
    np.testing.assert_array_equal(loaded({"x": x, "y": y})[0], x + y)
    out = np.empty((3, 4), np.float32)
    loaded({"x": y, "y": x}, out=out)
    np.testing.assert_array_equal(out, x + y)
    with pytest.raises(lw.RuntimeArgumentError, match="should have extent 3"):
        loaded.bind({"x": x, "y": y})
