"""Tensors one after the other: how many there are, and how their pieces of a row are written."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ops import nn


@pytest.mark.parametrize(
    ("count", "width", "implementation"),
    [
        (2, 1, "columns"),
        (40, 1, "columns"),
        (9, 7, "columns"),
        (3, 8, "columns"),
        (20, 100, "columns"),
        (4, 100, "generic"),
        (3, 11, "columns"),
        (12, 131, "generic"),
        (400, 2, "generic"),
    ],
)
def test_short_or_many_pieces_are_written_one_by_one(count, width, implementation):
    """By vectors that belong to one piece, or by elements. Also many of them, which choices nested in each other would
    be too deep for."""
    n = te.var("n")
    params = [lw.var(f"x{k}", (n, width)) for k in range(count)]
    library = lw.compile(lw.Function(params, nn.concatenate(params, 1)))
    (choice,) = (choice for function in library.functions for choice in function.choices)
    assert choice.implementation == f"concatenate.{implementation}"
    x = np.random.default_rng(0).random((5, count * width), np.float32)
    parts = [np.ascontiguousarray(part) for part in np.split(x, count, axis=1)]
    np.testing.assert_array_equal(lw.Engine(library)(parts)[0], x)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "float16"])
@pytest.mark.parametrize(
    "widths", [(12, 4, 20), (5, 30, 10, 15), (3, 1, 2), (1, 2, 3, 5, 8, 13, 21, 34, 55), (9, 31, 2)]
)
def test_pieces_of_several_widths(widths, dtype):
    n = te.var("n")
    params = [lw.var(f"x{k}", (n, 2, width), dtype) for k, width in enumerate(widths)]
    library = lw.compile(lw.Function(params, nn.concatenate(params, 2)))
    parts = [np.random.default_rng(k).integers(-99, 99, (5, 2, width)).astype(dtype) for k, width in enumerate(widths)]
    np.testing.assert_array_equal(lw.Engine(library)(parts)[0], np.concatenate(parts, 2))
