"""The node cases of onnx's backend tests, which can be made only once in a process."""

import warnings
from functools import cache

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests


@cache
def node_cases():
    """All of them; what numpy warns of while they are made is no concern of ours."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def stored(value):
    """An input or output of a case as an array."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
