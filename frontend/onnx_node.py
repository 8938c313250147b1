"""What a converter sees of an ONNX node: its inputs as graph nodes, its attributes as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, NodeProto, TensorProto, helper

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..graph.node import Constant, Node, tensor_of
from ..graph.types import TensorType
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ops.families.gather import take
from ..ops.families.reshape import reshape
from .output_forms import OutputForms
from .refusal_causes import UnknownValueError
from .shape_values import ShapeValues
from .string_values import StringTensor
from .tensors import tensor_value
from .values import Value, value_text


@dataclass(frozen=True, slots=True, eq=False)
class OnnxNode:
    """A node whose inputs are converted already. ``version`` is that of its operator, not of the operator set.
    ``finish`` makes what a converter has made part of the model, with constants folded."""

    proto: NodeProto
    inputs: Sequence[Value | None]
    attributes: Mapping[str, AttributeProto]
    version: int
    folder: Path | None
    shapes: ShapeValues
    forms: OutputForms
    finish: Callable[[Node], Node]

    def __str__(self) -> str:
        return describe(self.proto)

    def __getitem__(self, index: int) -> Node:
        """An input that must be there."""
        found = self.get(index)
        if found is None:
            raise ModelError(f"{self}: input {index} is missing")
        return found

    def get(self, index: int) -> Node | None:
        """An input that may be left out. Raises ``ModelError`` for one that is no tensor."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None or isinstance(found, Node):
            return found
        raise ModelError(
            f"{self}: input {index}, {self.proto.input[index]!r}, should be a tensor, it is {value_text(found)}"
        )

    def value(self, index: int) -> Value:
        """An input that must be there, which may be a sequence or an optional."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise ModelError(f"{self}: input {index} is missing")
        return found

    @property
    def all(self) -> list[Node]:
        """The inputs of a variadic operator."""
        return [self[k] for k in range(len(self.inputs))]

    def type(self, index: int = 0) -> TensorType:
        """The type of an input that must be there. Raises ``ModelError`` if it is left out."""
        return tensor_of(self[index])

    def numbers(self, shape: Sequence[Expr]) -> tuple[int, ...]:
        """Extents as numbers. Raises ``UnknownValueError`` if one is symbolic."""
        found = [const_int(extent) for extent in shape]
        if any(number is None for number in found):
            symbolic = dict.fromkeys(str(e) for e, number in zip(shape, found, strict=True) if number is None)
            there = "there is the dimension" if len(symbolic) == 1 else "there are the dimensions"
            raise UnknownValueError(
                f"{self}: it needs a shape that is known when the model is compiled, but {there} {', '.join(symbolic)}"
            )
        return tuple(number for number in found if number is not None)

    def extents(self, index: int, meaning: str) -> tuple[int | Expr, ...]:
        """The integers of an input that must be there; they may be computed from symbolic dimensions."""
        known = self.shapes.of(self[index])
        return self.required_constant(index, meaning) if known is None else tuple(known.ravel())

    def is_known(self, *inputs: int) -> bool:
        """Whether the numbers of all of these inputs are known, or follow from symbolic dimensions, as far as they are
        there."""
        given = (self.get(index) for index in inputs)
        return all(value is None or isinstance(value, Constant) or self.shapes.of(value) is not None for value in given)

    def extents_of(self, values: Node, meaning: str) -> tuple[int | Expr, ...]:
        """Integers as extents, those of a vector of a known length, or one. What follows from the shapes of the model's
        inputs is a formula over their dimensions; other numbers become dimensions when a run has computed them, none of
        which may be negative."""
        values = self.finish(values)
        if (known := self.shapes.of(values)) is not None:
            return tuple(int(v) if isinstance(v, (int, np.integer)) else v for v in known.ravel())
        kind = tensor_of(values)
        if kind.static_shape is None or not kind.dtype.is_data_int:
            raise UnknownValueError(f"{self}: {meaning} must be a known number of integers, found {kind}")
        vector = values if kind.ndim == 1 else self.finish(reshape(values, (-1,)))
        elements = self.shapes.elements(vector)
        unknown = [k for k, element in enumerate(elements) if element is None]
        if len(unknown) < len(elements):
            vector = self.finish(take(vector, Constant(np.array(unknown)), 0))
        names = [f"{self.name}_{k}" if len(elements) > 1 else self.name for k in unknown]
        born = iter(self.shapes.born(vector, names, meaning, self.finish))
        return tuple(next(born) if element is None else element for element in elements)

    @property
    def name(self) -> str:
        """What the model calls the node, or its first output."""
        return self.proto.name or next((output for output in self.proto.output if output), self.proto.op_type)

    def static_shape(self, index: int) -> tuple[int, ...]:
        """The shape of an input in numbers."""
        return self.numbers(self.type(index).shape)

    @property
    def rank(self) -> int:
        """The rank of the first input."""
        return self.type().ndim

    def wants(self, output: int) -> bool:
        """Whether an output has a name, so that something may use it."""
        return output < len(self.proto.output) and self.proto.output[output] != ""

    # Inputs that must be known while the model is imported.

    def constant(self, index: int, meaning: str) -> npt.NDArray[Any] | None:
        """The value of an input that decides types or shapes; None if it is left out."""
        found = self.get(index)
        return None if found is None else self._known(found, index, meaning)

    def _known(self, given: Node, index: int, meaning: str) -> npt.NDArray[Any]:
        if not isinstance(given, Constant):
            raise UnknownValueError(
                f"{self}: {meaning} (input {index}, {self.proto.input[index]!r}) must be known when the model is "
                "compiled, but depends on the model's inputs"
            )
        return given.value

    def constant_ints(self, index: int, meaning: str) -> tuple[int, ...] | None:
        """The integers of an input, as ``constant`` gives it; None if it is left out."""
        value = self.constant(index, meaning)
        return None if value is None else _integers(value)

    def required_constant(self, index: int, meaning: str) -> tuple[int, ...]:
        """The integers of an input that must be there."""
        return _integers(self._known(self[index], index, meaning))

    def constant_int(self, index: int, meaning: str) -> int | None:
        """The one integer of an input, as ``constant`` gives it; None if it is left out. Raises ``ModelError`` for
        several."""
        value = self.constant_ints(index, meaning)
        if value is not None and len(value) != 1:
            raise ModelError(f"{self}: {meaning} must be one number, found {value}")
        return None if value is None else value[0]

    # Attributes.

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self.attributes

    def _attribute(self, name: str, kinds: tuple[int, ...]) -> Any:
        found = self.attributes.get(name)
        if found is None:
            return None
        if found.type not in kinds:
            raise ModelError(f"{self}: attribute {name} is of type {AttributeProto.AttributeType.Name(found.type)}")
        return helper.get_attribute_value(found)

    def _required(self, name: str, value: Any) -> Any:
        if value is None:
            raise ModelError(f"{self}: attribute {name} is missing")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is an integer, or the default. Raises ``ModelError`` if it is of another type, or is
        missing without a default; so do the others."""
        found = self._attribute(name, (AttributeProto.INT,))
        return int(self._required(name, default if found is None else found))

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or 1, as a bool."""
        return bool(self.integer(name, int(default)))

    def real(self, name: str, default: float | None = None) -> float:
        """An attribute that is a float, or the default."""
        found = self._attribute(name, (AttributeProto.FLOAT,))
        return float(self._required(name, default if found is None else found))

    def string(self, name: str, default: str | None = None) -> str:
        """An attribute that is a string, or the default."""
        found = self._attribute(name, (AttributeProto.STRING,))
        text = self._required(name, default if found is None else found)
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)

    def ints(self, name: str) -> tuple[int, ...] | None:
        """An attribute that is a list of integers; None if it is not given."""
        found = self._attribute(name, (AttributeProto.INTS,))
        return None if found is None else tuple(int(v) for v in found)

    def required_ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of integers, and must be given."""
        found: tuple[int, ...] = self._required(name, self.ints(name))
        return found

    def floats(self, name: str) -> tuple[float, ...] | None:
        """An attribute that is a list of floats; None if it is not given."""
        found = self._attribute(name, (AttributeProto.FLOATS,))
        return None if found is None else tuple(float(v) for v in found)

    def strings(self, name: str) -> tuple[str, ...]:
        """An attribute that is a list of strings, or a tensor of them; empty if it is not given."""
        given = self.attributes.get(name)
        if given is not None and given.type == AttributeProto.TENSOR and given.t.data_type == TensorProto.STRING:
            return tuple(v.decode("utf-8", "replace") for v in given.t.string_data)
        found = self._attribute(name, (AttributeProto.STRINGS,))
        texts = {v: v.decode("utf-8", "replace") for v in set(found or ())}  # of many, few may differ
        return tuple(map(texts.__getitem__, found or ()))

    def text(self, index: int) -> StringTensor | None:
        """The strings that an input is; None if it is left out, or of numbers."""
        return self.forms.strings_of(self.get(index))

    def required_text(self, index: int = 0) -> StringTensor:
        """The strings that an input is. Raises ``ModelError`` for another."""
        found = self.text(index)
        if found is None:
            raise ModelError(f"{self}: input {index} must be strings, found {self.type(index)}")
        return found

    def int_array(self, name: str) -> npt.NDArray[np.int64]:
        """An attribute that is a list of integers, which may be long; empty if it is not given."""
        found = self._attribute(name, (AttributeProto.INTS,))
        return np.array([] if found is None else found, np.int64)

    def float_array(self, name: str) -> npt.NDArray[np.floating[Any]]:
        """The floats of an attribute that is a list of them or a tensor, or whose name goes on with ``_as_tensor``;
        empty if none is given. Raises ``ModelError`` for a tensor of other values."""
        given = self.attributes.get(name)
        if given is not None and given.type == AttributeProto.FLOATS:
            return np.array(given.floats, np.float32)
        found = self.tensor(name if given is not None else f"{name}_as_tensor")
        if found is None:
            return np.array([], np.float32)
        if found.dtype.kind != "f":
            raise ModelError(f"{self}: attribute {name} must be a tensor of floats, found {found.dtype}")
        return found.ravel()

    def tensor(self, name: str) -> npt.NDArray[Any] | None:
        """The array of an attribute that is a tensor; None if it is not given."""
        found = self._attribute(name, (AttributeProto.TENSOR,))
        assert found is None or isinstance(found, TensorProto)
        return None if found is None else tensor_value(found, f"{self}: attribute {name}", self.folder)

    def unsupported(self, what: str) -> ModelError:
        """The error for a form of the operator that has no conversion."""
        return ModelError(f"{self}: {what} is not supported")


def describe(proto: NodeProto) -> str:
    """A node as error messages name it."""
    name, operator = name_and_operator(proto)
    return f"node {name!r} ({operator})"


def name_and_operator(proto: NodeProto) -> tuple[str, str]:
    """What a model calls the node, or its first output, and its operator, with a domain that is not ONNX's own."""
    domain = f"{proto.domain}." if proto.domain not in ("", "ai.onnx") else ""
    return proto.name or next((o for o in proto.output if o), ""), f"{domain}{proto.op_type}"


def _integers(value: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(v) for v in np.ravel(value))
