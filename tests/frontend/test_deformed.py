"""AffineGrid, DeformConv, MaxUnpool and Det, in each version, against the reference."""

import numpy as np
import pytest
from onnx import helper
from onnx_cases import case, check, each_version, floats, integers, ints, make_model

import loopwright as lw

THETA2, THETA3 = floats(2, 2, 3), floats(3, 3, 4)
SIZE2, SIZE3 = ints(2, 3, 5, 4), ints(3, 1, 4, 3, 5)


def deform_case(versions, x, weight, shape, groups=1, offset_group=1, **more):
    """A convolution with so many rows and columns of results, and offsets that lead beyond the picture."""
    taps = weight[2] * weight[3]
    has = {"mask": more.pop("mask", False), "bias": more.pop("bias", False)}
    rest = (
        floats(weight[0]) if has["bias"] else None,
        floats(x[0], offset_group * taps, *shape, low=0, high=1) if has["mask"] else None,
    )
    offsets = floats(x[0], offset_group * taps * 2, *shape)
    return case("DeformConv", versions, floats(*x), floats(*weight), offsets, *rest, tolerance=1e-4,
                group=groups, offset_group=offset_group, **more)  # fmt: skip


def indices(*shape, among):
    """Places that are all different."""
    return np.random.default_rng(0).permutation(among)[: np.prod(shape)].reshape(shape).astype(np.int64)


CASES = [
    *(
        case("AffineGrid", (20,), theta, size, const=const, align_corners=corners, label=f"{len(size)}{corners}{const}")
        for theta, size in ((THETA2, SIZE2), (THETA3, SIZE3))
        for corners in (0, 1)
        for const in ((), (1,))
    ),
    case("Det", (11, 22), floats(4, 4)),
    case("Det", (22,), floats(2, 3, 5, 5), label="many"),
    case("Det", (22,), np.array([[[0, 1], [1, 0]], [[1, 2], [2, 4]]], np.float64), label="pivots"),
    deform_case((19, 22), (2, 3, 6, 5), (4, 3, 3, 2), (4, 4)),
    deform_case((22,), (1, 4, 7, 6), (6, 2, 3, 3), (4, 3), groups=2, offset_group=2, pads=[1, 1, 1, 1],
                strides=[2, 2], mask=True, bias=True, label="groups"),
    deform_case((19,), (1, 4, 8, 7), (2, 4, 3, 2), (4, 5), offset_group=4, dilations=[2, 2], bias=True, label="apart"),
    case("MaxUnpool", (9, 11, 22), floats(1, 2, 3, 4), indices(1, 2, 3, 4, among=2 * 6 * 8), kernel_shape=[2, 2],
         strides=[2, 2]),
    case("MaxUnpool", (11,), floats(2, 1, 4), indices(2, 1, 4, among=12), kernel_shape=[3], pads=[0, 0], label="1d"),
    case("MaxUnpool", (11,), floats(1, 2, 3, 3), indices(1, 2, 3, 3, among=50), ints(1, 2, 7, 6), kernel_shape=[3, 3],
         strides=[2, 2], pads=[1, 1, 1, 1], label="larger"),
    case("MaxUnpool", (22,), floats(1, 2, 3, 3), indices(1, 2, 3, 3, among=50), ints(1, 2, 7, 6), kernel_shape=[3, 3],
         strides=[2, 2], pads=[1, 1, 1, 1], const=(2,), label="known"),
]  # fmt: skip


@each_version(CASES)
def test_agrees_with_the_reference(case, version):
    check(case, version)


def test_determinants_of_open_shapes():
    model = make_model([helper.make_node("Det", ["x"], ["y"])], {"x": (np.float64, ("b", "n", "n"))}, ["y"], 22)
    engine = lw.Engine(lw.compile(lw.from_onnx(model), jobs=1))
    for batch, n in ((3, 2), (1, 40), (0, 3), (2, 0), (2, 1)):
        x = floats(batch, n, n, kind=np.float64)
        np.testing.assert_allclose(engine([x])[0], np.linalg.det(x), rtol=1e-10)


def test_what_is_not_finite_spoils_only_its_own_determinant():
    x = floats(3, 3, 3)
    x[1, 2, 2] = np.nan
    model = make_model([helper.make_node("Det", ["x"], ["y"])], {"x": x}, ["y"], 22)
    (y,) = lw.Engine(lw.compile(lw.from_onnx(model), jobs=1))([x])
    np.testing.assert_array_equal(np.isnan(y), [False, True, False])


def refused(op, inputs, message, version=22, **attrs):
    given = {f"x{k}": x for k, x in enumerate(inputs)}
    with pytest.raises(lw.LoopwrightError, match=message):
        lw.from_onnx(make_model([helper.make_node(op, [*given], ["y"], **attrs)], given, ["y"], version))


def test_misuse_is_told():
    refused("Det", [floats(2, 3)], "must be one or several square matrices")
    refused("Det", [integers(2, 2)], "x must be of float")
    refused("AffineGrid", [THETA2, SIZE3], r"theta must be \[N, 2, 3\]", version=20)
    weight = floats(2, 3, 2, 2)
    refused("DeformConv", [floats(1, 3, 4, 4), weight, floats(1, 7, 3, 3)], "axis 1 of the offsets must be 8")
    refused("DeformConv", [floats(1, 4, 4, 4), weight, floats(1, 8, 3, 3)], "4 channels do not fit 1 groups")
    refused("DeformConv", [floats(1, 3, 4), floats(2, 3, 2), floats(1, 4, 3)], "no batch of pictures")
    unpooled = [floats(1, 1, 2), integers(1, 1, 2)]
    refused("MaxUnpool", unpooled, "do not fit", kernel_shape=[2, 2])
    refused("MaxUnpool", [*unpooled, ints(1, 4)], "must have 3 numbers, found 2", kernel_shape=[2])
