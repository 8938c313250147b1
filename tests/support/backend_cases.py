"""The node cases of onnx's backend tests, which can be made only once in a process."""

import warnings
from contextlib import contextmanager
from functools import cache
from importlib import import_module

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node
from onnx.backend.test.loader import load_model_tests


@contextmanager
def quietly():
    """Without the warnings of numpy that come while cases are made, which are no concern of ours."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@cache
def node_cases():
    """All of them; to make them takes several seconds."""
    with quietly():
        return load_model_tests(kind="node")


@cache
def cases_of(*modules):
    """Those that these modules of onnx make, in milliseconds for most; where others are made already, these as well."""
    with quietly():
        for module in modules:
            import_module(f"{node.__name__}.{module}")
    return list(node._NodeTestCases)


def stored(value):
    """An input or output of a case as an array."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
