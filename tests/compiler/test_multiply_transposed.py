"""Products by what is transposed for them alone read it as it lies; against numpy."""

import numpy as np
import pytest

import loopwright as lw

nn = lw.nn


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compiled(shapes, make, **options):
    args = [lw.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    return lw.compile(lw.Function(args, make(*args)), "x86-64-v3", jobs=1, **options)


def check(shapes, make, oracle, names, given=None, **options):
    library = compiled(shapes, make, **options)
    arrays = [floats(*shape, seed=k) for k, shape in enumerate(given or shapes)]
    found = lw.Engine(library)(arrays)
    wanted = oracle(*arrays)
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert all(any(name in function.name for function in library.functions) for name in names)
    assert "transpose" in names or not any("transpose" in function.name for function in library.functions)


@pytest.mark.parametrize("precision", ["standard", "strict"])
@pytest.mark.parametrize("rows", [1, 7, 33])
def test_matrices(rows, precision):
    for columns, terms in ((40, 64), (37, 70)):
        check(
            [(rows, terms), (columns, terms)],
            lambda x, w: nn.matmul(x, nn.transpose(w, (1, 0))),
            lambda x, w: x @ w.T,
            ["dense"],
            precision=precision,
        )
        check(
            [(rows, terms), (terms, columns)],
            lambda x, w: nn.dense(x, nn.transpose(w, (1, 0))),
            np.matmul,
            ["dense"],
            precision=precision,
        )


@pytest.mark.parametrize(
    ("rows", "columns", "turned"), [(16, None, True), (12, None, False), (16, 65, True), (17, 65, False)]
)
def test_few_rows_beside_many_are_what_is_copied(rows, columns, turned):
    """As the channels of an image that meet what all its pixels are to each other."""
    extents = (lw.te.var("n"),) * 2 if columns is None else (columns, 80)
    check(
        [(2, rows, extents[1]), (2, *extents)],
        lambda x, w: nn.matmul(x, nn.transpose(w, (0, 2, 1))),
        lambda x, w: x @ w.swapaxes(-1, -2),
        ["batch_matmul", *(["transpose"] if turned else [])],
        given=[(2, rows, 70), (2, 70, 70)] if columns is None else None,
    )


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("batch", [(3,), (2, 3), (2, 1, 3)])
def test_batches_of_matrices(batch, rows):
    order = (*range(len(batch)), len(batch) + 1, len(batch))
    check(
        [(*batch, rows, 24), (*batch, 37, 24)],
        lambda x, w: nn.multiply(nn.matmul(x, nn.transpose(w, order)), lw.const(np.float32(0.5))),
        lambda x, w: x @ w.swapaxes(-1, -2) / 2,
        ["batch_matmul"],
    )


def test_open_extents():
    batch, rows, columns = map(lw.te.var, ("batch", "rows", "columns"))
    shapes = [(batch, 2, rows, 32), (batch, 2, columns, 32)]
    for m, n in ((1, 1), (1, 50), (4, 33), (5, 16), (40, 70), (0, 3)):
        check(
            shapes,
            lambda x, w: nn.matmul(x, nn.transpose(w, (0, 1, 3, 2))),
            lambda x, w: x @ w.swapaxes(-1, -2),
            ["batch_matmul"],
            [(3, 2, m, 32), (3, 2, n, 32)],
        )


def test_what_others_read_stays_transposed():
    check(
        [(5, 24), (37, 24)],
        lambda x, w: lw.graph.Tuple((nn.matmul(x, turned := nn.transpose(w, (1, 0))), nn.exp(turned))),
        lambda x, w: (x @ w.T, np.exp(w.T)),
        ["transpose", "matmul"],
    )


def test_batches_that_are_stretched_stay_as_they_are():
    check(
        [(3, 5, 24), (1, 37, 24)],
        lambda x, w: nn.matmul(x, nn.transpose(w, (0, 2, 1))),
        lambda x, w: x @ w.swapaxes(-1, -2),
        ["transpose", "matmul"],
    )


def test_other_orders_of_axes_stay():
    check(
        [(3, 5, 24), (24, 3, 7)],
        lambda x, w: nn.matmul(x, nn.transpose(w, (1, 0, 2))),
        lambda x, w: x @ w.transpose(1, 0, 2),
        ["transpose", "matmul"],
    )
