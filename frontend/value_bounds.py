"""How large the integers are that a loop computes in an iteration, as far as that is known before it: what becomes an
extent in a body may be no more than memory was planned for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import field
from functools import reduce
from typing import Any

from ..base.dataclass import dataclass
from ..base.errors import TypeInferenceError
from ..graph.node import Call, Constant, Node, tensor_of
from ..graph.types import TensorType
from ..graph.visit import inputs, post_order
from ..ir.constants import ONE, ZERO, const_int
from ..ir.expr import Expr, Var
from ..ir.extent_bounds import Bounds, bounds_of, combined, joined, negated
from ..ir.makers import as_index
from ..ops.definition.extent_formulas import as_formulas, extent_of_formula
from ..ops.families.born_extents import BORN_EXTENTS, with_most
from ..ops.families.cast import cast

MOST_ELEMENTS = 64
"""Elements of tensors of up to so many are looked at one by one."""
_UNKNOWN: Bounds = (None, None)
_MOVES = frozenset(
    {"assume_extent", "broadcast_to", "expand_dims", "gather_elements", "gather_nd", "identity", "max", "min",
     "open_slice", "reshape", "squeeze", "strided_slice", "take", "tile", "transpose"}
)  # fmt: skip
"""Operators that give some of the elements of their first argument."""
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "//", "minimum": "min", "maximum": "max"}


@dataclass(frozen=True, slots=True, eq=False)
class ImportedLoop:
    """A loop whose body is being imported: the variables that differ by iteration, and the largest numbers that are
    found out before it."""

    variables: frozenset[Node]
    largest: dict[Node, Expr] = field(default_factory=dict)


class ValueBounds:
    """The bounds of integers. ``known`` gives what nodes stand for. Mutable: ``numbers`` are those of nodes that a loop
    binds, ``most`` the most of extents that a body computes; both grow while a model is imported. ``loops`` are those
    that are being imported, from the outermost to the innermost."""

    def __init__(self, known: Callable[[Node], Any]) -> None:
        self._known = known
        self.loops: list[ImportedLoop] = []
        self.numbers: dict[Node, Bounds] = {}
        self.most: dict[Var, Expr] = {}

    def of(self, root: Node) -> Bounds:
        """The bounds of all elements of a tensor, over dimensions that are known before the loops."""
        found: dict[Node, Bounds] = {}
        for node in post_order(root, self._is_told):
            found[node] = self._bounds(node, found)
        return found[root]

    def bounded(self, call: Call, of: Sequence[Node], largest: Callable[[Node], Expr]) -> Call:
        """A birth of extents with the most that each can be; itself where that is not known, and where the extents are
        known before all loops. Of a tensor that is there before the loops, of which no bounds are known, each run finds
        out the largest number: ``largest`` gives it as an extent."""
        if not self.loops or call.op is not BORN_EXTENTS:
            return call
        differ = self._differing(call)
        if call not in differ:
            return call
        elements = _Elements(self, differ, largest)
        most = [elements.bounds(call.args[0], k)[1] for k in range(len(call.attrs.extents))]
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

    def _differing(self, root: Node) -> set[Node]:
        """Which of the nodes that a node is made of differ by iteration."""
        differ = {value for loop in self.loops for value in loop.variables}
        for node in post_order(root):
            if any(used in differ for used in inputs(node)):
                differ.add(node)
        return differ

    def _is_told(self, node: Node) -> bool:
        kind = node.type
        told = node in self.numbers or self._known(node) is not None
        return told or not isinstance(kind, TensorType) or not (kind.dtype.is_data_int or kind.dtype.is_bool)

    def _bounds(self, node: Node, found: dict[Node, Bounds]) -> Bounds:
        if node in self.numbers:
            return self.numbers[node]
        elements = self.of_known(node)
        if elements is not None:
            return reduce(joined, elements) if elements else _UNKNOWN
        kind = node.type
        if isinstance(kind, TensorType) and kind.dtype.is_bool:
            return ZERO, ONE
        if not isinstance(node, Call) or not isinstance(kind, TensorType) or not kind.dtype.is_data_int:
            return _UNKNOWN
        return self.of_call(node, [found[arg] for arg in node.args])

    def of_known(self, node: Node) -> list[Bounds] | None:
        """The bounds of each element of a tensor that is known while the model is imported; None for others."""
        known = self._known(node)
        if known is None:
            return None
        return [bounds_of(as_index(int(e) if not isinstance(e, Expr) else e), self.most) for e in known.ravel()]

    def of_call(self, call: Call, args: Sequence[Bounds]) -> Bounds:
        """The bounds of integers that a call gives for arguments with these."""
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


class _Elements:
    """The bounds of single elements of vectors that an iteration computes, such as the extents of a shape; ``differ``
    are the nodes that differ by iteration. Mutable: notes what is found."""

    def __init__(self, bounds: ValueBounds, differ: Set[Node], largest: Callable[[Node], Expr]) -> None:
        self._of_tensors = bounds
        self._differ = differ
        self._largest = largest
        self._found: dict[tuple[Node, int], Bounds] = {}

    def bounds(self, node: Node, position: int) -> Bounds:
        """The bounds of an element of a tensor, in the order of memory."""
        key = node, position
        if key not in self._found:
            self._found[key] = self._computed(node, position)
        return self._found[key]

    def _computed(self, node: Node, position: int) -> Bounds:
        known = self._of_tensors.of_known(node)
        if known is not None:
            return known[position]
        if node not in self._differ:
            return self._of_outer(node)
        of_one = self._of_one(node, position)
        return self._of_all(node) if of_one is None else of_one

    def _of_all(self, node: Node) -> Bounds:
        """The bounds of all elements of a tensor."""
        key = node, -1
        if key not in self._found:
            self._found[key] = self._all_computed(node)
        return self._found[key]

    def _all_computed(self, node: Node) -> Bounds:
        of_all = self._of_tensors.of(node)
        if of_all[1] is not None or not _are_integers(node):
            return of_all
        if node not in self._differ:
            return self._of_outer(node)
        if not isinstance(node, Call):
            return of_all
        if node.op.name == "cast" and tensor_of(node.args[0]).dtype.is_float:
            return self._of_floats(node.args[0])
        read = node.args[:1] if node.op.name in _MOVES else node.args
        return self._of_tensors.of_call(node, [self._of_elements(arg) for arg in read])

    def _of_floats(self, node: Node, position: int | None = None) -> Bounds:
        """The bounds of floats as integers, of one at a position or of all, where they are elements of a tensor that is
        there before the loops."""
        while node in self._differ and isinstance(node, Call):
            name, count = node.op.name, _size(node)
            if name == "concatenate" and tensor_of(node).ndim == 1 and position is not None:
                part = _part_at(node, position)
                if part is None:
                    return _UNKNOWN
                node, position = part
            elif name in _MOVES:
                node = node.args[0]
                position = position if _size(node) == count else None
            else:
                return _UNKNOWN
        return _UNKNOWN if node in self._differ else self._of_outer(cast(node, "int64"))

    def _of_elements(self, node: Node) -> Bounds:
        """The bounds of all elements of a tensor, which are looked at one by one where they are few."""
        count = _size(node)
        if not _are_integers(node) or not count or count > MOST_ELEMENTS:
            return self._of_all(node)
        return reduce(joined, (self.bounds(node, k) for k in range(count)))

    def _of_outer(self, node: Node) -> Bounds:
        low, high = self._of_tensors.of(node)
        if high is not None or node in self._differ:
            return low, high
        found = self._of_tensors.loops[-1].largest
        if node not in found:
            found[node] = self._largest(node)
        return low, found[node]

    def _of_one(self, node: Node, position: int) -> Bounds | None:
        """The bounds where one element is made of one of each argument; None where it is not, or may not be."""
        if not isinstance(node, Call) or not _are_integers(node):
            return None
        name, size = node.op.name, _size(node)
        if name == "concatenate" and tensor_of(node).ndim == 1:
            part = _part_at(node, position)
            return None if part is None else self.bounds(*part)
        if name == "take" and tensor_of(node.args[0]).ndim == tensor_of(node).ndim == 1:
            count, index = _size(node.args[0]), node.args[1]
            if count is None or not isinstance(index, Constant):
                return None
            return self.bounds(node.args[0], int(index.value[position]) % count)
        if name in ("reshape", "expand_dims", "squeeze", "cast") and _size(node.args[0]) == size is not None:
            if tensor_of(node.args[0]).dtype.is_float:
                return self._of_floats(node.args[0], position)
            return self.bounds(node.args[0], position) if _are_integers(node.args[0]) else None
        if name in _OPERATORS or name == "where":
            sizes = [_size(arg) for arg in node.args]
            if any(count not in (1, size) for count in sizes):
                return None
            args = [
                self.bounds(arg, position if count == size else 0) if _are_integers(arg) else (ZERO, ONE)
                for arg, count in zip(node.args, sizes, strict=True)
            ]
            return self._of_tensors.of_call(node, args)
        return None


def _part_at(call: Call, position: int) -> tuple[Node, int] | None:
    """Which of the vectors that stand side by side has the element at a position, and where in it; None if one before
    it has an open length."""
    for part in call.args:
        count = _size(part)
        if count is None:
            return None
        if position < count:
            return part, position
        position -= count
    return None


def _size(node: Node) -> int | None:
    """How many elements a tensor has, if that is known."""
    shape = tensor_of(node).static_shape
    return None if shape is None else math.prod(shape)


def _are_integers(node: Node) -> bool:
    return isinstance(node.type, TensorType) and node.type.dtype.is_data_int
