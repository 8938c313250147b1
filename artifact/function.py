"""A fused function as plain data: its arguments, its code, and what it was compiled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.dtype import DType
from .choice import Choice
from .dimension_bounds import DimensionBounds
from .extents import Extent, extent_json
from .nest_source import NestSource, kept_source
from .plain_data import from_plain


@dataclass(frozen=True, slots=True, repr=False)
class TensorSpec(BriefRepr):
    """Name, shape and dtype of an input or output. A dimension that each run may choose is its name, ``"N"``; of an
    output also a formula over names."""

    name: str
    shape: tuple[Extent, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}{self.bounds_text}"

    @property
    def bounds_text(self) -> str:
        """The bounds of its dimensions, where callers are shown any, as in `` (n: 1 to 32)``."""
        return ""

    @property
    def type_text(self) -> str:
        """Dtype and shape, as in ``float32[N, 3]``."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {"name": self.name, "shape": [extent_json(e) for e in self.shape], "dtype": str(self.dtype)}


@dataclass(frozen=True, slots=True, repr=False)
class BoundedSpec(TensorSpec):
    """An input as callers are shown it whose dimensions have bounds."""

    bounds: tuple[DimensionBounds, ...]

    @property
    def bounds_text(self) -> str:
        """The bounds of its dimensions."""
        return f" ({'; '.join(map(str, self.bounds))})"


EXTERN = "extern"
"""The operator that calls packed functions."""


@dataclass(frozen=True, slots=True)
class OpCall:
    """A call of an operator: its attributes as canonical JSON text, and its tensors in order, those of tuples taken
    apart. Symbolic extents are those of the function that computes it; ``operands`` are the positions of the inputs,
    then of the outputs, among the arguments of that, None for what the function itself computes or holds."""

    op: str
    attributes: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operands: tuple[int | None, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the function consists of this call, on arguments of its own."""
        return None not in self.operands

    @property
    def positions(self) -> tuple[int, ...]:
        """The operands of a call that is the whole function."""
        return tuple(position for position in self.operands if position is not None)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        tensors = {name: [s.to_json() for s in getattr(self, name)] for name in ("inputs", "outputs")}
        return {"op": self.op, "attributes": self.attributes, "operands": self.operands} | tensors


@dataclass(frozen=True, slots=True, repr=False)
class CompiledFunction(BriefRepr):
    """One fused function. Its arguments are its inputs (constants of one element left out), then its outputs, then the
    values of ``dims``, the names of its symbolic dimensions. ``externs`` are the prototypes of the functions of C that
    it calls. ``operations`` is what its definition takes, 0 if that does not tell; ``traffic`` are the bytes of its
    inputs and outputs, each once. ``call`` is the one whose schedule it has, unless it copies. ``arguments`` are the
    types of its inputs and outputs. ``source_text`` is what its line tables speak of, empty if it has none.
    ``heap_once`` are bytes that it takes from the heap while it runs, ``heap_each`` those that each of its threads
    takes. ``calls`` are the symbols of other functions of the model that its code calls, as that of control flow does.
    It has no object code where the call is of a packed function, which an engine looks up."""

    name: str
    symbol: str
    dims: tuple[str, ...]
    choices: tuple[Choice, ...]
    messages: tuple[str, ...]
    loop_ir: str
    llvm_ir: str
    object: bytes
    externs: tuple[str, ...] = ()
    operations: Extent = 0
    traffic: Extent = 0
    call: OpCall | None = None
    arguments: tuple[TensorSpec, ...] = ()
    source_text: str = ""
    heap_once: Extent = 0
    heap_each: Extent = 0
    calls: tuple[str, ...] = ()

    @property
    def source(self) -> NestSource | None:
        """The source of its line tables, on this machine."""
        return kept_source(self.symbol, self.source_text) if self.source_text else None

    @property
    def anchor(self) -> Choice | None:
        """The choice whose schedule the function has; of several kernels the one that serves all shapes. None for a
        function that copies."""
        return next((choice for choice in reversed(self.choices) if choice.anchor), None)

    @property
    def implementation(self) -> str:
        """The name of the implementation whose schedule the function has."""
        return "copy" if self.anchor is None else self.anchor.implementation

    @property
    def is_packed(self) -> bool:
        """Whether it stands for a packed function, so that there is no code."""
        return self.call is not None and self.call.op == EXTERN

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; the object code as it is."""
        extents = {name: extent_json(getattr(self, name)) for name in _EXTENTS}
        call = None if self.call is None else self.call.to_json()
        arguments = [spec.to_json() for spec in self.arguments]
        plain = asdict(replace(self, operations=0, traffic=0, heap_once=0, heap_each=0, call=None, arguments=()))
        return plain | extents | {"call": call, "arguments": arguments}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CompiledFunction:
        """The function that ``to_json`` wrote. Raises ``ModelError`` for anything else."""
        made: CompiledFunction = from_plain(cls, data, "function")
        return made


_EXTENTS = ("operations", "traffic", "heap_once", "heap_each")
