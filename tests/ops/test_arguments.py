"""Misuse of the functions of ``lw.nn`` is told with the operator, the argument, and the two values that disagree."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.ops.definition.arguments import integers, per_axis

nn = lw.nn
x, y, v = lw.var("x", (4, 6)), lw.var("y", (3, 5)), lw.var("v", (7,))
i, b, image = lw.var("i", (4,), "int64"), lw.var("b", (4, 6), "bool"), lw.var("image", (1, 8, 16, 16))

AXES = {
    "softmax": lambda axis: nn.softmax(x, axis),
    "log_softmax": lambda axis: nn.log_softmax(x, axis),
    "sum": lambda axis: nn.sum(x, axis),
    "argmax": lambda axis: nn.argmax(x, axis),
    "transpose": lambda axis: nn.transpose(x, (0, axis)),
    "squeeze": lambda axis: nn.squeeze(x, axis),
    "expand_dims": lambda axis: nn.expand_dims(x, axis),
    "concatenate": lambda axis: nn.concatenate([x, x], axis),
    "split": lambda axis: nn.split(x, [2, 4], axis),
    "strided_slice": lambda axis: nn.strided_slice(x, [0], [1], [axis]),
    "take": lambda axis: nn.take(x, i, axis),
    "gather_elements": lambda axis: nn.gather_elements(x, lw.var("j", (4, 6), "int64"), axis),
    "nn.layer_norm": lambda axis: nn.layer_norm(x, v, v, axis),
    "nn.rms_norm": lambda axis: nn.rms_norm(x, v, axis),
    "nn.lp_normalize": lambda axis: nn.lp_normalize(x, axis),
    "repeat": lambda axis: nn.repeat(x, 2, axis),
}


@pytest.mark.parametrize("op", AXES)
@pytest.mark.parametrize(
    ("axis", "message"), [(9, "axis 9 is not one of a tensor of rank"), ("1", "must be an integer, found '1'")]
)
def test_axes_that_are_none(op, axis, message):
    with pytest.raises(lw.TypeInferenceError) as error:
        AXES[op](axis)
    assert str(error.value).startswith((f"{op}(x: float32[4, 6])", f"{op}(data: float32[4, 6])"))
    assert message in str(error.value)


@pytest.mark.parametrize("op", ["sum", "softmax", "squeeze", "expand_dims"])
def test_axes_that_are_given_twice(op):
    with pytest.raises(lw.TypeInferenceError, match=rf"{op}\(x: .*axes \(0, 0\) name an axis twice"):
        AXES[op]((0, 0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.add(x, y), r"add\(.*extents 4 of a and 3 of b do not broadcast"),
        (lambda: nn.prelu(x, v), r"prelu\(.*extents 6 of x and 7 of slope do not broadcast"),
        (lambda: nn.where(b, x, y), r"where\(.*extents 4 of a and 3 of b do not broadcast"),
        (lambda: nn.broadcast_to(x, (3, 3)), r"broadcast_to\(.*extents 4 of x and 3 of the shape do not broadcast"),
        (lambda: nn.layer_norm(x, v, v), r"nn.layer_norm\(.*extents 6 of x and 7 of scale do not broadcast"),
        (lambda: nn.matmul(x, y), r"nn.matmul\(.*differ in extent: 6 of a and 3 of b"),
        (lambda: nn.dense(x, y), r"nn.dense\(.*differ in extent: 6 of x and 5 of weight"),
        (lambda: nn.max_pool(image, (3, 3, 3)), r"nn.max_pool\(x: .*window needs .* 2 spatial axes, found \(3, 3, 3\)"),
        (lambda: nn.avg_pool(x, 3), r"nn.avg_pool\(x: float32\[4, 6\]\): x needs the axes N, C and at least one"),
        (lambda: nn.trilu(image, k=lw.te.var("n")), r"k must be an integer, found n"),
        (lambda: nn.lp_pool(image, 2, strides="a"), r"nn.lp_pool\(x: .*strides must be an integer, found 'a'"),
    ],
)
def test_values_that_disagree(make, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        make()


def test_a_number_stands_for_all_axes():
    assert (
        per_axis(3, 2, "strides")
        == per_axis((3, 3), 2, "strides")
        == per_axis(np.array([3, 3]), 2, "strides")
        == (3, 3)
    )
    assert integers(np.int64(3), "axes") == (3,)


def test_axes_may_be_numbers_and_arrays_of_numpy():
    assert nn.sum(x, np.array([-1])).type is nn.sum(x, np.int64(1)).type is nn.sum(x, 1).type


def test_paddings_may_be_numbers_and_arrays_of_numpy():
    weight = lw.var("weight", (4, 8, 3, 3))
    kinds = [nn.conv2d(image, weight, padding=p).type for p in (1, np.int64(1), np.array([1, 1]), (1, 1, 1, 1))]
    assert all(kind is kinds[0] for kind in kinds)


@pytest.mark.parametrize(
    ("make", "op"),
    [
        (lambda: nn.matmul(x, np.ones((6, 2), np.float32)), "nn.matmul: b"),
        (lambda: nn.dense(None, x), "nn.dense: x"),
        (lambda: nn.relu([1.0]), "relu: x"),
        (lambda: nn.softmax("x"), "softmax"),
        (lambda: nn.conv2d(image, np.ones((4, 8, 3, 3), np.float32)), "nn.conv"),
        (lambda: nn.max_pool(None, 2), "nn.max_pool"),
    ],
)
def test_what_is_no_node(make, op):
    with pytest.raises(lw.TypeInferenceError, match=rf"^{op}: expected a node, found a \w+: use lw.var for inputs"):
        make()
