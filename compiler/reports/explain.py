"""Explanations: for each call of a model every implementation that it might have, and why it has the one it has.

Of a graph, by the choices that compilation would make: functions are scheduled, and not compiled. Of a compiled model,
by those it carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...artifact.choice import CandidateReport, Choice
from ...artifact.dimension_bounds import DimensionBounds
from ...artifact.model import CompiledModel
from ...base.brief import BriefRepr, listed
from ...base.dataclass import dataclass
from ...base.target import brief_target
from ...graph.node import Call, Function, Var
from ...graph.structural import graph_hash
from ...graph.types import leaf_types
from ..layout.expected_extents import expected_by_name
from ..model.lower_function import schedule_function
from ..model.op_call import packed_choice
from ..model.parts import take_apart
from ..model.units import Unit
from ..passes.graph_passes import run_graph_passes
from ..settings import CompileSettings
from ..symbols import bounds_of, dimension_names
from .explained_rewrites import ExplainedRewrite, explained_rewrites


@dataclass(frozen=True, slots=True, repr=False)
class ExplainedFunction(BriefRepr):
    """A fused function: its choices, how many steps of the model call it, and the imported nodes that these are for."""

    name: str
    steps: int
    origin: tuple[str, ...]
    choices: tuple[Choice, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        choices = [choice.to_json() for choice in self.choices]
        return {"name": self.name, "steps": self.steps, "origin": list(self.origin), "choices": choices}


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The functions of a model in order of first use; ``print`` it. Where nothing is fused yet, a call by itself.
    ``rewrites`` are those that tuning records name; a library does not tell of them."""

    target: str
    functions: tuple[ExplainedFunction, ...]
    bounds: tuple[DimensionBounds, ...] = ()
    expected: Mapping[str, int] = field(default_factory=dict)
    rewrites: tuple[ExplainedRewrite, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All as JSON values: ``{"target": …, "functions": [{"name": …, "choices": [{"call": …, "candidates": […], …},
        …]}, …]}``, and of dimensions that are open ``bounds``, if there are any, and what is ``expected``;
        ``rewrites`` that tuning records name, if there are any."""
        bounds = {"bounds": [asdict(each) for each in self.bounds]} if self.bounds else {}
        expected = {"expected": dict(self.expected)} if self.expected else {}
        rewrites = {"rewrites": [each.to_json() for each in self.rewrites]} if self.rewrites else {}
        return {
            "target": self.target,
            **bounds,
            **expected,
            **rewrites,
            "functions": [function.to_json() for function in self.functions],
        }

    def _repr_html_(self) -> str:
        from .explain_html import explanation_html

        return explanation_html(self)

    def __repr__(self) -> str:
        return f"<Explanation of {listed(function.name for function in self.functions)}>"

    def __str__(self) -> str:
        lines = (line for function in self.functions for line in _function_lines(function))
        numbers = ", ".join(f"{name} = {number}" for name, number in self.expected.items())
        expected = [f"layouts are planned for {numbers}; expect= gives other numbers"] if numbers else []
        return "\n".join(
            [f"for {brief_target(self.target)}", *map(str, self.bounds), *expected, *map(str, self.rewrites), *lines]
        )


def _function_lines(function: ExplainedFunction) -> Iterator[str]:
    count = f", called {function.steps} times" if function.steps > 1 else ""
    origin = f", for {', '.join(function.origin)}" if function.origin else ""
    yield f"{function.name}{count}{origin}"
    if not function.choices:
        yield "    a copy"
    for number, choice in enumerate(function.choices):
        priority = {c.implementation: c.plevel for c in choice.candidates}
        if choice.kernel == 0:
            yield f"    {choice.call}"
        yield f"      → {choice.implementation} ({priority[choice.implementation]}): {choice.reason}"
        following = function.choices[number + 1 : number + 2]
        if not following or following[0].kernel == 0:
            yield from (f"        {line}" for line in _candidate_lines(choice.candidates))
            yield from (f"        {line}" for note in choice.notes for line in note.splitlines())


def _candidate_lines(candidates: tuple[CandidateReport, ...]) -> Iterator[str]:
    """A line a candidate; none where the choice has said all, as there is one that always serves."""
    if len(candidates) == 1 and not candidates[0].clauses and candidates[0].recorded is None:
        return
    wide = max(len(c.implementation) for c in candidates)
    for c in candidates:
        clauses = f" ({'; '.join(map(str, c.clauses))})" if c.clauses else ""
        cost = f", recorded {c.recorded}" if c.recorded is not None else ""
        why = f": {c.refused.splitlines()[0]}" if c.refused is not None else ""
        yield f"{c.implementation:{wide}} {c.plevel:3} {c.verdict}{why}{clauses}{cost}"


def explain_graph(function: Function, settings: CompileSettings) -> Explanation:
    """What compilation would choose for a graph function. Raises what that does where no implementation is valid."""
    graph = run_graph_passes(function, settings, _zeros)
    rewrites: tuple[ExplainedRewrite, ...] = ()
    if settings.layouts == "plan" and len(settings.records):
        rewrites = explained_rewrites(run_graph_passes(function, replace(settings, layouts="keep"), _zeros), settings)
    alike: dict[str, list[Unit]] = {}
    for unit in take_apart(graph).kernels():
        alike.setdefault(graph_hash(unit.function), []).append(unit)
    functions = []
    for units in alike.values():
        choices = _choices(units[0].function, settings)
        origin = tuple(dict.fromkeys(name for unit in units for name in unit.origin))
        functions.append(ExplainedFunction(units[0].function.name, len(units), origin, choices))
    names = dimension_names(graph.params)
    expected = expected_by_name(graph, settings, names)
    return Explanation(str(settings.target), tuple(functions), bounds_of(names), expected, rewrites)


def _choices(function: Function, settings: CompileSettings) -> tuple[Choice, ...]:
    if (packed := packed_choice(function)) is not None:
        return (packed,)
    return schedule_function(function, settings).choices


def _zeros(constants: Function) -> list[npt.NDArray[Any]]:
    """Values for what depends on constants alone: a choice goes by types, so that nothing need be computed."""
    return [np.zeros(kind.static_shape or (), kind.dtype.to_numpy()) for kind in leaf_types(constants.body.type)]


def explain_call(call: Call, settings: CompileSettings) -> Explanation:
    """What would be chosen for a call in a function of its own."""
    params = tuple(Var(f"p{number}", argument.type) for number, argument in enumerate(call.args))
    choices = _choices(Function(params, replace(call, args=params)), settings)
    return Explanation(str(settings.target), (ExplainedFunction(call.op.name, 1, call.origin, choices),))


def explain_model(model: CompiledModel) -> Explanation:
    """What was chosen when a model was compiled."""
    steps: dict[str, int] = {}
    origin: dict[str, dict[str, None]] = {}
    for step in model.steps:
        symbol = step.symbol
        steps[symbol] = steps.get(symbol, 0) + 1
        origin.setdefault(symbol, {}).update(dict.fromkeys(step.origin))
    functions = (
        ExplainedFunction(f.name, steps.get(f.symbol, 1), tuple(origin.get(f.symbol, ())), f.choices)
        for f in model.functions
    )
    return Explanation(str(model.target), tuple(functions), model.bounds, model.expected)
