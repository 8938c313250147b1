"""Arrays of callers as numpy arrays without copying."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.addresses import address_of
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
