"""ONNX tensors and types: TensorProto → numpy array, TypeProto → graph type.

Sizes are checked before memory is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, TensorShapeProto, TypeProto, helper, numpy_helper

from ..base.bounded_dimension import BoundedDimension
from ..base.dtype import INT64, DType, dtype
from ..base.errors import ExpressionError, ModelError
from ..base.memory import STEPS_VARIABLE, step_limit
from ..graph.types import GivenExtent, GivenShape, TensorType, tensor_type
from ..ir.build import index_var
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ir.extent_text import names_of_formula, parse_extent
from ..ir.makers import as_index
from .refusal_causes import UnknownValueError, UnsupportedTypeError

MAX_BYTES = 1 << 47
"""Size of the largest tensor: what an address space of 47 bits could hold."""

Symbols = dict[str, Expr]
"""The symbolic dimensions of a model by name."""


def element_type(code: int, where: str) -> DType:
    """The dtype of an ONNX element type. Raises ``ModelError`` for one that is not supported (strings, complex …)."""
    known = TensorProto.DataType.values()
    if code not in known or code == TensorProto.UNDEFINED:
        raise UnsupportedTypeError(f"{where} has element type {code}, which is none of ONNX's")
    try:
        return dtype(helper.tensor_dtype_to_np_dtype(code))
    except (ExpressionError, KeyError, TypeError):
        raise UnsupportedTypeError(
            f"{where} has element type {TensorProto.DataType.Name(code)}, which is not supported"
        ) from None


def check_size(shape: Sequence[int], kind: DType, where: str) -> int:
    """The number of elements of a tensor. Raises ``ModelError`` for a negative extent, and where there are
    too many bytes or elements."""
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where} has a negative extent: {list(shape)}")
    count = math.prod(shape)
    if count * kind.storage_bytes > MAX_BYTES or max(shape, default=0) > MAX_BYTES:
        raise ModelError(f"{where} is declared as {kind}{list(shape)}: that is too large, the limit is 2**47 bytes")
    if count > (most := step_limit()):
        raise ModelError(
            f"{where} is declared as {kind}{list(shape)}: that is too large, as it takes {count} steps of a loop, and "
            f"the limit is {most}; to raise it, set the environment variable {STEPS_VARIABLE}"
        )
    return count


def check_type_size(kind: TensorType, where: str) -> None:
    """``check_size`` of a tensor type, whose symbolic extents count as 1."""
    numbers = [number for extent in kind.shape if (number := const_int(extent)) is not None]
    check_size(numbers, kind.dtype, where)


def value_type(
    proto: TypeProto, where: str, symbols: Symbols, given: GivenShape | None = None, spans: bool = False
) -> TensorType:
    """The type of a declared value, with the extents ``given`` instead of the declared ones; None leaves those be.

    A named dimension is one symbol, or what ``bind_dimensions`` entered, everywhere in the model. With ``spans``
    strings have the type of their spans.
    """
    declared = _declared(proto, where)
    kind = INT64 if spans and holds_strings(proto) else element_type(declared.elem_type, where)
    if not declared.HasField("shape") and given is None:
        raise UnknownValueError(f"{where} is declared without a shape: give one by shapes=")
    dims = list(declared.shape.dim) if declared.HasField("shape") else [TensorShapeProto.Dimension()] * len(given or ())
    if given is not None and len(given) != len(dims):
        raise ModelError(f"{where} has {len(dims)} dimensions, but the shape given is {tuple(given)}")
    wanted = given if given is not None else [None] * len(dims)
    extents = [_given_extent(n, d, k, symbols) for k, (d, n) in enumerate(zip(dims, wanted, strict=True))]
    check_size([e for e in extents if isinstance(e, int)], kind, where)
    return tensor_type(extents, kind)


def holds_strings(proto: TypeProto) -> bool:
    """Whether a declared value is a tensor of strings."""
    return proto.HasField("tensor_type") and proto.tensor_type.elem_type == TensorProto.STRING


def bind_dimensions(proto: TypeProto, where: str, symbols: Symbols, given: GivenShape) -> None:
    """Enter the extents that are given of named dimensions in ``symbols``, which has those with bounds already."""
    for dim, wanted in zip(_declared(proto, where).shape.dim, given, strict=False):
        name = declared_extent(dim)
        if isinstance(name, str) and wanted is not None:
            extent = symbols[wanted.name] if isinstance(wanted, BoundedDimension) else as_index(wanted)
            if (bound := symbols.setdefault(name, extent)) is not extent:
                raise ModelError(f"{where}: the shapes given make dimension {name!r} both {bound} and {extent}")


def _declared(proto: TypeProto, where: str) -> Any:
    if proto.WhichOneof("value") != "tensor_type":
        raise UnsupportedTypeError(
            f"{where} is a {proto.WhichOneof('value') or 'value without type'}; tensors are supported, sequences of "
            "them, optionals of either, and maps to scalars as inputs"
        )
    return proto.tensor_type


def bind_formulas(inputs: Sequence[tuple[str, TypeProto]], symbols: Symbols) -> None:
    """Enter in ``symbols`` what dimensions are that are named by a formula over other dimensions, as ``past + 1``.
    ``inputs`` are what errors call them, and their types."""
    dims = [dim for where, proto in inputs for dim in _declared(proto, where).shape.dim]
    texts = dict.fromkeys(text for dim in dims if isinstance(text := declared_extent(dim), str))
    names = [text for text in texts if text.isidentifier()]

    def dimension(name: str) -> Expr:
        return symbols.setdefault(name, index_var(name))

    for text in texts:
        used = names_of_formula(text) if text not in names else None
        if used is not None and used <= set(names) and (formula := parse_extent(text, dimension)) is not None:
            symbols.setdefault(text, formula)


def declared_extent(dim: TensorShapeProto.Dimension) -> int | str | None:
    """An extent as declared: a number, the name of a dimension, or None. Exporters write a number below 0 or a question
    mark for any number."""
    if dim.WhichOneof("value") == "dim_value":
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param if dim.dim_param not in ("", "?") else None


def _given_extent(given: GivenExtent, dim: TensorShapeProto.Dimension, position: int, symbols: Symbols) -> Expr | int:
    """The extent that is given, else the declared one."""
    if given is None:
        return _extent(dim, position, symbols)
    if isinstance(declared := declared_extent(dim), int) and isinstance(given, BoundedDimension):
        raise ModelError(f"an extent that is declared as {declared} is given bounds, as {given}")
    return symbols[given.name] if isinstance(given, BoundedDimension) else given


def _extent(dim: TensorShapeProto.Dimension, position: int, symbols: Symbols) -> Expr | int:
    extent = declared_extent(dim)
    if isinstance(extent, int):
        return extent
    if extent is None:
        return index_var(f"dim{position}")
    found = symbols.setdefault(extent, index_var(extent))
    return number if (number := const_int(found)) is not None else found


def tensor_value(proto: TensorProto, where: str, folder: Path | None) -> npt.NDArray[Any]:
    """The array of a tensor. Raises ``ModelError`` where the data is missing, or not what the shape says."""
    kind = element_type(proto.data_type, where)
    shape = tuple(proto.dims)
    count = check_size(shape, kind, where)
    if proto.HasField("segment"):
        raise ModelError(f"{where} is stored in segments, which is not supported")
    if proto.data_location == TensorProto.EXTERNAL:
        return _external_value(proto, kind, shape, where, folder)
    _check_stored(proto, kind, count, where)
    try:
        return numpy_helper.to_array(proto)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{where} cannot be read: {error}") from None


_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def _stored_bytes(kind: DType, count: int) -> int:
    """The bytes of so many elements in a model: those of less than a byte are packed, the first in the lowest bits."""
    return -(-count * kind.bits // 8) if kind.is_narrow else count * kind.storage_bytes


def _check_stored(proto: TensorProto, kind: DType, count: int, where: str) -> None:
    if proto.HasField("raw_data"):
        stored, wanted = len(proto.raw_data), _stored_bytes(kind, count)
        if stored != wanted:
            raise ModelError(f"{where} should have {wanted} bytes for its shape {list(proto.dims)}, but has {stored}")
    else:
        stored = sum(len(getattr(proto, name)) for name in _FIELDS)
        wanted = _stored_bytes(kind, count) if kind.is_narrow else count
        if stored != wanted:
            raise ModelError(
                f"{where} should have {wanted} elements for its shape {list(proto.dims)}, but has {stored}"
            )


def _external_value(
    proto: TensorProto, kind: DType, shape: tuple[int, ...], where: str, folder: Path | None
) -> npt.NDArray[Any]:
    """Map the file, read-only: large weights are not copied."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    path = _external_path(entries.get("location", ""), where, folder)
    size = _stored_bytes(kind, math.prod(shape))
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise ModelError(f"{where}: offset and length of its external data are no numbers") from None
    if offset < 0 or length != size:
        raise ModelError(f"{where} should have {size} bytes of external data, but says {length}, from {offset} on")
    if offset + length > path.stat().st_size:
        raise ModelError(f"{where}: its external data file {path.name} is too short: it ends before {offset + length}")
    if size == 0:
        return np.empty(shape, kind.to_numpy())
    if kind.bits < 8 and kind.is_narrow:
        return _unpacked(np.memmap(path, np.uint8, "r", offset, size), kind, math.prod(shape)).reshape(shape)
    return np.asarray(np.memmap(path, dtype=kind.to_numpy(), mode="r", offset=offset, shape=shape))


