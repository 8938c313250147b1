"""``nn.dft``: the discrete Fourier transform along an axis, of any length; made of other operators.

Lengths whose prime factors are small are ``nn.fft``. Others are products by a matrix where they are short, else a
convolution by a chirp, which is made of transforms of a longer smooth length (Bluestein, "A Linear Filtering Approach
to the Computation of the Discrete Fourier Transform", 1970).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from ....base.dtype import FLOAT32
from ....base.errors import TypeInferenceError
from ....graph.node import Constant, Node, tensor_of
from ....ir.constants import const_int
from ...definition.arguments import axis_of, flag, integer
from ..binary import multiply
from ..cast import cast
from ..gather import take
from ..matmul.matmul import matmul
from ..pad import pad
from ..reshape import expand_dims, reshape, squeeze
from ..slicing import strided_slice
from ..transpose import transpose
from .complex_product import complex_multiply
from .fft import fft
from .plan import cost_of, radices_of
from .roots import roots_of_unity

LONGEST_PRODUCT = 64
"""Rows of at most so many numbers are multiplied by a matrix, which takes less time than a chirp."""


def dft(x: Node, length: int | None = None, axis: int = -2, inverse: bool = False, onesided: bool = False) -> Node:
    """The discrete Fourier transform of ``x`` along ``axis``. The last axis of x has the components: 1 of reals, 2 of
    complex numbers, as pairs; that of the result has 2.

    The axis is cut, or filled up with zeros, to ``length`` elements, by default as many as there are. ``onesided``
    keeps the first ``length // 2 + 1`` results. The inverse is divided by the length; if it is onesided, x has these
    results of reals, and gives the reals, in one component; its default length is even.

    Raises ``TypeInferenceError`` where x is not of floats, or the axis's extent is not known.
    """
    kind = tensor_of(x)
    if not kind.dtype.is_float or kind.dtype.bits < 16:
        raise TypeInferenceError(f"dft: x must be of a float type of 16 bits or more, found {kind.dtype}")
    if kind.ndim < 2 or const_int(kind.shape[-1]) not in (1, 2):
        raise TypeInferenceError(f"dft: the last axis of x must have 1 or 2 components, found {kind}")
    along, inverse, onesided = axis_of("dft", x, axis), flag(inverse, "inverse"), flag(onesided, "onesided")
    if along == kind.ndim - 1:
        raise TypeInferenceError(f"dft: axis {axis} of {kind} has the components, and cannot be transformed")
    if kind.dtype.bits == 16:
        return cast(dft(cast(x, FLOAT32), length, axis, inverse, onesided), kind.dtype)
    extent = const_int(kind.shape[along])
    if extent is None:
        raise TypeInferenceError(f"dft: the extent {kind.shape[along]} of axis {along} must be known")
    is_spectrum = inverse and onesided
    count = integer(length, "length") if length is not None else 2 * (extent - 1) if is_spectrum else extent
    if count < 1:
        raise TypeInferenceError(f"dft: the length must be 1 or more, found {count}")
    order = [a for a in range(kind.ndim) if a != along]
    order.insert(kind.ndim - 2, along)
    back = [order.index(a) for a in range(kind.ndim)]
    moved = x if back == order == sorted(order) else transpose(x, order)
    made = _of_rows(moved, count, inverse, onesided)
    return made if back == sorted(back) else transpose(made, back)


def _of_rows(x: Node, length: int, inverse: bool, onesided: bool) -> Node:
    """``dft`` along the last axis but one."""
    if inverse and onesided:
        return _reals(_fitted(x, length // 2 + 1), length)
    return _transformed(_fitted(x, length), length // 2 + 1 if onesided else length, inverse)


def _fitted(x: Node, extent: int) -> Node:
    """The rows cut, or filled up with zeros, to an extent."""
    kind = tensor_of(x)
    found, before = const_int(kind.shape[-2]) or 0, [0] * kind.ndim
    if found > extent:
        return strided_slice(x, [0], [extent], axes=[kind.ndim - 2])
    return x if found == extent else pad(x, before, [*before[:-2], extent - found, 0])


def _reals(x: Node, length: int) -> Node:
    """The reals whose spectrum begins with x: the rest of it is x's conjugates from the end."""
    kind = tensor_of(x)
    if const_int(kind.shape[-1]) == 1:
        x = pad(x, [0] * kind.ndim, [0] * (kind.ndim - 1) + [1])
    positions = np.arange(length)
    mirrored = positions > length // 2
    signs = np.stack([np.ones(length), np.where(mirrored, -1.0, 1.0)], axis=1)
    half = take(x, Constant(np.where(mirrored, length - positions, positions)), kind.ndim - 2)
    whole = multiply(half, _constant(signs, x))
    return strided_slice(_transformed(whole, length, True), [0], [1], axes=[kind.ndim - 1])


def _transformed(x: Node, bins: int, inverse: bool) -> Node:
    """The first results of the transform of each row, of its own length."""
    length, components = (const_int(extent) or 1 for extent in tensor_of(x).shape[-2:])
    if tensor_of(x).ndim == 2:
        return squeeze(_transformed(expand_dims(x, 0), bins, inverse), [0])
    if radices_of(length) is not None:
        return fft(x, bins, inverse)
    if length * components <= LONGEST_PRODUCT:
        return _product(x, length, components, bins, inverse)
    return _chirped(x, length, bins, inverse)


def _constant(values: npt.NDArray[np.float64], like: Node) -> Constant:
    return Constant(values.astype(tensor_of(like).dtype.to_numpy()))


def _pairs(values: npt.NDArray[np.complex128], like: Node) -> Constant:
    return _constant(np.stack([values.real, values.imag], axis=-1), like)


def _product(x: Node, length: int, components: int, bins: int, inverse: bool) -> Node:
    """Rows [length · components] times a matrix [length · components, bins · 2]."""
    roots = roots_of_unity(np.outer(np.arange(length), np.arange(bins)), length, inverse) / (length if inverse else 1)
    of_real = np.stack([roots.real, roots.imag], axis=-1)
    of_imaginary = np.stack([-roots.imag, roots.real], axis=-1)
    matrix = np.stack([of_real, of_imaginary][:components], axis=1).reshape(length * components, bins * 2)
    lead = [0] * (tensor_of(x).ndim - 2)
    return reshape(matmul(reshape(x, [*lead, length * components]), _constant(matrix, x)), [*lead, bins, 2])


def _chirped(x: Node, length: int, bins: int, inverse: bool) -> Node:
    """jk = (j² + k² - (k - j)²) / 2, so that results are a convolution by exp(πi (k - j)² / length)."""
    longer = _smooth_length(length + bins - 1)
    half_turns = partial(roots_of_unity, length=2 * length, inverse=inverse)
    chirp = half_turns(np.arange(max(length, bins), dtype=np.int64) ** 2)
    kernel = np.zeros(longer, np.complex128)
    kernel[:bins] = chirp[:bins].conj()
    kernel[longer - length + 1 :] = chirp[1:length][::-1].conj()
    spectrum = fft(_fitted(complex_multiply(x, _pairs(chirp[:length], x)), longer))
    convolved = fft(complex_multiply(spectrum, _pairs(np.fft.fft(kernel), x)), bins, inverse=True)
    return complex_multiply(convolved, _pairs(chirp[:bins] / (length if inverse else 1), x))


def _smooth_length(least: int) -> int:
    """The length of at least so many elements whose transform costs the least."""
    lengths = range(least, 2 * least)
    return min((n for n in lengths if radices_of(n) is not None), key=cost_of)
