"""A survey of a model that is refused: it is imported as far as it goes, and what stops it is noted.

What could not be converted is replaced by stand-ins of the types that onnx infers, so that what follows is looked at
too. What fails only since a stand-in tells less than the value would is no problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace

from onnx import NodeProto, TypeProto

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..base.model_problem import ModelProblem, ProblemKind
from ..graph.node import Node, Var
from ..graph.types import TensorType
from ..graph.visit import post_order
from ..ir import expr
from ..ir.contents import free_vars
from .onnx_node import name_and_operator
from .refusal_causes import ConsequentError, UnknownValueError, UnsupportedTypeError
from .tensors import Symbols, value_type

Reading = tuple[Node, Iterable[object]]
"""A node that another reads, and the extents that it stands for, if it stands for such."""

_KINDS = {UnsupportedTypeError: ProblemKind.TYPE, UnknownValueError: ProblemKind.VALUE}


@dataclass(slots=True, eq=False)
class Survey:
    """What stops a model, as far as it has been imported. Mutable: notes problems and stand-ins.

    While it is ``paused``, the first error is raised, as without a survey. ``refusals`` counts also what is noted
    already, as of nodes that are converted once more.
    """

    types: Mapping[str, TypeProto] = field(default_factory=dict)
    symbols: Symbols = field(default_factory=dict)
    paused: bool = False
    refusals: int = 0
    problems: list[ModelProblem] = field(default_factory=list)
    _stand_ins: set[Node] = field(default_factory=set)
    _unknown_extents: set[expr.Var] = field(default_factory=set)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Have errors raised inside, not noted."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def attempt(self, check: Callable[[], object]) -> bool:
        """Whether ``check`` raises no ``ModelError``, which is noted."""
        try:
            check()
        except ModelError as error:
            self.note(error)
            return False
        return True

    def note(self, error: ModelError, node: NodeProto | None = None, of: Iterable[Reading] = ()) -> None:
        """Note what an error says, of a node that reads these values; but not what only follows from something else."""
        self.refusals += 1
        if isinstance(error, ConsequentError):
            return
        kind = _KINDS.get(type(error), ProblemKind.NODE)
        if not error.problems and any(self._tells_less(kind, *reading) for reading in of):
            return
        problem = ModelProblem(kind, str(error))
        if node is not None:
            name, operator = name_and_operator(node)
            problem = replace(problem, node=name, operator=operator)
        self.add(error.problems or (problem,))

    def add(self, problems: Iterable[ModelProblem]) -> None:
        """Note problems, but for those of a node that is noted already, and those in the same words."""
        nodes = {(problem.node, problem.operator) for problem in self.problems if problem.node}
        messages = {problem.message for problem in self.problems if problem.kind is not ProblemKind.OPERATOR}
        self.problems += (p for p in problems if (p.node, p.operator) not in nodes and p.message not in messages)

    def stand_in(self, name: str, kind: TypeProto) -> Var | None:
        """What stands for a value that could not be converted; None for one of a type that says too little."""
        known = {var for extent in self.symbols.values() for var in free_vars(extent)}
        try:
            made = Var(name, value_type(kind, f"value {name!r}", self.symbols))
        except ModelError:
            return None
        self._stand_ins.add(made)
        self._unknown_extents |= set(_dimensions(made)) - known
        return made

    def is_stand_in(self, node: Node) -> bool:
        """Whether a node stands for what could not be converted."""
        return node in self._stand_ins

    def _tells_less(self, kind: ProblemKind, node: Node, extents: Iterable[object]) -> bool:
        """Whether a value comes of a stand-in, and the problem could be that this is no more than one."""
        unknown = {var for extent in extents if isinstance(extent, expr.Expr) for var in free_vars(extent)}
        sources = post_order(node)
        unknown.update(var for source in sources for var in _dimensions(source))
        if unknown & self._unknown_extents:
            return True
        return kind is ProblemKind.VALUE and any(source in self._stand_ins for source in sources)


def _dimensions(node: Node) -> Iterator[expr.Var]:
    extents = node.type.shape if isinstance(node.type, TensorType) else ()
    return (var for extent in extents for var in free_vars(extent))
