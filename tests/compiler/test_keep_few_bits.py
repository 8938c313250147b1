"""Constant weights of 4 and 2 bits that a model dequantizes are multiplied as they are; against onnx's evaluator."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright import nn

KINDS = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}
KEPT = "fused_nn_packed_blockwise"


def integers(kind, shape, seed):
    lowest = -8 if kind == "int4" else 0
    values = np.random.default_rng(seed).integers(lowest, lowest + 16, shape)
    return values.astype(getattr(ml_dtypes, kind))


def model(rows, terms, columns, block, axis, kind, zeros=True, behind="MatMul", parameters=None, along=None):
    """A product by a weight that is dequantized in blocks along an axis: its first if that is the reduction, else it is
    transposed, or turned by Gemm. Scales that are not of blocks have the shape ``parameters``, ``along`` an axis."""
    shape = [terms, columns] if axis == 0 else [columns, terms]
    if parameters is None:
        parameters = list(shape)
        parameters[axis] = -(-terms // block)
    scale = np.random.default_rng(1).uniform(0.01, 0.1, parameters).astype(np.float32)
    stored = {"w": integers(kind, shape, 0), "s": scale}
    if zeros:
        stored["z"] = integers(kind, parameters, 2)
    blocks = {"block_size": block} if block else {}
    along = (axis if block else 1 - axis) if along is None else along
    nodes = [helper.make_node("DequantizeLinear", list(stored), ["d"], axis=along, **blocks)]
    if behind == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "d"], ["y"], transB=axis))
    else:
        nodes += [helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0])] if axis else []
        nodes.append(helper.make_node("MatMul", ["x", "t" if axis else "d"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, terms])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])
    initializers = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "few_bits", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(made, rows, terms, **options):
    """The names of the functions that give what onnx's evaluator gives."""
    library = lw.compile(made, "native", **options)
    x = np.random.default_rng(3).standard_normal((rows, terms)).astype(np.float32)
    (found,) = lw.Engine(library)([x])
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return [function.name for function in library.functions]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize(("axis", "behind"), [(0, "MatMul"), (1, "MatMul"), (0, "Gemm"), (1, "Gemm")])
def test_weights_in_blocks_stay_of_few_bits(kind, zeros, axis, behind):
    for rows, terms, columns, block in ((1, 64, 48, 32), (20, 96, 33, 16)):
        assert check(model(rows, terms, columns, block, axis, kind, zeros, behind), rows, terms) == [KEPT]


@pytest.mark.parametrize("axis", [0, 1])
def test_one_scale_for_each_column_is_a_block(axis):
    assert check(model(3, 64, 40, 0, axis, "int4", parameters=[40]), 3, 64) == [KEPT]


def test_one_scale_for_all_is_a_block():
    assert check(model(3, 64, 40, 0, 0, "uint4", parameters=[]), 3, 64) == [KEPT]


def test_a_scale_for_each_term_is_no_block():
    assert KEPT not in check(model(3, 64, 40, 0, 1, "int4", parameters=[64], along=1), 3, 64)


def test_every_second_element_of_blocks_is_in_shorter_blocks():
    """Where a slice leaves elements out, blocks are not as long as they were repeated."""
    codes, scale = integers("int4", (32, 24), 0), np.random.default_rng(1).uniform(0.1, 1, (4, 24)).astype(np.float32)
    spread = nn.strided_slice(nn.repeat(lw.const(scale), 16, 0), [0], [64], [0], [2])
    zero = lw.const(np.zeros((), codes.dtype))
    x = lw.var("x", (3, 32))
    library = lw.compile(lw.Function([x], nn.matmul(x, nn.dequantize(lw.const(codes), spread, zero))), "native")
    rows = np.random.default_rng(2).standard_normal((3, 32)).astype(np.float32)
    wanted = rows @ (codes.astype(np.float32) * np.repeat(scale, 8, 0))
    np.testing.assert_allclose(lw.Engine(library)([rows])[0], wanted, rtol=1e-4, atol=1e-4)


def test_strict_precision_multiplies_what_the_model_says():
    assert KEPT not in check(model(3, 64, 40, 16, 0, "int4"), 3, 64, precision="strict")


def test_a_weight_of_bytes_may_be_real_numbers():
    """It is a fourth of its memory only, and faster so where there are many rows."""
    made = model(3, 64, 40, 16, 0, "int4")
    for stored in made.graph.initializer:
        if stored.data_type == TensorProto.INT4:
            stored.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(stored).astype(np.int8), stored.name))
    assert KEPT not in check(made, 3, 64)


def test_a_plan_has_no_more_memory_than_the_codes_take():
    made = model(1, 512, 512, 32, 0, "int4")
    library = lw.compile(made, "native")
    codes, scales = 512 * 512 // 2, 512 * 512 // 32 * (4 + 1)
    constants = sum(constant.nbytes for constant in library.model.constants)
    assert constants <= codes + scales
