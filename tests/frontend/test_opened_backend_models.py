"""onnx's own models of one operator, imported with extents that they have numbers for left open. What is refused has a
reason: a number that the operator's definition needs."""

import copy
import warnings
from collections import Counter

import pytest
from onnx.backend.test.loader import load_model_tests

import loopwright as lw
from loopwright.frontend import from_onnx

WEIGHTS = {
    "CausalConvWithState", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "LSTM", "LinearAttention",
    "QLinearConv", "RNN",
}  # fmt: skip
"""Their filters or heads are an extent of an input that stands first."""
LAST_AXES = {
    "AffineGrid",  # a matrix of two by three, or three by four
    "LinearAttention", "RotaryEmbedding",  # the size of a head
    "ConvTranspose",  # with output_shape, of which padding is made
    "DFT", "STFT",  # real numbers or pairs
}  # fmt: skip


def opened(model, axes):
    """The model with some axes of its inputs open, and how many these are."""
    made, count = copy.deepcopy(model), 0
    for number, info in enumerate(made.graph.input):
        shape = info.type.tensor_type.shape
        for axis in axes(number, len(shape.dim)):
            shape.dim[axis].dim_param = f"{info.name}_{axis}"
            count += 1
    for info in made.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return made, count


def refused(axes):
    """How many models of each operator are refused that are taken with all extents known; and how many are taken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in load_model_tests(kind="node") if "_expanded" not in case.name]
    found, taken = Counter(), 0
    for case in cases:
        made, count = opened(case.model, axes)
        if not count or "training" in case.name:
            continue
        try:
            from_onnx(case.model)
        except lw.LoopwrightError:
            continue
        try:
            from_onnx(made)
            taken += 1
        except lw.LoopwrightError:
            found[case.model.graph.node[0].op_type] += 1
    return found, taken


@pytest.mark.slow
def test_the_first_axis_of_all_inputs_may_be_open():
    found, taken = refused(lambda number, rank: [0] if rank > 1 else [])
    assert set(found) <= WEIGHTS, found
    assert taken > 1000


@pytest.mark.slow
def test_axes_behind_the_second_may_be_open():
    found, taken = refused(lambda number, rank: range(2, rank) if number == 0 else [])
    assert set(found) <= LAST_AXES, found
    assert taken > 700
