"""How Python shows an output whose values are numbers in native code: strings, labels by number, scores by class."""

from __future__ import annotations

from typing import Literal

from .dataclass import dataclass


@dataclass(frozen=True, slots=True)
class OutputForm:
    """The form of an output, which is an array of numbers where callers give a buffer, and in exported code.

    ``"labels"``: integers, each the position of a string of ``names``, become an array of these strings. ``"maps"``:
    rows become dicts, whose keys are ``names`` or, where there are none, ``numbers``. ``"strings"``: spans become the
    strings that they are of the output number ``source``, which is of the form ``"bytes"``, and not shown.
    """

    kind: Literal["labels", "maps", "strings", "bytes"]
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    source: int = -1
