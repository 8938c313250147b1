"""Discrete Fourier transforms against numpy's in float64: lengths of all kinds, types, forms, misuse."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ops import nn
from loopwright.ops.families.fourier.plan import radices_of
from loopwright.ops.families.fourier.roots import roots_of_unity

TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 2e-15}


def numbers(shape, kind="float32"):
    return np.random.default_rng([0, *shape]).standard_normal(shape).astype(kind)


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def complex_of(x):
    """In float64, so that what numpy gives is exact beside what is compared with it."""
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def transformed(x, length=None, axis=-2, inverse=False, onesided=False):
    along = axis if axis >= 0 else axis + 1
    if inverse and onesided:
        return np.fft.irfft(complex_of(x), length, along)[..., None]
    full = (np.fft.ifft if inverse else np.fft.fft)(complex_of(x), length, along)
    return pairs(np.take(full, range(full.shape[along] // 2 + 1), along) if onesided else full)


def check(x, **how):
    parameter = lw.var("x", x.shape, x.dtype.name)
    (found,) = lw.Engine(lw.compile(lw.Function([parameter], nn.dft(parameter, **how)), jobs=1))([x])
    wanted = transformed(x, **how)
    assert found.dtype == x.dtype
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE[x.dtype.name] * abs(wanted).max(initial=1))


@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("length", [1, 2, 17, 33, 97, 100, 143, 169, 202, 1024])
def test_rows_of_any_length(length, components):
    """Products by a matrix, stages of each radix, and chirps for lengths with a large prime factor."""
    check(numbers((3, length, components)))


@pytest.mark.parametrize("how", [{"inverse": True}, {"onesided": True}, {"inverse": True, "onesided": True}])
@pytest.mark.parametrize("shape", [(2, 7, 2), (2, 65, 2), (3, 104, 2), (1, 101, 2), (2, 96, 1)])
def test_inverse_and_one_side(shape, how):
    check(numbers(shape), **how)


@pytest.mark.parametrize("kind", ["float16", "float64"])
@pytest.mark.parametrize("length", [9, 134])
def test_other_floats(kind, length):
    check(numbers((2, length, 2), kind))
    check(numbers((2, length, 1), kind), onesided=True)


@pytest.mark.parametrize("length", [5, 67])
@pytest.mark.parametrize("how", [{}, {"inverse": True, "onesided": True}])
def test_rows_are_cut_or_filled_up(length, how):
    check(numbers((2, 60, 2)), length=length, **how)


@pytest.mark.parametrize("axis", [0, 1, 2, -3])
def test_any_axis_but_the_last(axis):
    check(numbers((6, 80, 5, 2)), axis=axis)


@pytest.mark.parametrize("shape", [(0, 100, 2), (100, 2), (2, 0, 100, 1)])
def test_no_rows_and_a_single_one(shape):
    check(numbers(shape))


def test_an_open_number_of_rows_is_compiled_once():
    x = lw.var("x", (te.var("n"), 400, 1))
    engine = lw.Engine(lw.compile(lw.Function([x], nn.dft(x, onesided=True))))
    for rows in (1, 0, 5):
        given = numbers((rows, 400, 1))
        np.testing.assert_allclose(engine([given])[0], transformed(given, onesided=True), rtol=0, atol=3e-5)


@pytest.mark.parametrize("onesided", [False, True])
@pytest.mark.parametrize("length", [4, 12, 22, 100, 512])
def test_real_numbers_have_real_results_at_either_end(length, onesided):
    """Else the phase of a negative one would be π or -π by chance."""
    parameter = lw.var("x", (64, length, 1))
    function = lw.Function([parameter], nn.dft(parameter, onesided=onesided))
    (found,) = lw.Engine(lw.compile(function, jobs=1))([numbers((64, length, 1))])
    ends = found[:, [0, length // 2], 1]
    np.testing.assert_array_equal(ends, 0)
    assert not np.signbit(ends).any()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 30, 1001])
@pytest.mark.parametrize("inverse", [False, True])
def test_roots_of_unity(length, inverse):
    numbers = np.arange(-2 * length, 2 * length)
    roots = roots_of_unity(numbers, length, inverse)
    np.testing.assert_allclose(
        roots, np.exp((2j if inverse else -2j) * np.pi * (numbers % length) / length), atol=2e-15
    )
    quarters = 4 * numbers % length == 0
    np.testing.assert_array_equal(roots[quarters], np.round(roots[quarters]))


def test_what_is_not_finite_stays_in_its_row():
    x = numbers((3, 128, 1))
    x[1, 5] = np.nan
    parameter = lw.var("x", x.shape)
    (found,) = lw.Engine(lw.compile(lw.Function([parameter], nn.dft(parameter))))([x])
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize("length", [1, 2, 60, 77, 1000, 4096])
def test_radices_multiply_to_the_length(length):
    assert np.prod(radices_of(length), dtype=int) == length
    assert radices_of(17 * length) is None


def test_frames_of_an_open_signal():
    x = lw.var("x", (2, te.var("n"), 1))
    engine = lw.Engine(lw.compile(lw.Function([x], nn.frames(x, 4, 3))))
    for extent in (4, 6, 7, 20):
        given = numbers((2, extent, 1))
        wanted = np.lib.stride_tricks.sliding_window_view(given, 4, 1)[:, ::3].swapaxes(2, 3)
        np.testing.assert_array_equal(engine([given])[0], wanted)
    with pytest.raises(lw.LoopwrightError):
        engine([numbers((2, 3, 1))])


@pytest.mark.parametrize(
    ("shape", "kind", "how", "message"),
    [
        ((3, 4, 2), "int32", {}, "x must be of a float type of 16 bits or more, found int32"),
        ((3, 4, 3), "float32", {}, "the last axis of x must have 1 or 2 components"),
        ((3, 4, 2), "float32", {"axis": 2}, "axis 2 of .* has the components"),
        ((3, 4, 2), "float32", {"axis": 3}, "axis 3"),
        ((3, 4, 2), "float32", {"length": 0}, "the length must be 1 or more, found 0"),
        ((3, te.var("n"), 2), "float32", {}, "the extent n of axis 1 must be known"),
    ],
)
def test_misuse_of_transforms_is_told(ops, shape, kind, how, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        nn.dft(ops.var(shape, kind), **how)


def test_misuse_of_parts_is_told(ops):
    with pytest.raises(lw.TypeInferenceError, match="prime factors up to 13, found 34"):
        nn.fft(ops.var((2, 34, 2)))
    with pytest.raises(lw.TypeInferenceError, match="have no 9 results"):
        nn.fft(ops.var((2, 8, 2)), 9)
    with pytest.raises(lw.TypeInferenceError, match="no frame of 5"):
        nn.frames(ops.var((2, 4, 1)), 5, 1)
    with pytest.raises(lw.TypeInferenceError, match=r"factors must be \[4, 2\]"):
        nn.complex_multiply(ops.var((2, 4, 1)), ops.var((3, 2)))
