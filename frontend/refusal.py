"""The error of a refused model: what stops it, grouped by kind, in few lines however much it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from ..base.errors import ModelError
from ..base.model_problem import ModelProblem, ProblemKind

MAX_LINES = 20
MAX_NODES_SHOWN = 10
FEW = 3
"""Nodes that are named where a reason follows."""

_HEADERS = {
    ProblemKind.OPERATOR: ("the model uses {} that cannot be converted", "an operator", "operators"),
    ProblemKind.TYPE: ("{} not supported", "a type is", "types are"),
    ProblemKind.VALUE: ("{} have to be known when the model is compiled", "a value would", "values would"),
    ProblemKind.NODE: ("{} what cannot be converted", "a node asks for", "nodes ask for"),
}
"""What a section begins with: a sentence, and its words for one and for several."""


def refusal(problems: Sequence[ModelProblem]) -> ModelError:
    """The error that lists the problems, of which there is at least one."""
    cures = _cures(problems)
    if len(problems) == 1 and problems[0].kind is not ProblemKind.OPERATOR:
        return ModelError("\n".join([problems[0].message, *cures]), problems)
    groups = {kind: [p for p in problems if p.kind is kind] for kind in ProblemKind}
    groups = {kind: own for kind, own in groups.items() if own}
    room = (MAX_LINES - len(cures)) // len(groups) - 2  # one for the header, one for what is left out
    sections = [line for kind, own in groups.items() for line in _section(kind, own, room)]
    return ModelError("\n".join([*sections, *cures]), problems)


def _section(kind: ProblemKind, problems: Sequence[ModelProblem], room: int) -> list[str]:
    lines = _lines(kind, problems)
    count = len(lines) if kind is ProblemKind.OPERATOR else len(problems)
    sentence, one, many = _HEADERS[kind]
    header = sentence.format(one if count == 1 else f"{count} {many}")
    more = [f"  and {len(lines) - room} more"] if len(lines) > room else []
    return [f"{header}:", *(f"  {line}" for line in lines[:room]), *more]


def _lines(kind: ProblemKind, problems: Sequence[ModelProblem]) -> list[str]:
    """A line for each group of problems that differ in their nodes and in the names that they quote only."""
    if kind is ProblemKind.OPERATOR:
        grouped = _grouped([(p.message, p) for p in problems])
        return sorted(f"{message}: {_nodes(own, MAX_NODES_SHOWN)}" for message, own in grouped.items())
    grouped = _grouped([(_QUOTED.sub("''", p.message), p) for p in problems])
    return [own[0].message if len(own) == 1 else f"{_nodes(own, FEW)} {_reason(own[0])}" for own in grouped.values()]


_QUOTED = re.compile(r"'[^']*'")


def _grouped(pairs: Sequence[tuple[str, ModelProblem]]) -> dict[str, list[ModelProblem]]:
    groups: dict[str, list[ModelProblem]] = {}
    for key, problem in pairs:
        groups.setdefault(key, []).append(problem)
    return groups


def _reason(problem: ModelProblem) -> str:
    """The message without the node that it begins with."""
    return problem.message.removeprefix(f"node {problem.node!r} ")


def _nodes(problems: Sequence[ModelProblem], most: int) -> str:
    names = [problem.node for problem in problems]
    shown = ", ".join(map(repr, names[:most]))
    more = len(names) - most
    return f"node{'s' if len(names) > 1 else ''} {shown}{f' and {more} more' if more > 0 else ''}"


def _cures(problems: Sequence[ModelProblem]) -> list[str]:
    """A line that says which shapes help, and how far."""
    cured = [problem for problem in problems if problem.shapes]
    if not cured:
        return []
    text = f"shapes={shapes_text(cured[0].shapes)}"
    if len(cured) == len(problems):
        return [f"give {text}, and {'it is' if len(cured) == 1 else 'all are'} known"]
    return [f"give {text}, and this is known for {_nodes(cured, FEW)}"]


def shapes_text(shapes: Mapping[str, tuple[object, ...]]) -> str:
    """Shapes as a caller writes them: ``{"x": (None, 3, 48, None)}``."""
    return f"{{{', '.join(f'{json.dumps(name, ensure_ascii=False)}: {shape!r}' for name, shape in shapes.items())}}}"
