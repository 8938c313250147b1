"""Small ONNX models with open extents, compiled and compared."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw

TARGET = "x86-64-v3"
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def model(nodes, inputs, outputs, constants=None, opset=21, domains=()):
    """``inputs`` are (type, shape) by name."""
    given = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
    wanted = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(helper.make_graph(nodes, "g", given, wanted, stored), opset_imports=opsets)


def engine(made, shapes=None):
    return lw.Engine(lw.compile(made, target=TARGET, shapes=shapes, jobs=1), threads=1)


def same(found, expected, tolerance=1e-5):
    assert [a.shape for a in found] == [b.shape for b in expected]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance)
