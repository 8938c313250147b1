"""The registry of operators: what an operator is called, takes and gives, and the rules by which calls of it are
planned. An entry an operator, made in its file.

Mutable: ``register_op`` adds to a table, under a lock, and what memory rules say of a call is kept as long as the call;
everything that is registered is immutable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from ...base.dataclass import dataclass
from ...base.errors import InternalError, LoopwrightError, ModelError, TypeInferenceError
from ...base.foreign_errors import naming_code
from ...base.op_names import add_op_name
from ...base.target import Target
from ...graph.node import Call, Node, OpBase, check_node
from ...graph.types import Type, TypeNode, folded
from ...ir.expr import Expr
from .attrs import Attrs
from .extent_birth import BirthRule, ExtentBirth
from .foreign_code import note
from .generic import where
from .layout_rule import LayoutCandidate, LayoutRule, ValueLayout
from .memory_view import MemoryRule, MemoryView
from .relations import ExtentsDiffer


class OpPattern(IntEnum):
    """How an operator's output elements depend on its inputs': what fusion goes by. Higher is more complex."""

    ELEMENTWISE = 0  # element i of the output needs element i of each input, which all have its shape
    BROADCAST = 1  # … after broadcasting
    INJECTIVE = 2  # each output element needs one element of each input, anywhere
    COMM_REDUCE = 3  # a reduction over axes
    OUT_ELEMENTWISE_FUSABLE = 4  # complex, but elementwise operators may follow in the same function
    TUPLE = 7
    OPAQUE = 8  # fused with nothing


SUPPORT_LEVELS = {
    1: "what a multilayer perceptron needs",
    2: "what convolutional networks need",
    3: "more mathematics, and what moves elements",
    4: "reductions and broadcasting",
    5: "images",
    10: "the rest",
}
"""How basic an operator is: a target that is brought up serves level 1 first."""

Relation: TypeAlias = Callable[[Sequence[Type], Any], Type]
"""From the types of the arguments and the attributes to the result's type; raises ``TypeInferenceError``."""

_views: WeakKeyDictionary[Call, MemoryView | None] = WeakKeyDictionary()
"""What the memory rules said of calls that there are."""

RowRule: TypeAlias = Callable[[Call], int | None]
"""The number of trailing axes that are a row of the first argument, where the call reads its rows one by one, wherever
they lie: what only moves rows then needs no copy. None if the call reads it in another way."""