def _unpacked(packed: npt.NDArray[np.uint8], kind: DType, count: int) -> npt.NDArray[Any]:
    """The first elements of a packed array, a byte each."""
    parts = [packed >> shift & ((1 << kind.bits) - 1) for shift in range(0, 8, kind.bits)]
    return np.stack(parts, axis=-1).reshape(-1)[:count].view(kind.to_numpy())


def _external_path(location: str, where: str, folder: Path | None) -> Path:
    if folder is None:
        raise ModelError(
            f"{where} is stored in another file, {location!r}: give the path of the model, not its contents"
        )
    if not location or "\0" in location:
        raise ModelError(f"{where} is stored in another file, but does not say in which")
    root = folder.resolve()
    path = (root / location).resolve()  # follows links: what counts is where the data lies
    if not path.is_relative_to(root):
        raise ModelError(f"{where} is stored in {location!r}, which is outside the folder of the model")
    if not path.is_file():
        raise ModelError(f"{where} is stored in {location!r}, but there is no such file beside the model")
    return path


def type_proto(kind: TensorType) -> bytes:
    """A graph type as a serialised TypeProto; symbolic extents are left open."""
    shape = [const_int(extent) for extent in kind.shape]
    proto = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(kind.dtype.to_numpy()), shape)
    return bytes(proto.SerializeToString())
