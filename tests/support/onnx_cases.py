"""Cases for converters: one operator, the versions in which it has this form, inputs; run against onnx's reference."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright.graph.visit import nested_order

STANDARD_OPSET = 21
"""Of ONNX's own operators, in models of another domain."""

_results = {}


@dataclass
class Case:
    """``const`` are the positions of inputs that are initializers; None as an input leaves it out.

    ``expected`` gives the outputs where the reference has not this version of the operator, or has it wrong.
    """

    op: str
    versions: tuple
    inputs: tuple
    attrs: dict
    const: tuple = ()
    outputs: int = 1
    expected: object = None
    tolerance: float = 1e-5
    label: str = ""
    domain: str = ""
    fed: dict = field(init=False)

    def __post_init__(self):
        live = [k for k, x in enumerate(self.inputs) if x is not None and k not in self.const]
        self.fed = {f"x{k}": self.inputs[k] for k in live}


def case(op, versions, *inputs, const=(), outputs=1, expected=None, tolerance=1e-5, label="", domain="", **attrs):
    known = tuple(None if x is None else np.asarray(x, order="C") for x in inputs)
    return Case(op, versions, known, attrs, const, outputs, expected, tolerance, label, domain)


def ml_case(op, versions, *inputs, **options):
    """A case of an operator of ai.onnx.ml."""
    return case(op, versions, *inputs, domain="ai.onnx.ml", **options)


def each_version(cases):
    """Decorator: the test gets ``case`` and ``version``, for each version of each case."""
    params = [pytest.param(c, v, id="-".join(filter(None, [c.op, str(v), c.label]))) for c in cases for v in c.versions]
    return pytest.mark.parametrize(("case", "version"), params)


def floats(*shape, seed=0, low=-2.0, high=2.0, kind=np.float32):
    rng = np.random.default_rng([seed, *shape])
    return rng.uniform(low, high, shape).astype(kind)


def integers(*shape, seed=0, low=-9, high=9, kind=np.int64):
    rng = np.random.default_rng([seed, *shape])
    return rng.integers(low, high, shape).astype(kind)


def bools(*shape, seed=0):
    return integers(*shape, seed=seed, low=0, high=2).astype(bool)


def ints(*values):
    return np.array(values, np.int64)


def make_model(nodes, inputs, outputs, opset, initializers=(), domain="", **more):
    """A model of nodes; ``inputs`` are arrays by name, or (dtype, shape) pairs, ``opset`` is that of the domain."""
    infos = []
    for name, value in inputs.items():
        kind, shape = (value.dtype, value.shape) if isinstance(value, np.ndarray) else value
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape))
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(initializers).items()]
    graph = helper.make_graph(nodes, "test", infos, results, stored)
    opsets = {"": STANDARD_OPSET} | {domain: opset}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in opsets.items()], **more)


def model_of(case, version):
    names = ["" if x is None else f"x{k}" for k, x in enumerate(case.inputs)]
    outputs = [f"y{k}" for k in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, name="node", domain=case.domain, **case.attrs)
    stored = {f"x{k}": case.inputs[k] for k in case.const if case.inputs[k] is not None}
    return make_model([node], case.fed, outputs, version, stored, case.domain)


def run(model, feeds, shapes=None):
    """The outputs of a model in native code; graphs that are equal run once."""
    function = lw.from_onnx(model, shapes)
    constants = [n.value.tobytes() for n in nested_order(function.body) if isinstance(n, lw.Constant)]
    key = (str(function), tuple(constants), *((name, x.shape, x.tobytes()) for name, x in feeds.items()))
    if key not in _results:
        _results[key] = lw.Engine(lw.compile(function, jobs=1))(feeds)
    return _results[key]


def compare(found, wanted, tolerance=1e-5):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == np.shape(b)
        assert a.dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def check(case, version):
    """An operator in one version gives what the reference gives."""
    model = model_of(case, version)
    if case.expected is not None:
        made = case.expected(*case.inputs)
        wanted = made if isinstance(made, tuple) else (made,)
    else:
        wanted = ReferenceEvaluator(model).run(None, case.fed)
    compare(run(model, case.fed), wanted, case.tolerance)
