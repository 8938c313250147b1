"""onnx's own runner of backend tests, unmodified, on all cases that need no download: which of them pass is a promise.

The runner skips what ``is_compatible`` refuses; here that is a failure.
"""

import unittest
from functools import cache

import numpy as np
import pytest
from backend_cases import cases_of, quietly
from onnx.backend.test import BackendTest

from loopwright import onnx_backend

GROUPS = ("Node", "Simple", "PyTorchConverted", "PyTorchOperator")
RANDOM = {f"test_bernoulli{kind}{form}_cpu" for kind in ("", "_double", "_seed") for form in ("", "_expanded")}
"""Their results are those of numpy's generator, without a seed or with another one than the file's."""


ROUNDING = {
    "test_dft_inverse_cpu": "numbers that should be 0 are compared with what numpy's rounding leaves of them",
    "test_attention_4d_causal_fp16_expanded_cpu": "float16 is rounded after each operator there, and once here",
}
"""Which of these pass depends on the processor: on how many numbers are summed at once."""
UNCOMPARABLE = {"test_loop16_seq_none_cpu": "the runner asks for the length of the scalar in the sequence that it gets"}


@cache
def cases():
    """All cases by name. To make them takes seconds, so that they are made only where they are run."""
    with quietly():
        runner = BackendTest(onnx_backend.LoopwrightBackend, __name__)
    groups = [runner.test_cases[f"OnnxBackend{group}ModelTest"] for group in GROUPS]
    return {
        name: group for group in groups for name in dir(group) if name.startswith("test_") and name.endswith("_cpu")
    }


def promised():
    """The names of all cases that are no matter of chance, those that may or do fail with the reason."""
    for name in sorted(set(cases()) - RANDOM):
        reason = ROUNDING.get(name) or UNCOMPARABLE.get(name)
        marks = [pytest.mark.xfail(reason=reason, strict=name in UNCOMPARABLE)] if reason else []
        yield pytest.param(name, marks=marks)


def pytest_generate_tests(metafunc):
    if "official_case" in metafunc.fixturenames:
        left_out = metafunc.config.option.markexpr == "not slow"
        metafunc.parametrize("official_case", [] if left_out else [*promised()])


@pytest.mark.slow
def test_no_case_is_missing():
    assert len(cases()) >= 2000  # in onnx 1.23; fewer would be an older package, or another runner
    assert set(cases()) >= {*RANDOM, *ROUNDING, *UNCOMPARABLE}


@pytest.mark.slow
def test_official(official_case):
    result = unittest.TestResult()
    cases()[official_case](official_case).run(result)
    problems = [text for _, text in (*result.errors, *result.failures, *result.skipped)]
    assert not problems, problems[0]


def test_the_sequence_that_the_runner_cannot_compare():
    (case,) = [case for case in cases_of("loop") if case.name == "test_loop16_seq_none"]
    for inputs, (wanted,) in case.data_sets:
        (found,) = onnx_backend.prepare(case.model).run(inputs)
        assert [x.shape for x in found] == [x.shape for x in wanted] == [(), *((n,) for n in range(1, 6))]
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, y)
