"""``nn.for_loop``, ``nn.while_loop`` and ``nn.scan``: a body that is computed again and again, of what it gave before.

One operator serves them, of no table, as ``extern``: ``definition/bodies.py`` says why.

    arguments: [limit] [condition] carried… sliced… captured…          of the body: number, carried…, slice…, captured…
    results:   carried…, stacked…, count                               of the body: [condition] carried…, row…

Before each iteration the loop ends if ``limit`` or ``trips`` are reached, or the condition does not hold: first that of
the arguments, then what the body gave. ``number`` counts iterations from 0. A slice is row ``number`` of what is
sliced; a row becomes row ``number`` of what is stacked, where rows that no iteration reached are not written.
``count`` is the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self, TypeVar

from ...base.dataclass import dataclass
from ...base.dtype import INT64
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Function, Node, Tuple, TupleGet, Var
from ...graph.types import TensorType, TupleType, Type
from ...ir.expr import Expr
from ..definition.attrs import attr
from ..definition.bodies import BodyAttrs, condition_argument, count_argument, results_of
from ..definition.extent_formulas import extent_of_formula
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern
from ..definition.relations import same_extent, tensor_argument

GROUP = OpGroup.CONTROL_FLOW
T = TypeVar("T")


@dataclass(frozen=True)
class LoopAttrs(BodyAttrs):
    """What each iteration computes, and which of its parameters and results are what; see the head of the file."""

    body: Function
    limited: bool = attr("whether the first argument is the most iterations, one int64", default=False)
    conditional: bool = attr("whether the next argument is a condition, and the body gives one", default=False)
    carried: int = attr("how many values each iteration hands on to the next", default=0)
    sliced: tuple[bool, ...] = attr("of each value that is sliced: whether from its last row on", default=())
    stacked: tuple[bool, ...] = attr("of each value that is stacked: whether from its last row on", default=())
    trips: int | str | None = attr("the most iterations, as a formula over axes of arguments, x1_0", default=None)

    @property
    def first(self) -> int:
        """The number of the first argument that is carried."""
        return int(self.limited) + int(self.conditional)

    def fitted(self, types: Sequence[Type]) -> Self:
        """A body for arguments of these types."""
        carried, sliced, captured = self.parts_of(types)
        slices = (_row(kind, f"sliced value {k}") for k, kind in enumerate(sliced))
        return self.with_types([[TensorType((), INT64), *carried, *slices, *captured]])

    def parts_of(self, arguments: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """The carried, the sliced and the captured ones of all arguments, or of what there is for each of them."""
        sliced = self.first + self.carried
        captured = sliced + len(self.sliced)
        return arguments[self.first : sliced], arguments[sliced:captured], arguments[captured:]


def _row(kind: Type, name: str) -> TensorType:
    tensor = tensor_argument(kind, name)
    if not tensor.shape:
        raise TypeInferenceError(f"{name} should have rows, along its first axis, found a {kind}")
    return TensorType(tensor.shape[1:], tensor.dtype)


def _relation(types: Sequence[Type], attrs: LoopAttrs) -> Type:
    if attrs.limited:
        count_argument(types[0], "the limit")
    if attrs.conditional:
        condition_argument(types[attrs.first - 1], "the condition")
    attrs = attrs.fitted(types)
    carried, sliced, _ = attrs.parts_of(types)
    trips = _trips(types, attrs, sliced)
    results = list(results_of(attrs.body))
    if attrs.conditional:
        condition_argument(results.pop(0), "the condition that the body gives")
    _check_carried(carried, results)
    stacked = [_stacked(trips, row) for row in results[attrs.carried :]]
    if len(stacked) != len(attrs.stacked):
        raise TypeInferenceError(f"the body gives {len(stacked)} rows, {len(attrs.stacked)} are stacked")
    return TupleType((*results[: attrs.carried], *stacked, TensorType((), INT64)))


def _trips(types: Sequence[Type], attrs: LoopAttrs, sliced: Sequence[Type]) -> Expr | None:
    """The most iterations, where that is known when the loop begins, which is also the number of rows of what is
    sliced."""
    if attrs.trips is None:
        if sliced:
            raise TypeInferenceError("a loop over rows has as many iterations at the most, found no trips")
        if not attrs.limited and not attrs.conditional:
            raise TypeInferenceError("nothing ends the loop: give it trips, a limit or a condition")
        return None
    trips = extent_of_formula(attrs.trips, types)
    for number, kind in enumerate(sliced):
        rows = tensor_argument(kind, f"sliced value {number}").shape[0]
        same_extent(trips, rows, f"sliced value {number} has {rows} rows, the loop has {trips} iterations")
    return trips


def _check_carried(before: Sequence[Type], after: Sequence[Type]) -> None:
    if len(after) < len(before):
        raise TypeInferenceError(f"the body is given {len(before)} carried values, and hands on {len(after)}")
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new:
            raise TypeInferenceError(
                f"carried value {number} is a {old}, and a {new} behind an iteration: its type has to stay, since its "
                "memory is taken before the loop"
            )


def _stacked(trips: Expr | None, row: TensorType) -> TensorType:
    if trips is None:
        raise TypeInferenceError("rows are stacked of loops whose most iterations are known before, found no trips")
    return TensorType((trips, *row.shape), row.dtype)


LOOP = Op(
    "loop",
    "a body that is computed again and again, of what it gave before",
    (),
    LoopAttrs,
    _relation,
    OpPattern.OPAQUE,
    variadic=True,
)


def loop_call(
    attrs: LoopAttrs,
    limit: Node | None,
    condition: Node | None,
    carried: Sequence[Node],
    sliced: Sequence[Node],
    captured: Sequence[Node],
) -> tuple[Node, ...]:
    """The results of a loop. ``limit`` and ``condition`` are there if ``attrs`` say so."""
    first = (node for node in (limit, condition) if node is not None)
    call: Call = LOOP(*first, *carried, *sliced, *captured, attrs=attrs)
    return tuple(TupleGet(call, k) for k in range(len(results_of(attrs.body)) - attrs.conditional + 1))


def with_unused(function: Function, nodes: Sequence[Node]) -> Function:
    """The function with further parameters that it does not read, for arguments that only formulas are over."""
    unused = (Var(f"unused{k}", node.type) for k, node in enumerate(nodes))
    return replace(function, params=(*function.params, *unused))


def as_result(nodes: Sequence[Node]) -> Node:
    """One node, or several as a tuple."""
    return nodes[0] if len(nodes) == 1 else Tuple(tuple(nodes))
