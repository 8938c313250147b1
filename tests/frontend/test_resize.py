"""Resize, Upsample and GridSample of ONNX, in each version, against the reference."""

import numpy as np
import sampling
from onnx_cases import case, check, each_version, floats, ints

X = floats(1, 2, 4, 6)
RESIZE = (11, 13, 18, 19)
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def scales(*values):
    return np.array([1, 1, *values], np.float32)


def nothing():
    return np.zeros(0, np.float32)


def bilinear(x, rows, columns):
    """Asymmetric linear interpolation, as before version 11."""
    for axis, scale in ((2, rows), (3, columns)):
        at = np.arange(int(x.shape[axis] * scale)) / scale
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        shape = [-1 if k == axis else 1 for k in range(4)]
        part = (at - low).reshape(shape)
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x.astype(np.float32)


def nearest(x, rows, columns):
    for axis, scale in ((2, rows), (3, columns)):
        at = np.arange(int(x.shape[axis] * scale)) / scale
        x = np.take(x, (np.ceil(at) if scale < 1 else np.floor(at)).astype(int), axis)
    return x


PLACES = floats(1, 3, 5, 2, seed=3, low=-1.4, high=1.4)
SAMPLES = [
    case(
        "GridSample",
        (16, 20, 22),
        floats(1, 2, 4, 6),
        PLACES,
        expected=lambda x, g: sampling.sampled(x.astype(float), g).astype(x.dtype),
    ),
    case(
        "GridSample",
        (16,),
        floats(1, 2, 4, 6),
        PLACES,
        mode="bicubic",
        padding_mode="border",
        label="bicubic",
        expected=lambda x, g: sampling.sampled(x.astype(float), g, "cubic", "border").astype(x.dtype),
    ),
    case(
        "GridSample",
        (20, 22),
        floats(1, 2, 4, 6),
        PLACES,
        mode="nearest",
        padding_mode="reflection",
        align_corners=1,
        label="nearest",
        expected=lambda x, g: sampling.sampled(x, g, "nearest", "reflection", align=True),
    ),
    case(
        "GridSample",
        (20, 22),
        floats(1, 2, 3, 4, 5),
        floats(1, 2, 2, 3, 3, seed=4),
        label="volume",
        expected=lambda x, g: sampling.sampled(x.astype(float), g).astype(x.dtype),
    ),
]
CASES = [
    *SAMPLES,
    case("Upsample", (1,), X, height_scale=2.0, width_scale=3.0, expected=lambda x: nearest(x, 2, 3)),
    case("Upsample", (1,), X, height_scale=2.0, width_scale=1.5, mode="bilinear", label="linear",
         expected=lambda x: bilinear(x, 2, 1.5)),
    case("Upsample", (7,), X, scales=[1.0, 1.0, 2.0, 3.0], expected=lambda x: nearest(x, 2, 3)),
    case("Upsample", (9,), X, scales(2, 3), const=(1,)),
    case("Upsample", (9,), X, scales(2, 1.5), const=(1,), mode="linear", label="linear",
         expected=lambda x, _: bilinear(x, 2, 1.5)),
    case("Resize", (10,), X, scales(2, 0.5), const=(1,), expected=lambda x, _: nearest(x, 2, 0.5)),
    case("Resize", (10,), X, scales(2, 1.5), const=(1,), mode="linear", label="linear",
         expected=lambda x, _: bilinear(x, 2, 1.5)),
    *(case("Resize", RESIZE, X, nothing(), scales(2, 0.65), const=(1, 2), nearest_mode=mode, label=mode)
      for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
    case("Resize", RESIZE, X, nothing(), scales(2, 3), const=(1, 2), coordinate_transformation_mode="asymmetric",
         nearest_mode="floor", label="repeat"),
    *(case("Resize", RESIZE, X, nothing(), scales(1.5, 0.8), const=(1, 2), mode=mode, label=f"{mode} {how}",
           coordinate_transformation_mode=how)
      for mode in ("linear", "cubic") for how in MODES),
    case("Resize", RESIZE, X, nothing(), scales(0.8, 2), const=(1, 2), mode="cubic", cubic_coeff_a=-0.5,
         exclude_outside=1, label="cubic exclude"),
    case("Resize", RESIZE[1:], X, None, None, ints(1, 2, 7, 3), const=(3,), mode="linear", label="sizes"),
    case("Resize", RESIZE, X, np.array([0, 0, 0.4, -0.2, 1, 1, 0.8, 1.1], np.float32), scales(2, 1), const=(1, 2),
         mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0, label="crop"),
    case("Resize", (19,), X, None, scales(0.7, 1.3), const=(2,), mode="linear", label="symmetric",
         coordinate_transformation_mode="half_pixel_symmetric"),
    *(case("Resize", (18, 19), X, None, scales(0.4, 0.6), const=(2,), mode=mode, antialias=1, label=f"{mode} antialias")
      for mode in ("linear", "cubic")),
    *(case("Resize", (18, 19), X, None, None, ints(7, 8), const=(3,), mode="linear", axes=[2, 3], label=policy,
           keep_aspect_ratio_policy=policy)
      for policy in ("stretch", "not_larger", "not_smaller")),
]  # fmt: skip


@each_version(CASES)
def test_an_operator_gives_what_the_reference_gives(case, version):
    check(case, version)
