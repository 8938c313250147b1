"""Lengths that a model computes by other formulas than those of its convolutions, as exporters of speech models write
them. Against onnx's reference."""

import numpy as np
import pytest
from onnx import helper
from onnx_cases import floats
from open_models import FLOAT, engine, model, same

import loopwright as lw
from loopwright.runtime.measure.onnx_reference import onnx_evaluator


def heads_of_frames(last):
    """Two convolutions of strides 10 and 2 over time, whose frames have their channels as rows of four; the number of
    frames is computed with a quotient of integers, to which ``last`` is added."""

    def node(op, inputs, output, **attributes):
        return helper.make_node(op, inputs, [output], **attributes)

    nodes = [
        node("Conv", ["x", "v"], "a", strides=[10]),
        node("Conv", ["a", "w"], "frames", strides=[2]),
        node("Transpose", ["frames"], "rows", perm=[0, 2, 1]),
        node("Shape", ["x"], "batch", start=0, end=1),
        node("Shape", ["x"], "time", start=2),
        node("Div", ["time", "ten"], "tenths"),
        node("Add", ["tenths", "minus_six"], "others"),
        node("Div", ["others", "two"], "half"),
        node("Add", ["half", "last"], "length"),
        node("Concat", ["batch", "length", "minus_one", "four"], "shape", axis=0),
        node("MatMul", ["rows", "u"], "features"),
        node("Reshape", ["features", "shape"], "heads"),
        node("Transpose", ["heads"], "queries", perm=[0, 2, 1, 3]),
        node("Transpose", ["heads"], "keys", perm=[0, 2, 3, 1]),
        node("MatMul", ["queries", "keys"], "scores"),
        node("MatMul", ["scores", "queries"], "mixed"),
        node("Transpose", ["mixed"], "together", perm=[0, 2, 1, 3]),
        node("Concat", ["batch", "length", "minus_one"], "joined", axis=0),
        node("Reshape", ["together", "joined"], "again"),
        node("Add", ["again", "rows"], "sum"),
        node("MatMul", ["sum", "u"], "y"),
    ]
    numbers = {"ten": 10, "two": 2, "minus_six": -6, "minus_one": -1, "four": 4, "last": last}
    constants = {name: np.array([number]) for name, number in numbers.items()}
    weights = {"v": floats(6, 1, 60), "w": floats(8, 6, 3), "u": floats(8, 8)}
    return model(nodes, {"x": (FLOAT, ["b", 1, "n"])}, ["y"], constants | weights)


def test_frames_are_counted_by_another_formula():
    made = heads_of_frames(0)
    run = engine(made)
    for batch, time in ((1, 400), (3, 97), (2, 81), (1, 80)):
        x = floats(batch, 1, time)
        (found,), (expected,) = run([x]), onnx_evaluator(made).run(None, {"x": x})
        largest = np.abs(expected).max()  # products of products, some of which cancel out
        same([found / largest], [expected / largest])


def test_a_formula_that_is_another_number_is_refused():
    with pytest.raises(lw.LoopwrightError):
        engine(heads_of_frames(1))([floats(1, 1, 400)])
