"""Strings as graphs have them: a tensor of spans (``base/spans.py``), and the bytes that these are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.spans import LENGTH_BITS, pack_strings
from ..graph.node import Call, Constant, Node, tensor_of
from ..graph.visit import inputs
from ..ir.constants import const_int
from ..ops.families.binary import add, left_shift
from ..ops.families.concatenate import concatenate
from ..ops.families.open_extents import extents
from ..ops.families.reshape import squeeze


@dataclass(frozen=True, slots=True, eq=False)
class StringTensor:
    """Strings: ``spans`` of the bytes ``utf8``."""

    spans: Node
    utf8: Node


def constant_strings(strings: Sequence[str], shape: Sequence[int] | None = None, name: str = "strings") -> StringTensor:
    """Strings that are known. Their bytes are not filled up."""
    known = np.array(strings, object).reshape(-1)
    (spans,), _ = pack_strings([known], lambda _: name)
    utf8 = np.frombuffer("".join(strings).encode() or b"\0", np.uint8)
    return StringTensor(Constant(spans.reshape((len(strings),) if shape is None else shape)), Constant(utf8))


def merged(values: Sequence[StringTensor]) -> tuple[list[Node], Node]:
    """The spans of some strings as those of bytes that they share, and these bytes."""
    sources = list(dict.fromkeys(value.utf8 for value in values))
    if len(sources) == 1:
        return [value.spans for value in values], sources[0]
    begins = dict(zip(sources, _begins(sources), strict=True))
    spans = [_moved(value.spans, begins[value.utf8]) for value in values]
    return spans, concatenate(sources, 0)


def _begins(sources: Sequence[Node]) -> list[Node | None]:
    """Where each of some bytes begin when they stand one behind the other; None for 0."""
    shapes = [tensor_of(source).shape[0] for source in sources]
    begins: list[Node | None] = [None]
    for count in range(1, len(sources)):
        sizes = [const_int(extent) for extent in shapes[:count]]
        known = [size for size in sizes if size is not None]
        if len(known) == count:
            begins.append(Constant(np.array(sum(known), np.int64)))
            continue
        total = shapes[0]
        for extent in shapes[1:count]:
            total = total + extent
        begins.append(squeeze(extents([total], [part for source in sources for part in _parts(source)])))
    return begins


def _parts(utf8: Node) -> list[Node]:
    """Bytes, and what they were joined from, whose extents are those that theirs is the sum of."""
    is_joined = isinstance(utf8, Call) and utf8.op.name == "concatenate"
    return [utf8, *(part for joined in (inputs(utf8) if is_joined else ()) for part in _parts(joined))]


def _moved(spans: Node, begin: Node | None) -> Node:
    if begin is None:
        return spans
    return add(spans, left_shift(begin, Constant(np.array(LENGTH_BITS, np.int64))))