ExtentRule: TypeAlias = Callable[[Call], Sequence[Expr]]
"""What a call asks of symbolic extents that its types do not say, checked when the values are known: index expressions
that must not be negative; ``0 - a % b`` says that b divides a."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an operator: its name, and what documentation says of it."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, eq=False)
class Op(OpBase):
    """An operator of graphs, as it is registered. ``variadic``: the last argument may be given any number of times, at
    least once; of an operator that declares none there may be any number, 0 too.

    A rule that is None says the least: calls take their arguments as they are, their elements have to be moved, they do
    not read rows, and they ask nothing of extents.
    """

    name: str
    description: str
    arguments: tuple[Argument, ...]
    attrs: type[Attrs] | None
    relation: Relation
    pattern: OpPattern
    variadic: bool = False
    support_level: int = 10
    layout_rule: LayoutRule | None = None
    memory_rule: MemoryRule | None = None
    row_rule: RowRule | None = None
    extent_rule: ExtentRule | None = None
    birth_rule: BirthRule | None = None

    @property
    def num_inputs(self) -> int | None:
        """How many arguments a call has; None for any number."""
        return None if self.variadic else len(self.arguments)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return get_op, (self.name,)

    def __call__(self, *args: Node, attrs: Attrs | None = None, origin: tuple[str, ...] = ()) -> Call:
        """A call, typed by the relation. Raises ``TypeInferenceError`` where arguments or attributes do not fit."""
        self._check_arguments(args, attrs)
        kinds = [a.type for a in args]
        try:
            attrs = None if attrs is None else attrs.fitted(kinds)
            result = self.infer(kinds, attrs)
        except TypeInferenceError as error:
            types = ", ".join(f"{n}: {a.type}" for n, a in zip(self._names(len(args)), args, strict=True))
            text = f"{self.name}({types}): {error}"
            about = error.about(text) if isinstance(error, ExtentsDiffer) else TypeInferenceError(text)
            raise about from error.__cause__
        return Call(self, args, attrs, result, origin)

    def infer(self, types: Sequence[Type], attrs: Attrs | None) -> Type:
        """The type of the result, whose extents are in normal form however the relation computes them. Raises
        ``TypeInferenceError`` where arguments do not fit together, and for a relation that fails, or gives something
        else."""
        relation = f"the type relation {where(self.relation)}"
        with naming_code(relation, TypeInferenceError):
            result = self.relation(types, attrs)
        if not isinstance(result, TypeNode):
            raise TypeInferenceError(f"{relation} should give a type, as tensor_type makes it, but it gives {result!r}")
        return folded(result)

    def layout_candidates(
        self, call: Call, given: Iterable[ValueLayout | None], target: Target
    ) -> tuple[LayoutCandidate, ...]:
        """The layout candidates of a call, each once, where one of its arguments can be had in these layouts. Raises
        ``ModelError`` for a rule that fails, as the methods of the other rules do."""
        rule = self.layout_rule
        if rule is None:
            return ()
        with naming_code(f"the layout rule of {self.name}", ModelError):
            return tuple(dict.fromkeys(candidate for layout in given for candidate in rule(call, layout, target)))

    def memory_view(self, call: Call) -> MemoryView | None:
        """Where the result of a call lies; None if its elements have to be moved. Fusion asks this of a call once for
        each call around it, so the answer is kept."""
        if self.memory_rule is None:
            return None
        if call not in _views:
            with naming_code(f"the memory rule of {self.name}", ModelError):
                _views[call] = self.memory_rule(call)
        return _views[call]

    def axes_of_rows(self, call: Call) -> int | None:
        """How many trailing axes of its first argument a call reads as rows; None if it reads no rows."""
        if self.row_rule is None:
            return None
        with naming_code(f"the row rule of {self.name}", ModelError):
            return self.row_rule(call)

    def asked_of_extents(self, call: Call) -> tuple[Expr, ...]:
        """The index expressions that must not be negative for a call."""
        if self.extent_rule is None:
            return ()
        with naming_code(f"the extent rule of {self.name}", ModelError):
            return tuple(self.extent_rule(call))

    def birth(self, call: Call) -> ExtentBirth | None:
        """What the elements of a call's first argument become; None for most operators."""
        if self.birth_rule is None:
            return None
        with naming_code(f"the birth rule of {self.name}", ModelError):
            return self.birth_rule(call)

    def _names(self, count: int) -> list[str]:
        names = [a.name for a in self.arguments]
        last = names[-1] if names else "argument"
        return names + [f"{last}{k}" for k in range(1, count - len(names) + 1)] if self.variadic else names

    def _check_arguments(self, args: Sequence[Node], attrs: Attrs | None) -> None:
        least = len(self.arguments)
        if len(args) < least or (len(args) > least and not self.variadic):
            expected = ", ".join(a.name for a in self.arguments)
            raise TypeInferenceError(f"{self.name} takes the arguments {expected}, found {len(args)}")
        for name, arg in zip(self._names(len(args)), args, strict=True):
            try:
                check_node(arg)
            except TypeInferenceError as error:
                raise TypeInferenceError(f"{self.name}: {name}: {error}") from None
        if self.attrs is None and attrs is not None:
            raise TypeInferenceError(f"{self.name} has no attributes, found {attrs}")
        if self.attrs is not None and type(attrs) is not self.attrs:
            raise TypeInferenceError(f"{self.name} needs its attributes as {self.attrs.__name__}, found {attrs!r}")


_ops: dict[str, Op] = {}
_lock = threading.Lock()


def register_op(
    name: str,
    description: str,
    arguments: Sequence[tuple[str, str]],
    relation: Relation,
    pattern: OpPattern,
    attrs: type[Attrs] | None = None,
    variadic: bool = False,
    support_level: int = 10,
    *,
    layout_rule: LayoutRule | None = None,
    memory_rule: MemoryRule | None = None,
    row_rule: RowRule | None = None,
    extent_rule: ExtentRule | None = None,
    birth_rule: BirthRule | None = None,
) -> Op:
    """Add an operator; gives its handle, which makes calls. A name that is taken is a ``LoopwrightError``.

    ``layout_rule`` says how calls go along with layouts, ``memory_rule`` where their results lie, ``row_rule`` whether
    they read rows of their first argument, ``extent_rule`` what they ask of extents that are open, and ``birth_rule``
    which extents the numbers become that they are given.
    """
    if support_level not in range(1, 11):
        raise LoopwrightError(f"operator {name!r}: support levels are 1, basic, to 10, found {support_level!r}")
    op = Op(
        name,
        description,
        tuple(Argument(*a) for a in arguments),
        attrs,
        relation,
        pattern,
        variadic,
        support_level,
        layout_rule,
        memory_rule,
        row_rule,
        extent_rule,
        birth_rule,
    )
    with _lock:
        if name in _ops:
            raise LoopwrightError(f"operator {name!r} is registered already")
        _ops[name] = op
        add_op_name(name)
    note(relation)
    return op


def op_of(call: Call) -> Op:
    """The operator that a call is of."""
    if not isinstance(call.op, Op):
        raise InternalError(f"{call.op!r} is called, which is no operator")
    return call.op


def get_op(name: str) -> Op:
    """The operator of that name. Raises ``LoopwrightError`` if there is none."""
    found = _ops.get(name)
    if found is None:
        raise LoopwrightError(f"there is no operator {name!r}")
    return found


def all_ops() -> tuple[Op, ...]:
    """All operators, by name."""
    return tuple(_ops[name] for name in sorted(_ops))
