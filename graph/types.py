"""Types of graph values.

    type ::= TensorType(shape, dtype)          dimensions are index expressions: constants or symbolic
           | TupleType(fields)
           | SequenceType(element)             a list whose length is known only at run time, as in ONNX
           | OptionalType(element)             a value or nothing
           | FunctionType(params, result)

Types are interned: equal types are one object, so ``is`` compares them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..base.bounded_dimension import BoundedDimension
from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError, ModelError, TypeInferenceError
from ..base.intern import Interned
from ..ir.constants import const_int
from ..ir.expr import Expr, ExprLike
from ..ir.makers import as_index
from ..ir.operand import Operand
from ..ir.simplify import simplify


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class TypeNode(metaclass=Interned):
    """The base class of all types."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __repr__(self) -> str:
        return one_line(str(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorType(TypeNode):
    """The type of a tensor: its extents, which are ``index`` expressions, and its dtype. ``tensor_type`` makes one
    of numbers."""

    shape: tuple[Expr, ...]
    dtype: DType

    def __str__(self) -> str:
        extents = (str(e if (number := const_int(e)) is None else number) for e in self.shape)
        return f"{self.dtype}[{', '.join(extents)}]"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape in numbers, None if a dimension is symbolic."""
        numbers = tuple(number for extent in self.shape if (number := const_int(extent)) is not None)
        return numbers if len(numbers) == len(self.shape) else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleType(TypeNode):
    """A tuple of values, whose fields may be tuples."""

    fields: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.fields))}{',' * (len(self.fields) == 1)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SequenceType(TypeNode):
    """A sequence of any number of values of one type, as ONNX has them. No operator takes or gives one."""

    element: Type

    def __str__(self) -> str:
        return f"Sequence[{self.element}]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OptionalType(TypeNode):
    """A value that may be absent, as ONNX has it. No operator takes or gives one."""

    element: Type

    def __str__(self) -> str:
        return f"Optional[{self.element}]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionType(TypeNode):
    """A function of values."""

    params: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.params))}) -> {self.result}"


Type: TypeAlias = TensorType | TupleType | SequenceType | OptionalType | FunctionType


def leaf_types(kind: Type) -> tuple[TensorType, ...]:
    """The tensors that a value is made of: one, or the fields of a tuple in order, those of inner tuples among them.

    Raises ``TypeInferenceError`` for a value that is not of a fixed number of tensors.
    """
    match kind:
        case TensorType():
            return (kind,)
        case TupleType(parts):
            return tuple(leaf for part in parts for leaf in leaf_types(part))
        case _:
            raise TypeInferenceError(f"expected a tensor, or a tuple of tensors, found a {kind}")


def leaves_of_field(kind: Type, index: int) -> slice:
    """Which of the ``leaf_types`` of a tuple are those of a field. Raises ``TypeInferenceError`` for another type."""
    fields = fields_of(kind)
    first = sum(len(leaf_types(part)) for part in fields[:index])
    return slice(first, first + len(leaf_types(fields[index])))


def fields_of(kind: Type) -> tuple[Type, ...]:
    """The types of a tuple's fields. Raises ``TypeInferenceError`` for another type."""
    if not isinstance(kind, TupleType):
        raise TypeInferenceError(f"a field is taken of a {kind}, which is not a tuple")
    return kind.fields


def folded(kind: Type) -> Type:
    """The type with its tensors' extents in normal form: 8 for ``10 - 2``. Extents that are numbers become expressions.

    Raises ``TypeInferenceError`` for a negative extent.
    """
    match kind:
        case TensorType(shape, element):
            return tensor_type([simplify(as_index(extent)) for extent in shape], element)
        case TupleType(parts):
            return TupleType(tuple(map(folded, parts)))
        case SequenceType(element):
            return SequenceType(folded(element))
        case OptionalType(element):
            return OptionalType(folded(element))
        case FunctionType(params, result):
            return FunctionType(tuple(map(folded, params)), folded(result))
        case _:
            assert_never(kind)


GivenExtent: TypeAlias = int | BoundedDimension | None
GivenShape: TypeAlias = tuple[GivenExtent, ...]
GivenShapes: TypeAlias = Mapping[str, Sequence[GivenExtent] | Sequence[Sequence[GivenExtent]] | None]
"""What callers pass as ``shapes=``: by the name of an input its extents; of a list those of each array; None for what
is absent. An extent is a number, a dimension with bounds, or None for one that stays as it is declared."""


def given_shapes(shapes: object, argument: str = "shapes") -> dict[str, GivenShape]:
    """What a caller passes as ``shapes=``, or as another ``argument``: by the names of inputs, their extents as whole
    numbers, dimensions with bounds, or None, or -1, for one that stays as it is declared.

    Raises ``ModelError`` for anything else; other negative extents are for others to refuse.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ModelError(f"{argument}= maps names of inputs to shapes, as in {{'x': (1, 3)}}, found {shapes!r}")
    return {name: _given_shape(argument, name, shape) for name, shape in (shapes or {}).items()}


def _given_shape(argument: str, name: object, shape: object) -> GivenShape:
    wrong = ModelError(f"{argument}= gives the input {name!r} the shape {shape!r}: write its extents, as in (1, 3)")
    if isinstance(shape, (str, bytes, Operand)) or not isinstance(shape, Iterable):
        raise wrong
    extents = tuple(shape)
    if any(isinstance(extent, bool) for extent in extents):
        raise wrong
    try:
        numbers = [
            extent if extent is None or isinstance(extent, BoundedDimension) else operator.index(extent)
            for extent in extents
        ]
    except (TypeError, ExpressionError):
        raise wrong from None
    return tuple(None if number == -1 else number for number in numbers)


class NegativeExtentError(TypeInferenceError):
    """An extent is below 0."""


def tensor_type(shape: Sequence[ExprLike], kind: str | DType | np.dtype[Any] | type[Any]) -> TensorType:
    """A tensor type from extents (numbers or index expressions) and a dtype.

    Raises ``TypeInferenceError`` for a negative extent, and for what is none.
    """
    if isinstance(shape, (str, Operand)) or not isinstance(shape, Iterable):
        raise TypeInferenceError(f"a shape is a sequence of extents, as (2, 3), found {shape!r}")
    extents = tuple(map(_extent, shape))
    for extent in extents:
        if (number := const_int(extent)) is not None and number < 0:
            raise NegativeExtentError(f"a tensor has no negative extents, found {[str(e) for e in extents]}")
    return TensorType(extents, dtype(kind))


def _extent(value: object) -> Expr:
    if not isinstance(value, (int, np.integer, Operand)):
        raise TypeInferenceError(
            f"an extent is a whole number, or a dimension that each run chooses, as te.var('n') makes it; "
            f"found {value!r}"
        )
    return as_index(value)
