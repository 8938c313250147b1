"""``state=`` of ``lw.compile``: which outputs are inputs of the next run, as given, or found by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from ..base.errors import ModelError, RuntimeArgumentError
from ..base.state import State
from ..graph.node import Function, Tuple
from ..graph.types import TensorType, leaf_types
from ..ir.constants import const_int
from .state_names import paired_names

GivenStates: TypeAlias = Mapping[str, str] | Literal["auto"] | None
"""Names of outputs with those of inputs, ``"auto"``, or None."""


def check_given(given: object) -> None:
    """Raise ``RuntimeArgumentError`` for what is neither."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for pair in given.items() for name in pair):
        raise RuntimeArgumentError(
            "state should be 'auto', or the names of outputs with those of the inputs that they are in the next run, "
            f"as {{'present.0': 'past.0'}}, found {given!r}"
        )


def with_states(function: Function, given: GivenStates) -> Function:
    """The function with the pairs that are given.

    Raises ``ModelError`` for names that are none of its inputs or outputs, for one that is in two pairs, where
    ``"auto"`` finds none, and for models that have strings or lists among their inputs and outputs.
    """
    if given is None or not given:
        return function
    inputs = [param.name for param in function.params]
    outputs = _output_names(function)
    if function.grouped_inputs or function.grouped_outputs or function.string_inputs or function.forms:
        raise ModelError(
            f"{function.name} has strings, lists or absent values among its inputs and outputs: state= is for models "
            "whose inputs and outputs are all arrays of numbers"
        )
    pairs = _found(function, inputs, outputs) if given == "auto" else dict(given)
    return replace(function, states=tuple(_state(function, *pair, inputs, outputs) for pair in _distinct(pairs)))


def _output_names(function: Function) -> list[str]:
    count = len(function.body.fields) if isinstance(function.body, Tuple) else 1
    return list(function.output_names) or [f"output{number}" for number in range(count)]


def _distinct(pairs: Mapping[str, str]) -> list[tuple[str, str]]:
    taken: dict[str, str] = {}
    for output, name in pairs.items():
        if (other := taken.setdefault(name, output)) != output:
            raise ModelError(f"state= makes two outputs, {other!r} and {output!r}, the next input {name!r}: give one")
    return list(pairs.items())


def _state(function: Function, output: str, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> State:
    for wanted, there, what in ((output, outputs, "output"), (name, inputs, "input")):
        if wanted not in there:
            raise ModelError(
                f"state= names {wanted!r}, which is no {what} of {function.name}; its {what}s are "
                f"{', '.join(there) or 'none'}"
            )
    return State(inputs.index(name), outputs.index(output))


def _found(function: Function, inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, str]:
    """The pairs whose names say that they are states, and whose types could be."""
    results = leaf_types(function.body.type)
    pairs = {
        output: name
        for output, name in paired_names(inputs, outputs).items()
        if _may_follow(results[outputs.index(output)], leaf_types(function.params[inputs.index(name)].type)[0])
    }
    if not pairs:
        raise ModelError(
            f"state='auto' finds no state of {function.name} by the names of its inputs, "
            f"{', '.join(inputs) or 'none'}, and outputs, {', '.join(outputs)}: name the pairs, as in "
            "state={'present.0': 'past.0'}"
        )
    return pairs


def _may_follow(present: TensorType, past: TensorType) -> bool:
    """Whether an output could be the next input, as far as numbers tell."""
    if present.dtype is not past.dtype or present.ndim != past.ndim:
        return False
    pairs = [(const_int(a), const_int(b)) for a, b in zip(present.shape, past.shape, strict=True)]
    return all(a == b for a, b in pairs if a is not None and b is not None)
