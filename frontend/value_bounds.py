"""How large the integers are that a loop computes in an iteration, as far as that is known before it: what becomes an
extent in a body may be no more than memory was planned for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ..base.errors import TypeInferenceError
from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType
from ..graph.visit import post_order
from ..ir.constants import ONE, ZERO, const_int
from ..ir.expr import Expr, Var
from ..ir.extent_bounds import Bounds, bounds_of, combined, joined, negated
from ..ir.makers import as_index
from ..ops.definition.extent_formulas import as_formulas, extent_of_formula
from ..ops.families.born_extents import BORN_EXTENTS, with_most

_UNKNOWN: Bounds = (None, None)
_MOVES = frozenset(
    {"assume_extent", "broadcast_to", "expand_dims", "gather_elements", "gather_nd", "identity", "max", "min",
     "open_slice", "reshape", "squeeze", "strided_slice", "take", "tile", "transpose"}
)  # fmt: skip
"""Operators that give some of the elements of their first argument."""
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "//", "minimum": "min", "maximum": "max"}


class ValueBounds:
    """The bounds of integers. ``known`` gives what nodes stand for. Mutable: ``numbers`` are those of nodes that a loop
    binds, ``most`` the most of extents that a body computes; both grow while a model is imported. ``loops`` counts the
    loops that are being imported."""

    def __init__(self, known: Callable[[Node], Any]) -> None:
        self._known = known
        self.loops = 0
        self.numbers: dict[Node, Bounds] = {}
        self.most: dict[Var, Expr] = {}

    def of(self, root: Node) -> Bounds:
        """The bounds of all elements of a tensor, over dimensions that are known before the loops."""
        found: dict[Node, Bounds] = {}
        for node in post_order(root, self._is_told):
            found[node] = self._bounds(node, found)
        return found[root]

    def bounded(self, call: Call, of: Sequence[Node]) -> Call:
        """A birth of extents with the most that each can be; itself where that is not known, and outside of loops."""
        if not self.loops or call.op is not BORN_EXTENTS:
            return call
        values = call.args[0]
        parts = values.args if isinstance(values, Call) and values.op.name == "concatenate" else (values,)
        most = [self.of(part)[1] for part in parts for _ in range(const_int(tensor_of(part).shape[0]) or 0)]
        extents = [max_ for max_ in most if max_ is not None]
        if len(extents) < len(most):
            return call
        try:
            formulas, tellers = as_formulas(extents, of)
        except TypeInferenceError:
            return call
        made = with_most(call, formulas, tellers)
        pairs = zip(call.attrs.extents, extents, strict=True)
        self.most.update({symbol: extent for symbol, extent in pairs if isinstance(symbol, Var)})
        return made

    def _is_told(self, node: Node) -> bool:
        kind = node.type
        told = node in self.numbers or self._known(node) is not None
        return told or not isinstance(kind, TensorType) or not (kind.dtype.is_data_int or kind.dtype.is_bool)

    def _bounds(self, node: Node, found: dict[Node, Bounds]) -> Bounds:
        if node in self.numbers:
            return self.numbers[node]
        known = self._known(node)
        if known is not None:
            elements = [bounds_of(as_index(int(e) if not isinstance(e, Expr) else e), self.most) for e in known.ravel()]
            return reduce(joined, elements) if elements else _UNKNOWN
        kind = node.type
        if isinstance(kind, TensorType) and kind.dtype.is_bool:
            return ZERO, ONE
        if not isinstance(node, Call) or not isinstance(kind, TensorType) or not kind.dtype.is_data_int:
            return _UNKNOWN
        return self._of_call(node, [found[arg] for arg in node.args])

    def _of_call(self, call: Call, args: Sequence[Bounds]) -> Bounds:
        name = call.op.name
        if name in _OPERATORS:
            return combined(_OPERATORS[name], *args) if name != "divide" else _quotient(*args)
        match name:
            case _ if name in _MOVES:
                return args[0]
            case "cast":
                kind = tensor_of(call.args[0]).dtype
                return args[0] if kind.is_data_int or kind.is_bool else _UNKNOWN
            case "where":
                return joined(args[1], args[2])
            case "concatenate":
                return reduce(joined, args)
            case "negative":
                return negated(args[0])
            case "abs":
                return ZERO, joined(args[0], negated(args[0]))[1]
            case "sum":
                return self._sum(call, args[0])
            case "extents":
                types = [arg.type for arg in call.args]
                extents = (extent_of_formula(formula, types) for formula in call.attrs.extents)
                return reduce(joined, (bounds_of(extent, self.most) for extent in extents))
            case _:
                return _UNKNOWN

    def _sum(self, call: Call, each: Bounds) -> Bounds:
        shape, axes = tensor_of(call.args[0]).shape, call.attrs.axes
        count: Bounds = (ONE, ONE)
        for axis in range(len(shape)) if axes is None else axes:
            count = combined("*", count, bounds_of(shape[axis], self.most))
        total = combined("*", each, (count[1], count[1]))
        return (ZERO if each[0] is ZERO else None), total[1]


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    """Division rounds towards 0: bounds of what is not negative are those of floor division."""
    low, high = combined("//", a, b)
    return (
        (low, high)
        if a[0] is not None and const_int(a[0]) is not None and (const_int(a[0]) or 0) >= 0
        else (None, high)
    )
