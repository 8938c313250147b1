"""Extents that were to be born of numbers which are constants by now: they are these numbers, in all types."""

from __future__ import annotations

from dataclasses import replace

from ...base.errors import ModelError, TypeInferenceError
from ...graph.node import Constant, Function, Node
from ...ops.definition.retyping import inferred_anew
from ...ops.families.born_extents import BORN_EXTENTS, known_extents
from ..symbols import births_of


def with_known_births(function: Function) -> Function:
    """The function with numbers for the extents that constants tell; itself if there are none.

    Raises ``ModelError`` where they are negative, or do not fit what is computed with them.
    """
    known: dict[Node, Node] = {}
    try:
        for call, symbols in births_of(function).items():
            if symbols and call.op is BORN_EXTENTS and isinstance(call.args[0], Constant):
                known[call] = replace(known_extents(call.args[0], call.attrs.meaning), origin=call.origin)
        return replace(function, body=inferred_anew(function.body, known)) if known else function
    except TypeInferenceError as error:
        raise ModelError(f"{function.name}: {error}") from error
