"""The published pipelines in tensor expressions compute what numpy makes of their definitions."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from published.computes import COMPUTES, GAUSSIAN, GRAY
from published.shapes import INPUTS, MARGIN, arrays_of

import loopwright as lw
from loopwright import te


def result_of(name):
    placeholders = [te.placeholder(shape, dtype, name=f"x{k}") for k, (dtype, shape) in enumerate(INPUTS[name])]
    output = COMPUTES[name](*placeholders)
    arrays, result = arrays_of(name)
    lw.build(lw.default_schedule(output), [*placeholders, output])(*arrays, result)
    return arrays, result


def blur(image):
    across = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) // 3
    return (across[:-2] + across[1:-1] + across[2:]) // 3


def gray_of(image):
    return np.tensordot(np.array(GRAY), image.astype(float), 1)


def harris(image):
    gray = gray_of(image)[:, MARGIN - 2 : 2 - MARGIN][MARGIN - 2 : 2 - MARGIN]
    windows = np.lib.stride_tricks.sliding_window_view
    smooth, slope = np.array([1, 2, 1]), np.array([-1, 0, 1]) / 12
    dx, dy = (np.einsum("yxab,a,b->yx", windows(gray, (3, 3)), *pair) for pair in ((smooth, slope), (slope, smooth)))
    xx, yy, xy = (windows(a * b, (3, 3)).sum(axis=(2, 3)) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
    return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2


def unsharp(image):
    gray = gray_of(image)
    weights = np.array([*GAUSSIAN[:0:-1], *GAUSSIAN])
    blurred = np.pad(gray, 3, mode="edge")
    for axis in (0, 1):
        blurred = np.lib.stride_tricks.sliding_window_view(blurred, 7, axis=axis) @ weights
    return (2 * gray - blurred) / gray * image


def conv_layer(image, weight, bias):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
    return np.maximum(np.tensordot(windows, weight, axes=((3, 4, 5), (0, 1, 2))) + bias, 0)


@pytest.mark.parametrize("reference", [blur, harris, unsharp, conv_layer, lambda a, b: a @ b])
def test_a_published_pipeline_is_what_numpy_computes(reference):
    name = reference.__name__ if reference.__name__ in COMPUTES else "matmul"
    arrays, result = result_of(name)
    expected = reference(*arrays)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
