"""Integers that a model computes from symbolic dimensions, as index expressions: shapes, and arithmetic on them.

A ``Shape`` whose extents are not all numbers gives a node that stands for them; calls on such nodes are evaluated here,
as ``fold`` does it for constants, also where they are whole numbers in floats. Converters that take a shape ask for the
expressions. What is still in the graph in the end is used as data: a call computes it then, from the extents of the
model's inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.dtype import INT64
from ..base.errors import ExpressionError
from ..graph.node import Call, Constant, Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..graph.visit import inputs, post_order, with_inputs
from ..ir.constants import ZERO, const_int
from ..ir.contents import free_vars
from ..ir.expr import Binary, Compare, Expr
from ..ir.factors import quotient
from ..ir.facts import NO_FACTS, Facts, prove
from ..ir.makers import as_index, maximum, minimum
from ..ir.simplify import simplify
from ..ops.families.born_extents import born_extents
from ..ops.families.cast import cast
from ..ops.families.select import where
from ..ops.families.slicing import END
from .extents_as_data import extents_as_data
from .fold import MAX_ELEMENTS, table
from .refusal_causes import UnknownLengthError
from .value_bounds import ValueBounds

EXACT = 1 << 24
"""Floats of 32 bits are whole numbers exactly up to this."""
Extents = npt.NDArray[Any]
"""An array of Python integers and index expressions."""


class ShapeValues:
    """The values of nodes that stand for such integers. ``inputs`` tell what dimensions are: those of the model, then
    witnesses of extents that a run computes, which are added as they become part of the model. ``conditions`` are those
    of the branches that are being imported: what becomes an extent in a branch is 0 where that is not taken.
    ``broadcast`` has, of extents that others broadcast to in a run, those others; ``first_one`` extents of what loops
    carry that are 1 before the first iteration, and ``unlike`` extents that meet in the loop that is being imported,
    and may be 1; ``meetings``, for each loop that is being imported, pairs of extents that meet in it and are taken for
    equal ones. ``required`` are conditions on dimensions that each run checks, whatever it computes.
    Mutable: grows while a model is imported."""

    def __init__(self, inputs: Sequence[Node]) -> None:
        self.inputs: list[Node] = list(inputs)
        self.conditions: list[Node] = []
        self.broadcast: dict[Expr, tuple[Expr, ...]] = {}
        self.first_one: set[Expr] = set()
        self.unlike: set[Expr] = set()
        self.meetings: list[dict[tuple[Expr, Expr], None]] = []
        self.required: list[Expr] = []
        self.bounds = ValueBounds(self.of)
        self._known: dict[Node, Extents] = {}
        self._told: dict[Expr, None] = {}
        self._born: dict[Node, tuple[Expr, ...]] = {}
        self._data: dict[Node, Node] = {}
        self._segments = 0

    def parts_that_meet(self, pairs: Iterable[tuple[Expr, Expr]], carried: Set[Expr]) -> set[Expr]:
        """The dimensions in those pairs of which something carried has one."""
        met = {extent for pair in pairs if not carried.isdisjoint(pair) for extent in pair}
        return {part for extent in met for part in self.broadcast.get(extent, (extent,))}

    @contextmanager
    def broadcasting(self, extents: Set[Expr]) -> Iterator[None]:
        """Extents that meet in the loop that is imported within, each of which may be 1."""
        before, self.unlike = self.unlike, self.unlike | extents
        try:
            yield
        finally:
            self.unlike = before

    def new_segment(self) -> int:
        """The number of a segment that nothing else of the model has."""
        self._segments += 1
        return self._segments - 1

    def stand_for(self, extents: Sequence[Expr], scalar: bool = False) -> Node:
        """A vector of int64, or one number if ``scalar``: a constant if all extents are numbers."""
        shape = () if scalar else (len(extents),)
        if not self.conditions:
            self._told |= dict.fromkeys(e for e in extents if isinstance(e, Binary))
        return self._recorded(Var("shape", tensor_type(shape, "int64")), _array(extents).reshape(shape))

    def of(self, node: Node) -> Extents | None:
        """What a node stands for, if that is known."""
        if isinstance(node, Constant):
            return np.asarray(node.value, object) if node.value.dtype.kind in "iub" else None
        return self._known.get(node)

    def whole(self, node: Node) -> Extents | None:
        """What a node stands for, if that is known, or the whole numbers that floats of a constant are."""
        if not isinstance(node, Constant) or node.value.dtype.kind != "f":
            return self.of(node)
        values = node.value
        if values.size > MAX_ELEMENTS or not np.all(np.abs(values) <= EXACT) or not np.all(values == np.trunc(values)):
            return None
        return _array([int(value) for value in values.ravel()]).reshape(values.shape)

    def elements(self, node: Node) -> list[int | Expr | None]:
        """The elements of a vector of a known length, None for those that only a run knows. Raises
        ``UnknownLengthError`` for one whose length is open."""
        known = self.of(node)
        if known is not None:
            return list(known.ravel())
        if isinstance(node, Call) and node.op.name == "concatenate" and node.args:
            return [element for part in node.args for element in self.elements(part)]
        kind = tensor_of(node)
        if kind.static_shape is None:
            raise UnknownLengthError(
                f"how many numbers an operand for extents or axes has must be known when the model is compiled, "
                f"found {kind}"
            )
        return [None] * math.prod(kind.static_shape)

    def born(self, values: Node, names: Sequence[str], meaning: str, finish: Callable[[Node], Node]) -> Sequence[Expr]:
        """The extents that the numbers of a vector become when a run has computed them. ``finish`` makes a node part of
        the model."""
        if values not in self._born:
            data = values if tensor_of(values).dtype is INT64 else cast(values, "int64")
            for condition in self.conditions:
                data = finish(where(condition, data, Constant(np.zeros(1, np.int64))))
            witness = finish(born_extents(data, names, meaning))
            self._born[values] = tensor_of(witness).shape
        return self._born[values]

    def fold(self, call: Call) -> Node | None:
        """A node that stands for the result of a call; None where that is not known."""
        kind = call.type
        evaluate = self._proving(call.op.name) or _TABLE.get(call.op.name)
        if evaluate is None or not any(a in self._known for a in call.args) or not isinstance(kind, TensorType):
            return None
        args = [self.whole(a) for a in call.args]
        shape = kind.static_shape
        known = [a for a in args if a is not None]
        if shape is None or len(known) < len(args) or max(a.size for a in known) > MAX_ELEMENTS:
            return None
        if any(tensor_of(a).dtype.is_float for a in (call, *call.args)) and call.op.name not in _OF_FLOATS:
            return None
        try:
            value = evaluate(call.attrs, known, kind)
            return None if value is None else self._recorded(call, np.asarray(value, object).reshape(shape))
        except ExpressionError:  # of numbers that no extent is as large as, which a run computes as they are
            return None

    def _proving(self, name: str) -> Evaluate | None:
        """The evaluation of an operator that asks what is known of its elements; None for other operators."""
        function = _PROVING.get(name)
        if function is None:
            return None

        def evaluate(attrs: Any, args: list[Extents], kind: TensorType) -> Any:
            each = _each(lambda a, b: function(as_index(a), as_index(b), self.facts(a, b), attrs))
            return each(attrs, args, kind)

        return evaluate

    def _simplified(self, extent: Any) -> Any:
        if not isinstance(extent, Expr):
            return extent
        simple = simplify(extent, self.facts(extent))
        return number if (number := const_int(simple)) is not None else simple

    def facts(self, *elements: Any) -> Facts:
        """The facts that no dimension is negative, nor an extent that a tensor of the model has, whatever its formula:
        that of a convolution is for images that are as large as the window; and what each run checks."""
        expressions = [e for e in elements if isinstance(e, Expr)]
        variables = {v for e in expressions for v in free_vars(e)}
        told = [e for e in self._told if not variables.isdisjoint(free_vars(e))]
        facts = _facts(*expressions, *told)
        for extent in told:
            facts = facts.with_condition(extent >= 0)
        for condition in self.required:
            if not variables.isdisjoint(free_vars(condition)):
                facts = facts.with_condition(condition)
        return facts

    def as_data(self, root: Node) -> tuple[Node, list[tuple[Node, Node]]]:
        """A finished graph in which calls compute what nodes stand for; and what has become of nodes for the first
        time, in an order of computation: the next graph has the same in place of them."""
        new: list[tuple[Node, Node]] = []
        for node in post_order(root, self._data.__contains__):
            if node in self._data:
                continue
            values = self._known.get(node)
            made = None if values is None else self._computed(values, tensor_of(node))
            if made is None:
                made = with_inputs(node, tuple(self._data[used] for used in inputs(node)))
            self._data[node] = made
            self._data.setdefault(made, made)
            new.append((node, made))
        return self._data[root], new

    def _computed(self, values: Extents, kind: TensorType) -> Node | None:
        numbers = [v for v in values.ravel() if not isinstance(v, bool)]
        if len(numbers) < values.size or not kind.dtype.is_data_int:
            return None
        shaped = extents_as_data(values, self.inputs)
        return shaped if kind.dtype is INT64 else cast(shaped, str(kind.dtype))

    def _recorded(self, node: Node, extents: Extents) -> Node:
        simple = [self._simplified(e) for e in extents.ravel()]
        if all(isinstance(e, (int, bool)) for e in simple):
            return Constant(np.asarray(simple, tensor_of(node).dtype.to_numpy()).reshape(extents.shape))
        self._known[node] = _array(simple).reshape(extents.shape)
        return node


def _facts(*extents: Expr) -> Facts:
    """The facts that no dimension is negative."""
    facts = NO_FACTS
    for var in dict.fromkeys(v for extent in extents for v in free_vars(extent)):
        facts = facts.with_condition(var >= 0)
    return facts


Evaluate = Callable[[Any, list[Extents], TensorType], Any]


def _each(function: Callable[[Any, Any], Any]) -> Evaluate:
    """An operator on two elements, broadcast; None for one element is None for all."""

    def evaluate(attrs: Any, args: list[Extents], kind: TensorType) -> Any:
        a, b = np.broadcast_arrays(*args)
        found = [function(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True)]
        return None if any(x is None for x in found) else _array(found)

    return evaluate


def _array(elements: Sequence[Any]) -> Extents:
    made = np.empty(len(elements), object)
    made[:] = elements
    return made


def _quotient(x: Expr, divisor: Expr, facts: Facts, attrs: Any) -> Any:
    """Division rounds towards 0, floor division down: the same where nothing is negative."""
    if (exact := quotient([x], [divisor])) is not None:
        return exact
    b = const_int(divisor)
    if b is None or b <= 0:
        return None
    if prove(x >= 0, facts):
        return x // b
    positive = maximum(x, ZERO) // b
    return positive if prove(x > -b, facts) else positive - maximum(-x, ZERO) // b


def _remainder(x: Expr, divisor: Expr, facts: Facts, attrs: Any) -> Any:
    """The remainder of an index has the sign of the divisor; C's has that of x."""
    b = const_int(divisor)
    return x % b if b is not None and b > 0 and (not attrs.fmod or prove(x >= 0, facts)) else None


