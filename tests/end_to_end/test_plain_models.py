"""The plain code of models on the node cases of onnx's backend tests: what it serves is right."""

import numpy as np
import pytest
from backend_cases import node_cases, stored
from onnx import TensorProto

import loopwright as lw
from loopwright.compiler.model.plain_model import plain_model
from loopwright.compiler.settings import CompileSettings
from loopwright.frontend import from_onnx

UNSEEDED = "bernoulli"
"""The cases of this operator have the results of one draw."""
LEAST = 1380
"""So many cases were served when this was written, of 1,884."""


def is_right(found, wanted):
    if found.shape != np.shape(wanted):
        return False
    kind = wanted.dtype
    if kind.kind in "biuO":
        return bool((found == wanted).all())
    tolerance = 1e-3 if kind.itemsize >= 4 else 2e-2
    wide = np.complex128 if kind.kind == "c" else np.float64
    return np.allclose(found.astype(wide), wanted.astype(wide), tolerance, tolerance / 100, equal_nan=True)


def is_tensor(value):
    """Others are sequences, or absent, which the model has to be told of."""
    return isinstance(value, TensorProto | np.ndarray)


@pytest.mark.slow
def test_what_plain_code_serves_is_right():
    settings = CompileSettings(lw.resolve_target("native"))
    served, wrong = 0, []
    for case in node_cases():
        if case.model is None or UNSEEDED in case.name:
            continue
        try:
            function = from_onnx(case.model)
        except lw.ModelError:
            continue
        model = plain_model(function, settings)
        if model is None or not all(map(is_tensor, case.data_sets[0][0])):
            continue
        given, wanted = (list(map(stored, values)) for values in case.data_sets[0])
        names = [value.name for value in case.model.graph.input]
        found = model([np.asarray(given[names.index(p.name)], order="C") for p in function.params])
        served += 1
        if not all(map(is_right, found, wanted)):
            wrong.append(case.name)
    assert wrong == []
    assert served >= LEAST
