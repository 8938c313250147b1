"""cast and bitcast: elements as those of another dtype, by their value or by their bits."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import DType, dtype
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.expr import Expr
from ..definition.arguments import flag
from ..definition.attrs import Attrs, attr, one_of
from ..definition.op_group import OpGroup
from ..definition.relations import tensor_argument
from . import narrow
from .unary_op import ANY_KINDS, elementwise_relation, register_elementwise

GROUP = OpGroup.ELEMENTWISE


@dataclass(frozen=True)
class CastAttrs(Attrs):
    """The attributes of ``cast``."""

    to: str = attr("dtype of the result")
    saturate: bool = attr("whether a narrow float holds what is beyond it as its largest number", default=False)
    round_mode: str = attr("how float8_e8m0fnu is rounded", default="nearest", check=one_of("nearest", "up", "down"))


def _tensor_dtype(name: str) -> DType:
    try:
        to = dtype(name)
    except ExpressionError as error:
        raise TypeInferenceError(str(error)) from None
    if to.kind not in ANY_KINDS or to.lanes != 1:
        raise TypeInferenceError(f"{to} is no dtype of tensors")
    return to


def _cast_relation(types: Sequence[Type], attrs: CastAttrs) -> Type:
    return elementwise_relation(ANY_KINDS, _tensor_dtype(attrs.to))(types, attrs)


def _cast(x: Expr, attrs: CastAttrs) -> Expr:
    to = dtype(attrs.to)
    if to.is_narrow and to.holds_floats and x.dtype is not to:
        return narrow.narrowed(x, to, saturate=attrs.saturate, round_mode=attrs.round_mode)
    return te.cast(x, to)


CAST = register_elementwise(
    "cast",
    "x as another dtype; float to integer truncates and saturates, integers wrap, bool is x != 0",
    _cast_relation,
    _cast,
    CastAttrs,
)


def cast(x: Node, to: str | DType, saturate: bool = False, round_mode: str = "nearest") -> Call:
    """The elements of ``x`` converted to dtype ``to``.

    Float to integer truncates and saturates, NaN becomes 0; integers wrap; anything to bool is ``!= 0``. Floats of 8
    and 4 bits are rounded once, to nearest even; what is beyond the largest number becomes that with ``saturate``,
    else infinity or NaN, as the dtype has it (float4_e2m1fn always saturates). ``round_mode`` is for float8_e8m0fnu,
    which has powers of two alone: "nearest" (halfway up), "up" or "down". It has no 0: with ``saturate`` what is
    below the smallest becomes that, else NaN; negative numbers are NaN.
    """
    return CAST(x, attrs=CastAttrs(str(to), flag(saturate, "saturate"), round_mode))


@dataclass(frozen=True)
class BitcastAttrs(Attrs):
    """The attributes of ``bitcast``."""

    to: str = attr("dtype of the result, with as many bits as that of x")


def _bitcast_relation(types: Sequence[Type], attrs: BitcastAttrs) -> Type:
    to = _tensor_dtype(attrs.to)
    result = elementwise_relation(ANY_KINDS, to)(types, attrs)
    source = tensor_argument(types[0], "x").dtype
    if _value_bits(source) != _value_bits(to):
        raise TypeInferenceError(f"{source} has {_value_bits(source)} bits, and {to} has {_value_bits(to)}")
    return result


def _value_bits(kind: DType) -> int:
    return 8 if kind.is_bool else kind.bits


BITCAST = register_elementwise(
    "bitcast",
    "the bits of x, taken for another dtype of as many; a bool has 8",
    _bitcast_relation,
    lambda x, attrs: te.as_bits(x, attrs.to),
    BitcastAttrs,
)


def bitcast(x: Node, to: str | DType) -> Call:
    """The bits of ``x``, taken for dtype ``to``, which has as many.

    A bool counts as a byte that is 0 or 1; a byte that becomes a bool is ``!= 0``.
    """
    return BITCAST(x, attrs=BitcastAttrs(str(to)))