def _equal(x: Expr, y: Expr, facts: Facts, attrs: Any) -> bool | None:
    if x is y:
        return True
    return False if prove(Compare("!=", x, y), facts) else None


def _least(a: Any, b: Any) -> Any:
    """The smaller one: a number that is larger than any extent is none."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and abs(x) > END:
            return y if x > 0 else x
    return minimum(as_index(a), as_index(b))


def _greatest(a: Any, b: Any) -> Any:
    """The larger one, likewise."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and abs(x) > END:
            return x if x > 0 else y
    return maximum(as_index(a), as_index(b))


def _where(attrs: Any, args: list[Extents], kind: TensorType) -> Any:
    condition, a, b = np.broadcast_arrays(*args)
    if not all(isinstance(c, (bool, int)) for c in condition.ravel()):
        return None
    chosen = zip(condition.ravel(), a.ravel(), b.ravel(), strict=True)
    return _array([x if c else y for c, x, y in chosen])


def _moved(name: str) -> Evaluate:
    """What moves elements without looking at them is done as for constants."""
    return table[name]


def _taken(attrs: Any, args: list[Extents], kind: TensorType) -> Any:
    """Elements at positions that are numbers."""
    return None if any(isinstance(index, Expr) for index in args[1].ravel()) else table["take"](attrs, args, kind)


