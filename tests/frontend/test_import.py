"""The import of whole models: folding of computed shapes, symbols, functions, branches, names, and order."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import compare, floats, ints, make_model, run

import loopwright as lw
from loopwright.graph import Call, Constant
from loopwright.graph.visit import post_order

node = helper.make_node


def calls(function):
    return [n for n in post_order(function) if isinstance(n, Call)]


def check(model, feeds, shapes=None):
    compare(run(model, feeds, shapes), ReferenceEvaluator(model).run(None, feeds))


def flattening(first, shape):
    """Reshape to (first extent, the rest), the way exporters write it."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Constant", [], ["rest"], value=numpy_helper.from_array(ints(-1))),
        node("Concat", ["n1", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"], name="flat"),
    ]
    constants = {"zero": np.int64(first), "axes": ints(0)}
    return make_model(nodes, {"x": (np.float32, shape)}, ["y"], 13, constants)


def test_a_shape_that_is_computed_becomes_an_attribute():
    model = flattening(1, [2, 3, 4])
    (call,) = calls(lw.from_onnx(model))
    assert call.op.name == "reshape"
    assert call.attrs.shape == (3, -1)
    assert call.origin == ("flat",)
    check(model, {"x": floats(2, 3, 4)})


def test_shapes_that_are_given_decide_computed_ones():
    model = flattening(0, ["batch", 3, 4])
    assert str(lw.from_onnx(model).body.type) == "float32[batch, 12]"
    (call,) = calls(lw.from_onnx(model, {"x": (5, 3, 4)}))
    assert call.attrs.shape == (5, -1)
    check(model, {"x": floats(5, 3, 4)}, {"x": (5, 3, 4)})


def test_a_named_dimension_is_one_symbol_and_holds_for_all_inputs():
    model = make_model([node("Add", ["a", "b"], ["y"])], {"a": (np.float32, ["n", 3]), "b": (np.float32, ["n", 3])},
                       ["y"], 13)  # fmt: skip
    function = lw.from_onnx(model)
    assert function.body.type is function.params[0].type is function.params[1].type
    given = lw.from_onnx(model, {"b": (4, 3)})
    assert [p.type.static_shape for p in given.params] == [(4, 3), (4, 3)]
    part = lw.from_onnx(model, {"a": (None, 3)})
    assert [str(p.type) for p in part.params] == ["float32[n, 3]"] * 2
    both = lw.from_onnx(model, {"a": (None, 3), "b": (4, None)})
    assert [p.type.static_shape for p in both.params] == [(4, 3), (4, 3)]
    assert [p.name for p in given.params] == ["a", "b"]


def test_arithmetic_on_shapes_is_folded():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "two", "four"], ["hw"]),
        node("Cast", ["hw"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["f", "scale"], ["g"]),
        node("Floor", ["g"], ["h"]),
        node("Cast", ["h"], ["i"], to=TensorProto.INT64),
        node("Slice", ["s", "none", "two"], ["nc"]),
        node("Concat", ["nc", "i"], ["sizes"], axis=0),
        node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest"),
    ]
    constants = {"two": ints(2), "four": ints(4), "none": ints(0), "scale": np.float32(1.7)}
    model = make_model(nodes, {"x": (np.float32, [1, 2, 3, 5])}, ["y"], 13, constants)
    assert lw.from_onnx(model).body.type.static_shape == (1, 2, 5, 8)
    check(model, {"x": floats(1, 2, 3, 5)})


def test_where_and_expand_of_shapes_are_folded():
    nodes = [
        node("ConstantOfShape", ["three"], ["ones"], value=numpy_helper.from_array(ints(1))),
        node("Mul", ["ones", "minus"], ["minuses"]),
        node("Equal", ["shape", "minuses"], ["same"]),
        node("Where", ["same", "ones", "shape"], ["target"]),
        node("Expand", ["x", "target"], ["y"]),
    ]
    constants = {"three": ints(3), "minus": np.int64(-1), "shape": ints(2, -1, 4)}
    model = make_model(nodes, {"x": (np.float32, [1, 3, 1])}, ["y"], 13, constants)
    check(model, {"x": floats(1, 3, 1)})
    assert [c.op.name for c in calls(lw.from_onnx(model))] == ["broadcast_to"]


def test_a_power_of_two_that_a_model_computes_is_an_extent():
    """A shape may be computed in floats, by any operator."""
    nodes = [
        node("Log", ["many"], ["l"]),
        node("Exp", ["l"], ["e"]),
        node("Pow", ["two", "e"], ["p"]),
        node("Sqrt", ["p"], ["q"]),
        node("Round", ["q"], ["r"]),
        node("Cast", ["r"], ["n"], to=TensorProto.INT64),
        node("Expand", ["x", "n"], ["y"]),
    ]
    constants = {"many": np.asarray([6.0], np.float32), "two": np.float32(2)}
    model = make_model(nodes, {"x": (np.float32, [1])}, ["y"], 13, constants)
    assert lw.from_onnx(model).body.type.static_shape == (8,)
    check(model, {"x": floats(1)})


