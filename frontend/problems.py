"""All that stops a model: found when its import has failed, by going on behind the first error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from onnx import ModelProto

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..base.model_problem import ModelProblem
from ..graph.node import Node, tensor_of
from ..graph.types import GivenShape
from ..ir.constants import const_int
from .cures import with_cures
from .inferred_types import inferred_types
from .model_inputs import ModelInputs, Shapes, fed_inputs, model_inputs
from .refusal import refusal
from .support import missing_operators
from .survey import Survey
from .type_checks import type_checks


@dataclass(frozen=True, slots=True, eq=False)
class ModelSource:
    """A model that has been read: ``folder`` is where its external data is, ``opsets`` its operator sets by domain."""

    proto: ModelProto
    folder: Path | None
    opsets: Mapping[str, int]


SurveyNodes: TypeAlias = Callable[[ModelSource, ModelInputs, Survey], None]
"""Notes what stops the nodes of a model."""


def explained(error: ModelError, source: ModelSource, shapes: object, survey_nodes: SurveyNodes) -> ModelError:
    """The error of a model whose import ended with ``error``: it lists all problems, and shapes that help. Where the
    shapes that are given are themselves at fault, or nothing more is found, it is the same error."""
    fed = fed_inputs(source.proto.graph)
    if shapes is not None and (not isinstance(shapes, Mapping) or shapes.keys() - {i.name for i in fed}):
        return error
    given: Shapes = shapes or {}
    problems = _problems_of(source, given, survey_nodes)
    if not problems:
        return error

    def left(more: Mapping[str, GivenShape]) -> list[ModelProblem]:
        return _problems_of(source, {**given, **more}, survey_nodes)

    return refusal(with_cures(problems, source.proto.graph, given, left))


def _problems_of(source: ModelSource, shapes: Shapes, survey_nodes: SurveyNodes) -> list[ModelProblem]:
    """What stops a model for these shapes, in the order: operators, inputs and weights, nodes."""
    survey = Survey()
    survey.add(missing_operators(source.proto))
    graph = source.proto.graph
    for check in type_checks(graph):
        survey.attempt(check)
    fed = fed_inputs(graph)
    taken = [i for i in fed if survey.attempt(partial(model_inputs, [i], _only(shapes, [i.name])))]
    try:
        given = model_inputs(taken, _only(shapes, [i.name for i in taken]))
    except ModelError as error:  # the inputs contradict each other
        survey.note(error)
        return survey.problems
    survey.types = inferred_types(source.proto, _known_shapes(given))
    survey.symbols = dict(given.symbols)
    survey_nodes(source, given, survey)
    return survey.problems


def _only(shapes: Shapes, names: Sequence[str]) -> Shapes:
    return {name: shapes[name] for name in names if name in shapes}


def _known_shapes(given: ModelInputs) -> dict[str, tuple[int | None, ...]]:
    tensors = {name: value for name, value in given.values.items() if isinstance(value, Node)}
    return {name: tuple(map(const_int, tensor_of(value).shape)) for name, value in tensors.items()}
