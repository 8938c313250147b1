"""onnx's own runner of backend tests, unmodified, on all cases that need no download: which of them pass is a promise.

The runner skips what ``is_compatible`` refuses; here that is a failure.
"""

import unittest
import warnings

import numpy as np
import pytest
from onnx.backend.test import BackendTest

from loopwright import onnx_backend

with warnings.catch_warnings(), np.errstate(all="ignore"):  # while the cases are made
    warnings.simplefilter("ignore")
    RUNNER = BackendTest(onnx_backend.LoopwrightBackend, __name__)

GROUPS = ("Node", "Simple", "PyTorchConverted", "PyTorchOperator")
CASES = {
    name: case
    for group in GROUPS
    for case in [RUNNER.test_cases[f"OnnxBackend{group}ModelTest"]]
    for name in dir(case)
    if name.startswith("test_") and name.endswith("_cpu")
}
RANDOM = {f"test_bernoulli{kind}{form}_cpu" for kind in ("", "_double", "_seed") for form in ("", "_expanded")}
"""Their results are those of numpy's generator, without a seed or with another one than the file's."""


def test_no_case_is_missing():
    assert len(CASES) >= 2000  # in onnx 1.23; fewer would be an older package, or another runner
    assert set(CASES) >= RANDOM


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CASES) - RANDOM))
def test_official_case(name):
    result = unittest.TestResult()
    CASES[name](name).run(result)
    problems = [text for _, text in (*result.errors, *result.failures, *result.skipped)]
    assert not problems, problems[0]
