"""Extents that only a run knows are repeated where they are 1, as numpy broadcasts. Against onnx's evaluator."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from open_models import FLOAT, engine, model, same

import loopwright as lw
from loopwright.runtime.measure.onnx_reference import onnx_evaluator

INT64 = TensorProto.INT64
WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def positions(name, result):
    """Where a vector is not 0: as many numbers as that is so."""
    return [node("NonZero", name, f"{name}_at"), node("Cast", f"{name}_at", result, to=FLOAT)]


FOUND = positions("x", "f")
SOME, ONE, NONE = np.float32([1, 0, 1]), np.float32([0, 2]), np.float32([0, 0, 0])
MODELS = {
    "a dimension of an input": (
        [*FOUND, node("Mul", "f z", "p"), node("Add", "p f", "q"), node("Sub", "q z", "r")],
        {"x": (FLOAT, ["n"]), "z": (FLOAT, [1, "m"])},
        {},
        [
            {"x": x, "z": floats(1, m)}
            for x, m in [(SOME, 2), (SOME, 1), (ONE, 5), (ONE, 1), (NONE, 0), (NONE, 1), (ONE, 0)]
        ],
    ),
    "two of a run": (
        [*FOUND, *positions("z", "g"), node("Max", "f g f", "r")],
        {"x": (FLOAT, ["n"]), "z": (FLOAT, ["m"])},
        {},
        [{"x": x, "z": z} for x in (SOME, ONE, NONE) for z in (SOME, ONE, NONE) if {x.sum(), z.sum()} != {2, 0}],
    ),
    "a number": (
        [*FOUND, node("Greater", "f w", "g"), node("Where", "g f w", "r")],
        {"x": (FLOAT, ["n"])},
        {"w": WEIGHTS[:, :2]},
        [{"x": SOME}, {"x": ONE}],
    ),
    "axes of a run": (
        [node("Unsqueeze", "x axes", "u"), node("Mul", "u w", "r")],
        {"x": (FLOAT, ["n", 4]), "axes": (INT64, [1])},
        {"w": WEIGHTS},
        [{"x": floats(n, 4), "axes": np.array([axis])} for n, axis in [(3, 0), (3, 1), (1, 0), (1, 1)]],
    ),
    "axes of a run in a branch": (
        [
            node("Unsqueeze", "x axes", "u"),
            node(
                "If", "yes", "r",
                then_branch=helper.make_graph(
                    [node("Mul", "u w", "t")], "then", [], [helper.make_tensor_value_info("t", FLOAT, None)]),
                else_branch=helper.make_graph(
                    [node("Neg", "u", "e")], "else", [], [helper.make_tensor_value_info("e", FLOAT, None)]),
            ),
        ],
        {"x": (FLOAT, ["n", 4]), "axes": (INT64, [1]), "yes": (TensorProto.BOOL, [])},
        {"w": WEIGHTS},
        [
            {"x": floats(n, 4), "axes": np.array([axis]), "yes": np.array(yes)}
            for n, axis in [(3, 0), (3, 1), (1, 0)] for yes in (True, False)
        ],
    ),
    "one dimension after the other": (
        [*FOUND, node("Mul", "f z", "t0"), *(node("Add", f"t{k} {'fz'[k % 2]}", f"t{k + 1}") for k in range(24)),
         node("Neg", "t24", "r")],
        {"x": (FLOAT, ["n"]), "z": (FLOAT, [1, "m"])},
        {},
        [{"x": SOME, "z": floats(1, 1)}, {"x": ONE, "z": floats(1, 5)}],
    ),
    "axes of a run, made in a branch": (
        [
            node(
                "If", "yes", "r",
                then_branch=helper.make_graph(
                    [node("Unsqueeze", "x axes", "u"), node("Mul", "u w", "t")], "then", [],
                    [helper.make_tensor_value_info("t", FLOAT, None)]),
                else_branch=helper.make_graph(
                    [node("Unsqueeze", "x axes", "e")], "else", [],
                    [helper.make_tensor_value_info("e", FLOAT, None)]),
            ),
        ],
        {"x": (FLOAT, ["n", 4]), "axes": (INT64, [1]), "yes": (TensorProto.BOOL, [])},
        {"w": WEIGHTS},
        [
            {"x": floats(n, 4), "axes": np.array([axis]), "yes": np.array(yes)}
            for n, axis in [(3, 0), (2, 1), (1, 0)] for yes in (True, False)
        ],
    ),
    "a number that Expand says": (
        [*FOUND, node("Transpose", "f", "t", perm=[1, 0]), node("Expand", "t shape", "r")],
        {"x": (FLOAT, ["n"])},
        {"shape": np.array([2, 4])},
        [{"x": SOME}, {"x": ONE}],
    ),
    "a number in a branch": (
        [
            node(
                "If", "yes", "r",
                then_branch=helper.make_graph(
                    [node("Add", "x w", "a"), node("Expand", "x shape", "b"), node("Mul", "a b", "t")], "then", [],
                    [helper.make_tensor_value_info("t", FLOAT, None)]),
                else_branch=helper.make_graph(
                    [node("Concat", "x x", "e", axis=0)], "else", [],
                    [helper.make_tensor_value_info("e", FLOAT, None)]),
            ),
        ],
        {"x": (FLOAT, ["n", 4]), "yes": (TensorProto.BOOL, [])},
        {"w": WEIGHTS, "shape": np.array([3, 4])},
        [
            {"x": floats(n, 4), "yes": np.array(yes)}
            for n, yes in [(3, True), (1, True), (1, False), (3, False), (5, False)]
        ],
    ),
    "batches of matrices": (
        [node("Reshape", "x shape", "u"), node("MatMul", "u z", "r")],
        {"x": (FLOAT, ["n"]), "shape": (INT64, [3]), "z": (FLOAT, ["m", 4, 5])},
        {},
        [
            {"x": floats(8 * n), "shape": np.array([n, 2, 4]), "z": floats(m, 4, 5)}
            for n, m in [(1, 3), (3, 3), (3, 1), (1, 1)]
        ],
    ),
    "the state of a Scan and what it slices": (
        [
            node(
                "Scan", "z x", "last r", num_scan_inputs=1,
                body=helper.make_graph(
                    [node("Add", "s row", "a"), node("Identity", "s", "same")], "body",
                    [helper.make_tensor_value_info(name, FLOAT, None) for name in ("s", "row")],
                    [helper.make_tensor_value_info(name, FLOAT, None) for name in ("same", "a")]),
            ),
        ],
        {"x": (FLOAT, [4, "n"]), "z": (FLOAT, ["m"])},
        {},
        [{"x": floats(4, n), "z": floats(m)} for n, m in [(1, 3), (3, 3), (3, 1), (1, 1)]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_extents_of_a_run_are_repeated_where_they_are_one(name):
    nodes, inputs, constants, feeds = MODELS[name]
    made = model(nodes, inputs, ["r"], constants)
    runs = engine(made)
    for feed in feeds:
        same(runs(feed), onnx_evaluator(made).run(None, feed))


@pytest.mark.parametrize(
    ("name", "feed"),
    [
        ("a dimension of an input", {"x": SOME, "z": floats(1, 3)}),
        ("two of a run", {"x": SOME, "z": np.ones(3, np.float32)}),
        ("a number", {"x": np.ones(3, np.float32)}),
        ("batches of matrices", {"x": floats(16), "shape": np.array([2, 2, 4]), "z": floats(3, 4, 5)}),
    ],
)
def test_others_are_refused_by_what_they_should_be(name, feed):
    nodes, inputs, constants, _ = MODELS[name]
    with pytest.raises(lw.RuntimeArgumentError, match="should be 1 or "):
        engine(model(nodes, inputs, ["r"], constants))(feed)
