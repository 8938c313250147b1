"""Arrays of callers as numpy arrays without copying, and where their memory is."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.errors import RuntimeArgumentError

Array: TypeAlias = npt.NDArray[Any]

_DLPACK_CPU = 1


class SupportsDLPack(Protocol):
    """An array of any library that exports its memory by DLPack."""

    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


def as_array(value: object, where: str) -> Array:
    """A plain numpy array of the same memory: a view of a subclass, or what DLPack exports from the CPU.

    ``where`` names the argument in the ``RuntimeArgumentError`` that anything else raises.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise RuntimeArgumentError(f"{where} is a masked array, whose mask would be ignored; pass array.filled(…)")
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    kind = type(value).__name__
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        raise RuntimeArgumentError(
            f"{where} should be a numpy array, or an array that supports DLPack, found {kind}; "
            "numpy.asarray makes an array of a number or a list"
        )
    device = value.__dlpack_device__()[0]
    if int(device) != _DLPACK_CPU:
        raise RuntimeArgumentError(
            f"{where} is a {kind} on DLPack device {int(device)}, which is not the CPU; copy it there"
        )
    try:
        return _from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise RuntimeArgumentError(f"{where} is a {kind} that DLPack cannot export to numpy: {error}") from error


def array_text(array: Array) -> str:
    """An array by its dtype and shape: ``float32[3, 4]``."""
    return f"{array.dtype}{list(array.shape)}"


def misaligned(array: Array) -> str:
    """What is said of an array whose elements do not lie at multiples of their size, as a slice of bytes viewed as
    floats may: ``numpy.ascontiguousarray`` would hand it back as it is."""
    return f"misaligned: its address, {address_of(array):#x}, is no multiple of {array.dtype.alignment} bytes"


def _from_dlpack(value: Any) -> Array:
    try:
        return np.from_dlpack(value, copy=False)  # outputs are written in place: a copy would lose them
    except TypeError:
        return np.from_dlpack(value)  # an exporter from before DLPack 1.0 knows no such request, and never copies


def _documented_address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _struct_address(array: Array) -> int:
    """The field ``data``, the first of numpy's public C struct of an array: six times as fast as asking for it."""
    return _Address.from_address(id(array) + _HEADER).value


_Address = ctypes.c_size_t
_HEADER = object.__basicsize__


def _struct_is_as_documented() -> bool:
    samples: tuple[Array, ...] = (np.zeros(3), np.zeros((2, 5), np.int8)[1:, 2:])
    return all(
        int.from_bytes(ctypes.string_at(id(a) + _HEADER, 8), "little") == _documented_address(a) for a in samples
    )


address_of = _struct_address if np.little_endian and _struct_is_as_documented() else _documented_address
"""The address of an array's first element."""


def addresses_of(arrays: Iterable[Array]) -> list[int]:
    """The address of each: what runs at each call of an engine, hence without a function call for each array."""
    if address_of is _struct_address:
        read = _Address.from_address
        return [read(id(array) + _HEADER).value for array in arrays]
    return [_documented_address(array) for array in arrays]