def _one_hot(attrs: Any, args: list[Extents], kind: TensorType) -> Any:
    """As exporters write the repeats of one axis among others: 1, n, 1."""
    indices, off, on = args
    if any(isinstance(index, Expr) for index in indices.ravel()):
        return None
    positions = np.expand_dims(np.where(indices < 0, indices + attrs.depth, indices), attrs.axis)
    places = np.arange(attrs.depth).reshape([-1 if k == attrs.axis else 1 for k in range(positions.ndim)])
    flat = [on.item() if here else off.item() for here in (positions == places).ravel()]
    return _array(flat)


_PROVING: dict[str, Callable[[Expr, Expr, Facts, Any], Any]] = {"divide": _quotient, "mod": _remainder, "equal": _equal}
_TABLE: dict[str, Evaluate] = {
    **{name: _moved(name) for name in ("reshape", "squeeze", "expand_dims", "transpose", "broadcast_to", "tile")},
    **{name: _moved(name) for name in ("concatenate", "strided_slice")},
    "take": _taken,
    "cast": lambda attrs, args, kind: args[0],
    **{name: lambda attrs, args, kind: args[0] for name in ("identity", "floor", "ceil")},
    "add": _each(lambda a, b: a + b),
    "subtract": _each(lambda a, b: a - b),
    "multiply": _each(lambda a, b: a * b),
    "where": _where,
    "one_hot": _one_hot,
    "prod": lambda attrs, args, kind: np.prod(args[0], axis=attrs.axes),
    "minimum": _each(_least),
    "maximum": _each(_greatest),
    "negative": lambda attrs, args, kind: -args[0],
    "sum": lambda attrs, args, kind: np.sum(args[0], axis=attrs.axes),
}
_OF_FLOATS = frozenset(
    {"reshape", "squeeze", "expand_dims", "transpose", "broadcast_to", "tile", "concatenate", "strided_slice", "take"}
    | {"cast", "identity", "add", "subtract", "multiply", "minimum", "maximum", "negative", "floor", "ceil"}
)
"""What is the same of floats that are whole numbers: dimensions are, and are taken for no larger than ``EXACT``."""
