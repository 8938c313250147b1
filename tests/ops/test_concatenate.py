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


@pytest.mark.parametrize("extents", [(7, 31), (2, 1200), (3, None)])
def test_functions_of_short_pieces_are_computed_in_vectors(extents):
    """Stacked scalars are copied to blocks of rows; the last block is not full."""
    shape = [te.var(f"n{k}") if extent is None else extent for k, extent in enumerate(extents)]
    params = [lw.var(f"x{k}", (*shape, 1)) for k in range(3)]
    y = lw.var("y", (*shape, 3))
    body = nn.sigmoid(nn.concatenate(params, 2)) * y
    library = lw.compile(lw.Function([*params, y], body), "x86-64-v3", jobs=1)
    (function,) = library.functions
    assert function.choices[0].implementation == "concatenate.columns"
    (text,) = lw.dump(lw.Function([*params, y], body), "loop", target="x86-64-v3")
    assert "sigmoid(concatenate[ramp(" in text.text
    known = [5 if extent is None else extent for extent in extents]
    parts = [np.random.default_rng(k).normal(size=(*known, 1)).astype(np.float32) for k in range(3)]
    factor = np.random.default_rng(3).normal(size=(*known, 3)).astype(np.float32)
    wanted = factor / (1 + np.exp(-np.concatenate(parts, 2).astype(np.float64)))
    np.testing.assert_allclose(lw.Engine(library)([*parts, factor])[0], wanted, rtol=1e-5, atol=1e-6)
