"""Which rules apply to which operator on which kind of number. The proofs in tests/ read this table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from ...base.dtype import DType
from ..expr import Expr
from ..facts import Facts
from . import add_sub, bitwise, choice, compare, floordiv, floormod, logical, minmax, mul

Domain = Literal["index", "data", "float", "bool"]
"""``index``: mathematical integers; ``data``: integers that wrap; ``float``: IEEE numbers."""

BinaryRules: TypeAlias = Callable[[Expr, Expr, Facts], Expr | None]
ChoiceRules: TypeAlias = Callable[[Expr, Expr, Expr, Facts], Expr | None]

BINARY: dict[tuple[str, Domain], tuple[BinaryRules, ...]] = {
    ("+", "float"): (add_sub.add_float,),
    ("-", "float"): (add_sub.sub_float,),
    ("*", "index"): (mul.mul_integer,),
    ("*", "data"): (mul.mul_integer,),
    ("*", "float"): (mul.mul_float,),
    ("/", "float"): (mul.div_float,),
    ("//", "index"): (floordiv.floordiv_index,),
    ("//", "data"): (floordiv.floordiv_data,),
    ("%", "index"): (floormod.floormod_index,),
    ("%", "data"): (floormod.floormod_data,),
    ("min", "index"): (minmax.min_any, minmax.min_integer, minmax.min_index),
    ("min", "data"): (minmax.min_any, minmax.min_integer),
    ("min", "float"): (minmax.min_any,),
    ("max", "index"): (minmax.max_any, minmax.max_integer, minmax.max_index),
    ("max", "data"): (minmax.max_any, minmax.max_integer),
    ("max", "float"): (minmax.max_any,),
    ("&", "data"): (bitwise.and_data,),
    ("|", "data"): (bitwise.or_data,),
    ("^", "data"): (bitwise.xor_data,),
    ("<<", "data"): (bitwise.shift_data,),
    (">>", "data"): (bitwise.shift_data,),
}

COMPARE: dict[tuple[str, Domain], tuple[BinaryRules, ...]] = {
    ("<", "index"): (compare.less_integer, compare.less_index),
    ("<=", "index"): (compare.less_equal_integer, compare.less_equal_index),
    (">", "index"): (compare.greater_integer, compare.greater_index),
    (">=", "index"): (compare.greater_equal_integer, compare.greater_equal_index),
    ("==", "index"): (compare.equal_integer, compare.equal_index),
    ("!=", "index"): (compare.not_equal_integer, compare.not_equal_index),
    ("<", "data"): (compare.less_integer,),
    ("<=", "data"): (compare.less_equal_integer,),
    (">", "data"): (compare.greater_integer,),
    (">=", "data"): (compare.greater_equal_integer,),
    ("==", "data"): (compare.equal_integer,),
    ("!=", "data"): (compare.not_equal_integer,),
    ("==", "bool"): (logical.equal_bool,),
    ("!=", "bool"): (logical.not_equal_bool,),
}

LOGICAL: dict[str, tuple[BinaryRules, ...]] = {"and": (logical.and_bool,), "or": (logical.or_bool,)}

CHOICE: tuple[ChoiceRules, ...] = (choice.choose,)
"""For ``Select`` and ``IfThenElse`` alike, on every dtype."""


def domain_of(kind: DType) -> Domain:
    """The kind of numbers whose rules hold for a dtype."""
    if kind.is_index:
        return "index"
    return "bool" if kind.is_bool else "float" if kind.is_float else "data"
