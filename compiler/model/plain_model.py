"""A graph function run by numpy, call by call, from the definitions of the operators: the plain code that serves a
model while its compilation goes on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ... import te
from ...artifact.block import RunBlock, RunStage
from ...artifact.model import CompiledModel
from ...base.errors import LoopwrightError, ModelError
from ...graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from ...graph.types import leaf_types, leaves_of_field
from ...graph.visit import post_order
from ...ir.expr import Expr
from ...ir.expr import Var as Dim
from ...ir.linear import linear_of
from ...ops.definition.evaluate import definition_of
from ...ops.definition.implementation import outputs_of
from ...ops.definition.memory_view import RunOfArgument
from ...ops.definition.registry import op_of
from ...te.vectorized import VectorizedProgram
from ...te.vectorized.values import number_of
from ..settings import CompileSettings
from ..symbols import births_of, bounds_of, dimension_names
from .placement import tensor_spec

Array: TypeAlias = npt.NDArray[Any]
Run: TypeAlias = Callable[[Sequence[Array], Mapping[Dim, int]], Sequence[Array]]
"""The results of a call for its arguments, and the values of dimensions."""


class PlainModel:
    """``model(arrays)`` gives the outputs for arrays in the order of the parameters' tensors. ``shown`` is a model
    without code that has the same inputs and outputs.

    Raises ``ModelError`` where an operator has no definition that numpy can run, or an extent is known by the run only.
    Mutable: what depends on constants alone is kept from the first run on.
    """

    def __init__(self, function: Function, settings: CompileSettings) -> None:
        self.shown = _without_code(function, settings)
        self._function = function
        self._params = [leaf for param in function.params for leaf in leaf_types(param.type)]
        self._order = [node for node in post_order(function.body) if not isinstance(node, Var)]
        self._runs = _runs_of([node for node in self._order if isinstance(node, Call)])
        self._constant: set[Node] = set()
        self._readers: Counter[Node] = Counter()
        for node in self._order:
            parts = _parts(node)
            self._readers.update(parts)
            if isinstance(node, Constant) or (parts and all(part in self._constant for part in parts)):
                self._constant.add(node)
        self._kept: dict[Node, tuple[Array, ...]] = {}

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, which share no memory with inputs or weights. Raises a ``LoopwrightError`` for what numpy cannot
        run; whether the arrays fit is for the caller to check."""
        dims = self._dims(arrays)
        given = iter(arrays)
        known: dict[Node, tuple[Array, ...]] = dict(self._kept)
        for param in self._function.params:
            known[param] = tuple(next(given) for _ in leaf_types(param.type))
        left = Counter(self._readers)
        for node in self._order:
            if node not in known:
                known[node] = self._value(node, known, dims)
                if node in self._constant:
                    self._kept[node] = known[node]
            for part in _parts(node):
                left[part] -= 1
                if not left[part]:
                    del known[part]  # its memory is needed no longer
        return [np.array(array, order="C") for array in known[self._function.body]]

    def _value(self, node: Node, known: Mapping[Node, tuple[Array, ...]], dims: Mapping[Dim, int]) -> tuple[Array, ...]:
        match node:
            case Call():
                return tuple(self._runs[node]([array for part in node.args for array in known[part]], dims))
            case Constant(value):
                return (value,)
            case Tuple(fields):
                return tuple(array for field in fields for array in known[field])
            case TupleGet(value, index):
                return known[value][leaves_of_field(value.type, index)]
        raise ModelError(f"{type(node).__name__} is not run by numpy")

    def _dims(self, arrays: Sequence[Array]) -> dict[Dim, int]:
        dims: dict[Dim, int] = {}
        for kind, array in zip(self._params, arrays, strict=True):
            for extent, number in zip(kind.shape, array.shape, strict=True):
                form = linear_of(extent)
                if (term := form.single) is not None and isinstance(dim := term.factors[0], Dim):
                    dims.setdefault(dim, number // term.coefficient)
        return dims


def plain_model(function: Function, settings: CompileSettings) -> PlainModel | None:
    """The plain model of a function; None where it cannot be had: of what keeps states, lists, strings, and operators
    that numpy cannot run. In strict precision there is none: numpy does not give the bits of compiled code."""
    special = (
        births_of(function) or function.states or function.forms or function.grouped_inputs or function.grouped_outputs
    )
    if special or function.string_inputs or settings.options.is_strict:
        return None
    try:
        return PlainModel(function, settings)
    except LoopwrightError:
        return None


def _without_code(function: Function, settings: CompileSettings) -> CompiledModel:
    names = dimension_names(function.params)
    results = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    outputs = function.output_names or tuple(f"output{k}" for k in range(len(results)))
    return CompiledModel(
        name=function.name,
        target=settings.target,
        dims=tuple(dict.fromkeys(names.values())),
        inputs=tuple(tensor_spec(param.name, param.type, names) for param in function.params),
        outputs=tuple(tensor_spec(n, r.type, names) for n, r in zip(outputs, results, strict=True)),
        constants=(),
        functions=(),
        body=RunBlock((RunStage((), (), (), (), (), (), (), ()),)),
        entry="",
        entry_object=b"",
        entry_llvm_ir="",
        bounds=bounds_of(names),
        repeated=tuple(sorted(function.repeated)),
    )


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Call():
            return node.args
        case Tuple(fields):
            return fields
        case TupleGet(value):
            return (value,)
    return ()


def _runs_of(calls: Sequence[Call]) -> dict[Call, Run]:
    """What runs each call, the same for those of one operator, attributes and types."""
    made: dict[tuple[Any, ...], Run] = {}
    runs: dict[Call, Run] = {}
    for call in calls:
        key = call.op, call.attrs, call.type, *(argument.type for argument in call.args)
        try:
            found = made.get(key)
        except TypeError:  # attributes that have no hash, such as arrays
            key, found = (call,), None
        runs[call] = made[key] = found or _run_of(call)
    return runs


def _run_of(call: Call) -> Run:
    if (run := _moved(call)) is not None:
        return run
    implementation = definition_of(call)
    if implementation is None:
        raise ModelError(f"{call.op.name} has no definition that numpy can run")
    kinds = [kind for argument in call.args for kind in leaf_types(argument.type)]
    inputs = tuple(te.placeholder(kind.shape, kind.dtype, f"p{k}") for k, kind in enumerate(kinds))
    program = VectorizedProgram(outputs_of(implementation.computed(call.op.name, call.attrs, inputs, call.type)))
    return lambda arrays, dims: program(dict(zip(inputs, arrays, strict=True)), dims)


def _moved(call: Call) -> Run | None:
    """What copies the result of a call as a whole, where that is a run of its argument, or its arguments one after the
    other; else None."""
    rule = op_of(call).memory_rule
    view = None if rule is None else rule(call)
    (kind, *others) = leaf_types(call.type)
    if view is None or others:
        return None

    def shape(dims: Mapping[Dim, int]) -> tuple[int, ...]:
        return tuple(number_of(extent, dims) for extent in kind.shape)

    def part(arrays: Sequence[Array], dims: Mapping[Dim, int], start: Expr) -> tuple[Array]:
        begin, wanted = number_of(start, dims), shape(dims)
        return (arrays[0].reshape(-1)[begin : begin + math.prod(wanted)].reshape(wanted),)

    def joined(arrays: Sequence[Array], dims: Mapping[Dim, int]) -> tuple[Array]:
        return (np.concatenate([array.reshape(-1) for array in arrays]).reshape(shape(dims)),)

    return partial(part, start=view.begin) if isinstance(view, RunOfArgument) else joined