@pytest.mark.parametrize(
    ("made", "constants"),
    [
        (node("Erf", ["a"], ["t"]), {"a": floats(2, 3)}),
        (node("CumSum", ["a", "axis"], ["t"]), {"a": floats(2, 3), "axis": np.int64(1)}),
        (node("ArgMax", ["a"], ["t"], axis=1), {"a": floats(2, 3)}),
        (node("GatherElements", ["a", "i"], ["t"], axis=1), {"a": floats(2, 3), "i": np.array([[2, 0, 1], [1, 1, 0]])}),
        (node("Softmax", ["a"], ["t"]), {"a": floats(2, 3)}),
        (node("MatMul", ["a", "b"], ["t"]), {"a": floats(2, 3), "b": floats(3, 2)}),
        (node("Trilu", ["a"], ["t"]), {"a": floats(3, 3)}),
        (node("OneHot", ["i", "d", "v"], ["t"]), {"i": ints(0, 2), "d": np.int64(3), "v": ints(1, 5)}),
    ],
    ids=lambda case: case.op_type if hasattr(case, "op_type") else "",
)
def test_any_operator_of_small_constants_is_folded(made, constants):
    nodes = [made, node("Cast", ["t"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "x"], ["y"])]
    model = make_model(nodes, {"x": (np.float32, [1])}, ["y"], 17, constants)
    assert [c.op.name for c in calls(lw.from_onnx(model))] == ["multiply"]
    check(model, {"x": floats(1)})


def test_an_initializer_is_one_constant():
    model = make_model([node("Add", ["x", "w"], ["a"]), node("Mul", ["a", "w"], ["y"])], {"x": floats(3)}, ["y"], 13,
                       {"w": floats(3)})  # fmt: skip
    assert len([n for n in post_order(lw.from_onnx(model)) if isinstance(n, Constant)]) == 1


def test_initializers_that_are_inputs_as_well_are_constants():
    model = make_model([node("Add", ["x", "w"], ["y"])], {"x": floats(3), "w": floats(3)}, ["y"], 7, {"w": floats(3)})
    assert [p.name for p in lw.from_onnx(model).params] == ["x"]


def test_nodes_in_any_order_are_accepted_and_unused_ones_dropped():
    nodes = [node("Exp", ["a"], ["y"]), node("Relu", ["x"], ["a"]), node("Tanh", ["x"], ["z"])]
    model = make_model(nodes, {"x": floats(3)}, ["y"], 13)
    assert [c.op.name for c in calls(lw.from_onnx(model))] == ["relu", "exp"]


def test_names_of_outputs_are_kept():
    model = make_model([node("Relu", ["x"], ["a"])], {"x": floats(3)}, ["a", "x"], 13)
    function = lw.from_onnx(model)
    assert function.output_names == ("a", "x")
    np.testing.assert_array_equal(run(model, {"x": floats(3)})[1], floats(3))


def test_functions_of_the_model_are_inlined():
    body = [
        helper.make_node("Elu", ["a"], ["b"]),
        helper.make_node("Add", ["b", "a"], ["c"]),
    ]
    alpha = body[0].attribute.add()
    alpha.name, alpha.ref_attr_name, alpha.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    function = helper.make_function("own", "Twice", ["a"], ["c"], body, [helper.make_opsetid("", 13)], ["slope"])
    nodes = [node("Twice", ["x"], ["h"], domain="own", slope=0.5), node("Twice", ["h"], ["y"], domain="own")]
    model = make_model(nodes, {"x": floats(4)}, ["y"], 13, functions=[function])
    model.opset_import.append(helper.make_opsetid("own", 1))
    x = floats(4)
    h = x + np.where(x < 0, 0.5 * np.expm1(x), x)
    wanted = h + np.where(h < 0, np.expm1(h), h)  # the attribute that is left out has its default inside
    compare(run(model, {"x": x}), [wanted])
    assert [c.op.name for c in calls(lw.from_onnx(model))] == ["elu", "add", "elu", "add"]


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes"),
    [
        ("MeanVarianceNormalization", 13, [floats(2, 3, 4, 5)], {}),
        ("NegativeLogLikelihoodLoss", 13, [floats(3, 5), ints(1, 0, 4)], {}),
        ("RotaryEmbedding", 23, [floats(1, 2, 3, 4), floats(1, 3, 2), floats(1, 3, 2)], {}),
        ("Attention", 23, [floats(1, 2, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)], {"softcap": 2.0}),
        ("CenterCropPad", 18, [floats(5, 4), ints(3, 6)], {}),
    ],
)
def test_functions_of_the_standard_are_inlined(op, opset, inputs, attributes):
    fed = {f"x{k}": value for k, value in enumerate(inputs) if value.dtype == np.float32 or op.startswith("Neg")}
    stored = {f"x{k}": value for k, value in enumerate(inputs) if f"x{k}" not in fed}
    model = make_model(
        [node(op, [f"x{k}" for k in range(len(inputs))], ["y"], **attributes)], fed, ["y"], opset, stored
    )
    check(model, fed)


def test_a_branch_that_is_known_is_taken():
    def branch(op):
        return helper.make_graph([node(op, ["x"], ["r"])], "branch", [], [onnx.ValueInfoProto(name="r")])

    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Equal", ["s", "three"], ["c"]),
        node("If", ["c"], ["y"], then_branch=branch("Exp"), else_branch=branch("Relu")),
    ]
    for extent, op in ((3, "exp"), (4, "relu")):
        model = make_model(nodes, {"x": floats(extent)}, ["y"], 13, {"three": ints(3)})
        assert [c.op.name for c in calls(lw.from_onnx(model))] == [op]


def test_a_model_may_be_a_path_or_bytes(tmp_path):
    model = make_model([node("Relu", ["x"], ["y"])], {"x": floats(3)}, ["y"], 13)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    texts = {str(lw.from_onnx(m)) for m in (model, model.SerializeToString(), path, str(path))}
    assert len(texts) == 1


def test_external_data_is_read_from_beside_the_model(tmp_path):
    weight = floats(64, 64)
    model = make_model([node("MatMul", ["x", "w"], ["y"])], {"x": floats(2, 64)}, ["y"], 13, {"w": weight})
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    np.testing.assert_allclose(run(path, {"x": floats(2, 64)})[0], floats(2, 64) @ weight, rtol=1e-4, atol=1e-4)
