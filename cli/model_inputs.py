"""The inputs of a model, as its file declares them or a library has them: names, dtypes, and which extents are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import GraphProto, TensorProto

from .. import Library, ModelError, RuntimeArgumentError
from ..artifact.extents import Extent
from ..base.dataclass import dataclass
from ..frontend.tensors import declared_extent, element_type
from ..frontend.weight_extents import weight_extents


@dataclass(frozen=True, slots=True)
class ModelInput:
    """``extents`` are numbers, and the names of dimensions that are open, of a library also formulas over such; None
    where not even the rank is known. ``asked`` are the extents of open dimensions that weights ask for, by axis."""

    name: str
    dtype: str
    extents: tuple[Extent, ...] | None
    asked: Mapping[int, int]

    def __str__(self) -> str:
        shape = " of any shape" if self.extents is None else f"[{', '.join(map(_shown, self.extents))}]"
        return f"{self.name}: {self.dtype}{shape}"

    @property
    def is_open(self) -> bool:
        """Whether its shape is for the user to choose."""
        return self.extents is None or any(not isinstance(extent, int) for extent in self.extents)


def _shown(extent: Extent) -> str:
    """Dimensions without a name are question marks, as ``--shape`` has them."""
    text = str(extent)
    return "?" if text.startswith(_UNNAMED) else text


_UNNAMED = "unnamed dimension "


def inputs_of_graph(graph: GraphProto) -> list[ModelInput]:
    """The inputs that are given at run time: early versions list initializers as inputs too."""
    constants = {initializer.name for initializer in graph.initializer}
    fed = [value for value in graph.input if value.name not in constants]
    asked = weight_extents(graph, {value.name: len(value.type.tensor_type.shape.dim) for value in fed})
    return [_declared(value, asked.get(value.name, {})) for value in fed]


def _declared(value: Any, asked: Mapping[int, int]) -> ModelInput:
    declared = value.type.tensor_type
    kind = _dtype(declared.elem_type)
    if not declared.HasField("shape"):
        return ModelInput(value.name, kind, None, {})
    dims = [declared_extent(dim) for dim in declared.shape.dim]
    extents = tuple(f"{_UNNAMED}{axis} of {value.name}" if e is None else e for axis, e in enumerate(dims))
    return ModelInput(value.name, kind, extents, asked)


def _dtype(code: int) -> str:
    """The importer says what is wrong with one that it does not know."""
    try:
        return str(element_type(code, "an input"))
    except ModelError:
        return TensorProto.DataType.Name(code).lower() if code in TensorProto.DataType.values() else "?"


def inputs_of_library(library: Library) -> list[ModelInput]:
    """What a library was compiled for."""
    return [ModelInput(spec.name, str(spec.dtype), spec.shape, {}) for spec in library.inputs]


def check_shapes(path: Path, inputs: Sequence[ModelInput], shapes: Mapping[str, Sequence[object]]) -> None:
    """Raises ``RuntimeArgumentError`` for a shape of what is no input, or of another rank."""
    known = {found.name: found for found in inputs}
    for name, shape in shapes.items():
        found = known.get(name)
        if found is None:
            raise RuntimeArgumentError(f"--shape: {path} has no input {name!r}; {inputs_text(inputs)}")
        if found.extents is not None and len(found.extents) != len(shape):
            raise RuntimeArgumentError(
                f"--shape: {len(shape)} extents are given for the input {found}, which has {len(found.extents)}"
            )


def inputs_text(inputs: Sequence[ModelInput]) -> str:
    """A clause that lists them."""
    return f"its inputs are {', '.join(map(str, inputs))}" if inputs else "it has no inputs"
