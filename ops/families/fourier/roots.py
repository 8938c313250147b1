"""Roots of unity, by which the terms of Fourier transforms are multiplied."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

QUARTERS = np.array([1, 1j, -1, -1j])


def roots_of_unity(numbers: npt.NDArray[np.int64], length: int, inverse: bool) -> npt.NDArray[np.complex128]:
    """exp(-2πi · number / length) for integers of any shape, or their conjugates for the inverse transform.

    The angle is that to the nearest quarter of a turn. So those of whole quarters are exact: what cancels out in a
    transform, as the imaginary part for the highest frequency of real numbers, is 0.
    """
    quarter, rest = np.divmod(4 * (numbers % length) + length // 2, length)
    angles = (math.pi / 2) * (rest - length // 2) / length
    roots: npt.NDArray[np.complex128] = (np.cos(angles) + 1j * np.sin(angles)) * QUARTERS[quarter % 4]
    return roots if inverse else roots.conj()
