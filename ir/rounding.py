"""Rounding of exact values to the float dtypes: once, to nearest even.

numpy and ml_dtypes convert to bfloat16 and to the narrow types by way of float32, which rounds twice. Rounding to odd
on the way (Boldo and Melquiond, "When double rounding is odd", 2005) makes the second rounding see whether the first
was exact.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.dtype import FLOAT64, DType

_FORMAT = {16: "<e", 32: "<f", 64: "<d"}
_EXACT_INTEGERS = 1 << 53
_STICKY = 0xFFF  # the low bits of a 64-bit integer that no narrow float can see, but for whether they are all zero


def round_to_float(kind: DType) -> Callable[[Any], npt.NDArray[Any]]:
    """A function that converts a number, or an array of numbers or Python ints, to an array of float dtype ``kind``.
    What is beyond the largest number of a narrow type becomes what ml_dtypes makes it: infinity or NaN, where it has
    one."""
    numpy_type = kind.to_numpy()
    if kind.kind == "bfloat" or kind.is_narrow:
        return lambda values: _odd_float32(_numbers(values)).astype(numpy_type)
    return lambda values: _numbers(values).astype(numpy_type)


def round_number(kind: DType, value: bool | int | float) -> float:
    """A Python number rounded to float dtype ``kind``."""
    if isinstance(value, float) and kind.kind == "float":
        try:
            return float(struct.unpack(_FORMAT[kind.bits], struct.pack(_FORMAT[kind.bits], value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    if isinstance(value, int) and abs(value) >= 1 << 63:  # beyond what numpy holds
        return float(round_fraction(kind, Fraction(value)))
    with np.errstate(all="ignore"):
        return float(round_to_float(kind)(value))


def round_fraction(kind: DType, exact: Fraction) -> Any:
    """An exact rational as a numpy scalar of float dtype ``kind``, rounded once; beyond the largest, infinite."""
    try:
        near = float(exact)
    except OverflowError:
        near = math.inf if exact > 0 else -math.inf
    if kind is not FLOAT64 and math.isfinite(near) and Fraction(near) != exact and _is_even(np.float64(near)):
        near = math.nextafter(near, math.inf if exact > near else -math.inf)
    return round_to_float(kind)(near)[()]


def _numbers(values: Any) -> npt.NDArray[Any]:
    array = np.asarray(values)
    return array.astype(np.int64) if array.dtype == object else array


def _is_even(value: np.float64) -> bool:
    return int(value.view(np.uint64)) % 2 == 0


def _odd_float32(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values as float32, rounded to odd: where that is inexact, to the neighbour whose last bit is 1."""
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        values = _sticky(values)
    exact = values.astype(np.float64)
    near = exact.astype(np.float32)
    back = near.astype(np.float64)
    moves = np.isfinite(near) & (back != exact) & (near.view(np.uint32) % 2 == 0)
    beyond = np.where(exact > back, np.inf, -np.inf).astype(np.float32)
    return np.where(moves, np.nextafter(near, beyond), near)


def _sticky(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Large integers, with the bits that float64 would lose replaced by one that says whether any was set."""
    kind = values.dtype.type
    low = values & kind(_STICKY)
    short = (values - low) + np.where(low != 0, kind((_STICKY + 1) // 2), kind(0))
    large = (values > kind(_EXACT_INTEGERS)) | ((values < 0) & (values < -_EXACT_INTEGERS))
    return np.where(large, short, values)
