"""Operators whose extents are open, though weights, or the operator itself, ask for certain numbers: onnx's oracle."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import floats
from open_models import FLOAT, engine, model, same

import loopwright as lw
from loopwright.runtime.measure.onnx_reference import onnx_evaluator

WEIGHTS = {"w": floats(6, 4, 3, 3), "one": floats(4), "other": floats(4, seed=1), "grouped": floats(4, 3, 3, 3),
           "down": floats(4, 1, 3, 1), "wide": floats(6, 4, 3, 5)}  # fmt: skip
FORMS = [
    # operator, its other inputs, attributes, declared and given shapes of x
    ("LayerNormalization", "one other", {}, ["n", "c"], [(3, 4), (1, 4)]),
    ("LayerNormalization", "one", {"axis": -1}, ["n", "s", "c"], [(3, 2, 4), (1, 1, 4)]),
    ("RMSNormalization", "one", {}, ["n", "c"], [(3, 4), (1, 4)]),
    ("PRelu", "one", {}, ["n", "m", "c"], [(3, 2, 4), (1, 1, 4)]),
    ("Conv", "w", {}, ["n", "c", "h", "v"], [(1, 4, 5, 6), (2, 4, 3, 3)]),
    ("Conv", "w", {"pads": [1, 1, 1, 1], "strides": [2, 2]}, ["n", "c", "h", "v"], [(1, 4, 5, 6), (2, 4, 1, 3)]),
    ("Conv", "down one", {"group": 4, "pads": [2, 0, 0, 0]}, ["n", 4, "h", 1],
     [(1, 4, 70, 1), (2, 4, 1, 1), (0, 4, 3, 1)]),
    ("Conv", "wide", {"pads": [1, 0, 1, 0], "strides": [2, 1]}, ["n", 4, "h", 5],
     [(1, 4, 70, 5), (2, 4, 1, 5), (0, 4, 3, 5)]),
    ("ConvTranspose", "grouped", {}, ["n", "c", "h", "v"], [(1, 4, 5, 6), (2, 4, 1, 3)]),
    ("ConvTranspose", "grouped", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, ["n", 4, "h", "v"],
     [(1, 4, 5, 6), (2, 4, 1, 3)]),
    ("GroupNormalization", "one other", {"num_groups": 2}, ["n", "c", "h"], [(1, 4, 5), (2, 4, 3)]),
    ("InstanceNormalization", "one other", {}, ["n", "c", "h"], [(1, 4, 5), (2, 4, 3)]),
    ("SpaceToDepth", "", {"blocksize": 2}, ["n", "c", "h", "v"], [(1, 4, 6, 2), (2, 3, 4, 4)]),
    ("DepthToSpace", "", {"blocksize": 2}, ["n", "c", "h", "v"], [(1, 4, 6, 2), (2, 8, 3, 5)]),
    ("Hardmax", "", {"axis": 1}, ["n", "c", "h"], [(1, 4, 6), (2, 8, 3)]),
    ("Hardmax", "", {}, ["n", "c"], [(1, 4), (2, 8)]),
    ("EyeLike", "", {"k": 1}, ["n", "c"], [(1, 4), (5, 3)]),
    ("EyeLike", "", {"k": -1, "dtype": TensorProto.INT32}, ["n", "n"], [(1, 1), (5, 5)]),
    ("Det", "", {}, ["b", "n", "m"], [(1, 3, 3), (2, 2, 2)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "others", "attributes", "declared", "shapes"), FORMS, ids=[f"{k}-{i}" for i, (k, *_) in enumerate(FORMS)]
)
def test_one_compilation_serves_all_extents(kind, others, attributes, declared, shapes):
    names = others.split()
    node = helper.make_node(kind, ["x", *names], ["y"], **attributes)
    made = model([node], {"x": (FLOAT, declared)}, ["y"], {name: WEIGHTS[name] for name in names}, opset=23)
    compiled, reference = engine(made), onnx_evaluator(made)
    for number, shape in enumerate(shapes):
        x = floats(*shape, seed=number)
        same(compiled([x]), reference.run(None, {"x": x}), 1e-4)


def test_a_mask_of_what_nothing_is_dropped_of_is_open():
    made = model([helper.make_node("Dropout", ["x"], ["y", "m"])], {"x": (FLOAT, ["n", "c"])}, ["y", "m"], opset=13)
    compiled = engine(made)
    for shape in ((2, 3), (1, 7)):
        x = floats(*shape)
        same(compiled([x]), [x, np.ones(shape, bool)])


@pytest.mark.parametrize(
    ("kind", "others", "attributes", "declared", "wrong", "problem"),
    [
        ("LayerNormalization", "one", {}, ["n", "c"], (2, 5), "4"),
        ("Conv", "w", {}, ["n", "c", "h", "v"], (1, 5, 5, 5), "4"),
        ("SpaceToDepth", "", {"blocksize": 2}, ["n", "c", "h", "v"], (1, 4, 5, 4), "multiple of 2"),
        ("DepthToSpace", "", {"blocksize": 2}, ["n", "c", "h", "v"], (1, 5, 5, 4), "multiple of 4"),
        ("Det", "", {}, ["n", "m"], (2, 3), "2"),
    ],
)
def test_a_run_with_extents_that_do_not_fit_is_refused(kind, others, attributes, declared, wrong, problem):
    names = others.split()
    node = helper.make_node(kind, ["x", *names], ["y"], **attributes)
    made = model([node], {"x": (FLOAT, declared)}, ["y"], {name: WEIGHTS[name] for name in names}, opset=23)
    with pytest.raises(lw.RuntimeArgumentError, match=problem):
        engine(made)([floats(*wrong)])


def linear(count, columns):
    rng = np.random.default_rng(0)
    return {
        "coefficients": rng.standard_normal(count * columns).tolist(),
        "intercepts": rng.standard_normal(count).tolist(),
    }


def test_columns_of_tables_may_be_open():
    """As skl2onnx leaves them for an input that is declared as [None, None]."""
    node = helper.make_node("LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", targets=2, **linear(2, 3))
    made = model([node], {"x": (FLOAT, ["n", "c"])}, ["y"])
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    compiled, reference = engine(made), onnx_evaluator(made)
    for rows in (1, 5):
        x = floats(rows, 3)
        same(compiled([x]), reference.run(None, {"x": x}), 1e-5)
    with pytest.raises(lw.RuntimeArgumentError, match="3"):
        compiled([floats(2, 4)])


def test_a_forest_reads_the_columns_that_it_asks_for():
    tree = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, -2.0],
    }  # fmt: skip
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **tree)
    made = model([node], {"x": (FLOAT, ["n", "c"])}, ["y"])
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    compiled = engine(made)
    for columns in (3, 6):
        x = floats(4, columns)
        same(compiled([x]), [np.where(x[:, 2:3] <= 0.5, 1.0, -2.0).astype(np.float32)])
    with pytest.raises(lw.RuntimeArgumentError):
        compiled([floats(2, 2)])


def test_rows_of_a_convolution_as_exporters_write_them_are_what_it_gives():
    """``(h - 1) / 2 + 1`` is 1 for no rows, where the convolution would give none; but it has a row to read."""
    numbers = {"one": np.array([1]), "two": np.array([2]), "three": np.array([3]), "w": WEIGHTS["w"]}
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        *(node("Shape", ["x"], [name], start=k, end=k + 1) for k, name in enumerate(("b", "_", "h", "v"))),
        *(node(kind, [f"{x}{before}", number], [f"{x}{after}"])
          for x in "hv" for kind, before, number, after in (("Sub", "", "one", "0"), ("Div", "0", "two", "1"),
                                                            ("Add", "1", "one", "2"))),
        node("Concat", ["b", "two", "three", "h2", "v2"], ["shape"], axis=0), node("Reshape", ["c", "shape"], ["y"]),
    ]  # fmt: skip
    made = model(nodes, {"x": (FLOAT, ["b", 4, "h", "v"])}, ["y"], numbers)
    assert "assume_extent" not in str(lw.from_onnx(made))
    runs = engine(made)
    for rows, columns in ((5, 6), (1, 2), (2, 1)):
        x = floats(2, 4, rows, columns)
        same(runs([x]), onnx_evaluator(made).run(None, {"x": x}))
    with pytest.raises(lw.RuntimeArgumentError, match="h should be at least 1"):
        runs([floats(2, 4, 0, 6)])
