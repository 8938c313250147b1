"""How operators go along with layouts: the layout rules that operators are registered with, and the usual ones.

A rule proposes the layout candidates of a call: how it can be made with its arguments and its result in other layouts.
The layout planner asks it. An operator without one needs all its arguments as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from ...base.aligned import aligned
from ...base.dataclass import dataclass
from ...base.dtype import dtype
from ...base.errors import LoopwrightError
from ...base.mapped import give_back
from ...base.target import Target
from ...graph.deferred_constant import DeferredConstant
from ...graph.layout import Layout
from ...graph.node import Call, Constant, Node
from ...graph.types import TensorType, Type, tensor_type
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr

if TYPE_CHECKING:
    from .registry import Op  # which has a rule that gives uses


class Filling(Enum):
    """What stands in blocks beyond the end of an axis that they do not divide.

    ``ANY``: no promised value. Operators that compute each element by itself may go on in it; nothing else reads it.
    A constant's last elements are repeated, so that nothing is computed of them which is not computed of others.
    ``ZEROS``: what an operator asks for that sums over the axis, whose weights may be any there.
    """

    ANY = "any"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True)
class ValueLayout:
    """The layout in which a value is held: its axes are those of ``primal``, in order, but in memory it is of layout
    ``layout``. Where there is a ``filling``, axes in blocks go on to whole blocks."""

    primal: Layout
    layout: Layout
    filling: Filling | None = None

    def __str__(self) -> str:
        return str(self.layout) if self.filling is None else f"{self.layout} filled with {self.filling.value}"

    def moved_axis(self, axis: int) -> int | None:
        """Where an axis stands in memory; None if it is cut into blocks."""
        name = self.primal.axes[axis].name
        return None if self.layout.factor(name) > 1 else self.layout.position(name)

    def extents(self, kind: TensorType) -> dict[str, Expr]:
        """The extents of a value by the names of its axes; a value of lower rank has leading axes of 1."""
        shape = (*(ONE,) * (self.primal.ndim - kind.ndim), *kind.shape)
        return dict(zip(self.primal.names, shape, strict=True))

    def suits(self, kind: Type) -> bool:
        """Whether a value of that type can be held so. An axis that is filled up is not one that is spread."""
        if not isinstance(kind, TensorType) or kind.ndim > self.primal.ndim:
            return False
        extents = self.extents(kind)
        if self.filling is None:
            return self.layout.divides(extents)
        blocked = [const_int(extents[name]) for name in self.primal.names if self.layout.factor(name) > 1]
        return all(extent is not None and extent > 1 for extent in blocked)

    def type_of(self, kind: TensorType) -> TensorType:
        """The type that a value has when it is held so."""
        extents = self.extents(kind)
        whole = extents if self.filling is None else self.layout.filled(extents)
        return TensorType(self.layout.shape(whole), kind.dtype)


@dataclass(frozen=True, slots=True)
class Packed:
    """How a constant is passed: in the form that ``make`` gives it, once, when the model is compiled.

    ``make`` is a value: constants are packed once for all that are equal to it. ``type`` is that of what it gives.
    """

    make: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    type: TensorType

    def __str__(self) -> str:
        return str(self.make)

    def packed(self, constant: Constant) -> DeferredConstant:
        """The constant in that form, which is made when it is needed: its value raises ``LoopwrightError`` if the rule
        that asks for it is wrong about the type."""

        def make() -> npt.NDArray[Any]:
            made = aligned(self.make(constant.value))
            give_back(constant.value)
            kind = tensor_type(made.shape, dtype(made.dtype))
            if kind is not self.type:
                raise LoopwrightError(f"{self.make} should pack {constant.type} to {self.type}, but it gives {kind}")
            return made

        return DeferredConstant(make, self.type, constant.name)


@dataclass(frozen=True, slots=True)
class LayoutCandidate:
    """A call in other layouts, which the layout planner may choose: the layout of each argument (None: as it is), the
    attributes that the operator then has, and the layout of its result. ``op`` is another operator that is called
    instead, such as one for packed weights. Its arguments are those of the call, unless ``sources`` says which of these
    each is: one may be needed in two layouts. Where it ``is_argument``, nothing is called: the result is the only
    argument as it lies in memory."""

    arguments: tuple[ValueLayout | Packed | None, ...]
    attrs: Any
    result: ValueLayout | None
    op: Op | None = None
    sources: tuple[int, ...] | None = None
    is_argument: bool = False

    def operands(self, call: Call) -> list[tuple[Node, ValueLayout | Packed | None]]:
        """What is passed, and in which layout."""
        args = call.args if self.sources is None else [call.args[number] for number in self.sources]
        return list(zip(args, self.arguments, strict=True))


LayoutRule: TypeAlias = Callable[[Call, ValueLayout | None, Target], Iterable[LayoutCandidate]]
"""The layout candidates of a call where one of its arguments is ``given`` in a layout; for None, those that the
operator proposes by itself. What does not suit the types of arguments or result need not be left out. No rule but
``same_layout`` is asked about a layout with a ``filling``, though each may propose one. A rule goes by the types of the
call's arguments, by which of them are constants, and by its attributes: calls that are equal in these are asked about
once."""


def same_layout(call: Call, given: ValueLayout | None, target: Target) -> Iterable[LayoutCandidate]:
    """The rule of elementwise operators, also broadcasting ones: all are held alike. An argument of one element is as
    it is; one that is spread along an axis in blocks cannot be held so."""
    result = call.type
    if given is None or not isinstance(result, TensorType) or result.ndim != given.primal.ndim:
        return
    arguments: list[ValueLayout | Packed | None] = []
    for argument in call.args:
        kind = argument.type
        if not isinstance(kind, TensorType):
            return
        single = all(extent is ONE for extent in kind.shape)
        arguments.append(None if single else given)
    yield LayoutCandidate(tuple(arguments), call.attrs, given)


def follow_axes(remap: Callable[[Any, ValueLayout], Any | None]) -> LayoutRule:
    """The rule of operators whose attributes name axes, and whose result has the axes of the arguments: ``remap`` gives
    the attributes for arguments held in a layout, None if there are none such."""

    def rule(call: Call, given: ValueLayout | None, target: Target) -> Iterable[LayoutCandidate]:
        if given is None or any(
            not isinstance(a.type, TensorType) or a.type.ndim != given.primal.ndim for a in call.args
        ):
            return
        attrs = remap(call.attrs, given)
        if attrs is not None:
            yield LayoutCandidate((given,) * len(call.args), attrs, given)

    return rule


def follow_layout(primal: Callable[[Call], Layout]) -> LayoutRule:
    """The rule of operators with one argument whose attribute ``layout`` is that of argument and result, and may have
    blocks of C; ``primal`` gives what it means by default."""

    def rule(call: Call, given: ValueLayout | None, target: Target) -> Iterable[LayoutCandidate]:
        if given is None or given.primal is not primal(call) or call.attrs.layout not in ("", str(given.primal)):
            return
        # Where samples and channels have changed places, those of a convolution are blocks of N.
        if all(axis.block is None or axis.name == "C" for axis in given.layout.axes):
            yield LayoutCandidate((given,), replace(call.attrs, layout=str(given.layout)), given)

    return rule


def moved_axes(axes: Sequence[int], given: ValueLayout) -> tuple[int, ...] | None:
    """Where axes stand in memory, ascending; None if one is cut into blocks."""
    moved = [given.moved_axis(axis) for axis in axes]
    found = [axis for axis in moved if axis is not None]
    return tuple(sorted(found)) if len(found) == len(moved) else None
