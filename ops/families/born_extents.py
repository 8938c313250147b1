"""born_extents: numbers that a run computes become extents, of which nobody knows more before than that they are not
negative.

The result is a *witness*: its extents are those numbers, and it has no elements that may be read. Calls whose extents
follow from them are given it as a further argument (``definition/extent_formulas.py``), and so come after it. What a
run finds negative, or beyond all memory, is refused there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import BOOL
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Constant, Node
from ...graph.types import TensorType, Type
from ...ir.build import index_var
from ...ir.constants import const_int
from ...ir.expr import Const, Var
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.attrs import Attrs, attr
from ..definition.extent_birth import ExtentBirth
from ..definition.extent_formulas import FORMULAS, extent_of_formula
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute


@dataclass(frozen=True, eq=False)
class BornExtentsAttrs(Attrs):
    """Compared by identity, as variables are, which have their names in JSON."""

    extents: tuple[Var | Const, ...] = attr(
        "what each number becomes: a variable, or the number that it is known to be"
    )
    meaning: str = attr("what the numbers are, for errors", default="an extent")
    most: tuple[int | str, ...] = attr(
        f"the most that each can be, in the body of a loop: {FORMULAS}; empty where nobody knows", default=()
    )

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def to_json(self) -> dict[str, Any]:
        return {"extents": [str(extent) for extent in self.extents], "meaning": self.meaning, "most": list(self.most)}


def _relation(types: Sequence[Type], attrs: BornExtentsAttrs) -> Type:
    values = tensor_argument(types[0], "values")
    if values.dtype != "int64" or values.ndim != 1:
        raise TypeInferenceError(f"values must be a vector of int64, found {values}")
    if const_int(values.shape[0]) != len(attrs.extents):
        raise TypeInferenceError(f"values must have {len(attrs.extents)} elements, one for each extent, found {values}")
    return TensorType(attrs.extents, BOOL)


def _compute(attrs: BornExtentsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    return te.compute(tensor_argument(result, "result").shape, lambda *i: te.const(False, "bool"), name="born_extents")


def _birth(call: Call) -> ExtentBirth:
    types = [a.type for a in call.args]
    most = tuple(extent_of_formula(formula, types) for formula in call.attrs.most)
    return ExtentBirth(call.attrs.extents, call.attrs.meaning, most)


BORN_EXTENTS = register_op(
    "born_extents",
    "a tensor whose extents are numbers that a run computes; it has no elements that may be read",
    [("values", "a vector of int64, none of them negative; behind it tensors that formulas are over")],
    _relation,
    OpPattern.OPAQUE,
    BornExtentsAttrs,
    variadic=True,
    birth_rule=_birth,
)
register_compute(BORN_EXTENTS, _compute)


def born_extents(values: Node, names: Sequence[str], meaning: str) -> Call:
    """A witness of the extents that ``values`` are, a vector of int64: new dimensions of these names. ``meaning`` says
    in errors what they are. Numbers of a constant are known, and become no dimensions.

    Raises ``TypeInferenceError`` for other values, and for constants that are negative.
    """
    if not isinstance(values, Constant):
        return BORN_EXTENTS(values, attrs=BornExtentsAttrs(tuple(map(index_var, names)), meaning))
    return known_extents(values, meaning)


def with_most(call: Call, most: tuple[int | str, ...], tellers: Sequence[Node]) -> Call:
    """The witness with the most that each number can be, as formulas over ``tellers``, arguments 1 and further."""
    return BORN_EXTENTS(call.args[0], *tellers, attrs=replace(call.attrs, most=most), origin=call.origin)


def known_extents(values: Constant, meaning: str) -> Call:
    """The witness of numbers that are known, a vector of int64. Raises ``TypeInferenceError`` for negative ones."""
    numbers = [int(number) for number in values.value.ravel()]
    if min(numbers, default=0) < 0:
        raise TypeInferenceError(f"{meaning} must not be negative, found {numbers}")
    return BORN_EXTENTS(values, attrs=BornExtentsAttrs(tuple(map(as_index, numbers)), meaning))  # type: ignore[arg-type]
