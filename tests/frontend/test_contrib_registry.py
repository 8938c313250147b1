"""The operators of onnxruntime's own domain: each kernel that it has is converted, or refused for a reason; converters
know the attributes and inputs that its schemas have."""

import sys

import numpy as np
import onnxruntime  # noqa: F401  loads the library below
import pytest
from contrib_cases import contrib_case, contrib_model
from onnxruntime.capi import onnxruntime_pybind11_state as library

import loopwright as lw
from loopwright.frontend.refused import reason_of
from loopwright.frontend.registry import converted_versions, foreign_form

MICROSOFT = "com.microsoft"
SCHEMAS = {(s.domain, s.name): s for s in library.get_all_operator_schema()}
CONVERTED = [(domain, name) for domain, name, _ in converted_versions() if foreign_form(domain, name) is not None]


def test_each_kernel_of_onnxruntime_is_converted_or_refused_for_a_reason():
    kernels = {k.op_name for k in library.get_all_opkernel_def() if k.domain == MICROSOFT}
    done = {name for domain, name in CONVERTED if domain == MICROSOFT}
    assert {name for name in kernels - done if reason_of(MICROSOFT, name) is None} == set()
    assert {name for name in kernels & done if reason_of(MICROSOFT, name) is not None} == set()


@pytest.mark.parametrize(("domain", "name"), CONVERTED, ids=[name for _, name in CONVERTED])
def test_a_converter_knows_the_form_that_onnxruntime_gives_the_operator(domain, name):
    schema, form = SCHEMAS[domain, name], foreign_form(domain, name)
    assert form.attributes == set(schema.attributes)
    variadic = schema.inputs and str(schema.inputs[-1].option).endswith("Variadic")
    assert form.inputs == (sys.maxsize if variadic else len(schema.inputs))


@pytest.mark.parametrize("name", ["BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"])
def test_a_search_is_refused_with_the_reason(name):
    model = contrib_model(contrib_case(name, np.zeros((1, 4), np.int32)))
    with pytest.raises(lw.ModelError, match=rf"{name} \(domain 'com.microsoft', it generates"):
        lw.from_onnx(model)
