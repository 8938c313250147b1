"""Tensors one after the other: how many there are, and how their pieces of a row are written."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ops import nn


@pytest.mark.parametrize(
    ("count", "width", "implementation"),
    [(2, 1, "columns"), (40, 1, "columns"), (9, 7, "columns"), (3, 8, "generic"), (400, 2, "generic")],
)
def test_short_pieces_are_written_element_by_element(count, width, implementation):
    """Also many of them, which choices nested in each other would be too deep for."""
    n = te.var("n")
    params = [lw.var(f"x{k}", (n, width)) for k in range(count)]
    library = lw.compile(lw.Function(params, nn.concatenate(params, 1)))
    (choice,) = (choice for function in library.functions for choice in function.choices)
    assert choice.implementation == f"concatenate.{implementation}"
    x = np.random.default_rng(0).random((5, count * width), np.float32)
    parts = [np.ascontiguousarray(part) for part in np.split(x, count, axis=1)]
    np.testing.assert_array_equal(lw.Engine(library)(parts)[0], x)
