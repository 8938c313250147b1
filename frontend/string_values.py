"""Strings as graphs have them: a tensor of spans (``base/spans.py``), and the bytes that these are of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.dataclass import dataclass
from ..base.spans import LENGTH_BITS, pack_strings
from ..graph.node import Call, Constant, Node, tensor_of
from ..graph.visit import inputs
from ..ir.constants import const_int
from ..ir.makers import as_index
from ..ir.simplify import simplify
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


def bytes_joined_in(utf8: Node) -> list[Node]:
    """The bytes that some were joined from, in order."""
    if not _is_joined(utf8):
        return [utf8]
    return [leaf for part in inputs(utf8) for leaf in bytes_joined_in(part)]


def merged(values: Sequence[StringTensor]) -> tuple[list[Node], Node]:
    """The spans of some strings as those of bytes that they share, and these bytes. Bytes that stand in others already
    are not joined with them again."""
    sources = list(dict.fromkeys(value.utf8 for value in values))
    whole = _largest(sources)
    leaves = [leaf for source in whole for leaf in bytes_joined_in(source)]
    begins = {source: _begin(leaves, _place(bytes_joined_in(source), leaves), sources) for source in sources}
    spans = [_moved(value.spans, begins[value.utf8]) for value in values]
    return spans, whole[0] if len(whole) == 1 else concatenate(whole, 0)


def _largest(sources: Sequence[Node]) -> list[Node]:
    """The bytes that stand in no others."""
    found: list[Node] = []
    for source in sources:
        own = bytes_joined_in(source)
        if any(_find(own, bytes_joined_in(other)) is not None for other in found):
            continue
        found = [other for other in found if _find(bytes_joined_in(other), own) is None]
        found.append(source)
    return found


def _place(inner: Sequence[Node], leaves: Sequence[Node]) -> tuple[int, int]:
    place = _find(inner, leaves)
    assert place is not None
    return place


def _find(inner: Sequence[Node], leaves: Sequence[Node]) -> tuple[int, int] | None:
    """The number of the bytes, of some that stand side by side, in which others begin, and at which byte of it; None if
    they begin in none."""
    for number in range(len(leaves) - len(inner) + 1):
        if all(map(_is_same, inner, leaves[number:])):
            return number, 0
    if len(inner) == 1 and isinstance(inner[0], Constant):
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, Constant) and (at := leaf.value.tobytes().find(inner[0].value.tobytes())) >= 0:
                return number, at
    return None


def _is_same(a: Node, b: Node) -> bool:
    """Whether two nodes certainly are the same bytes."""
    return a is b or (isinstance(a, Constant) and isinstance(b, Constant) and np.array_equal(a.value, b.value))


def _is_joined(utf8: Node) -> bool:
    return isinstance(utf8, Call) and utf8.op.name == "concatenate"


def _begin(leaves: Sequence[Node], place: tuple[int, int], sources: Sequence[Node]) -> Node | None:
    """The byte at which something begins that stands at a position in some bytes, as a number; None for 0."""
    number, inside = place
    shapes = [tensor_of(leaf).shape[0] for leaf in leaves[:number]]
    total = simplify(sum(shapes, start=as_index(inside)))
    if (known := const_int(total)) is not None:
        return Constant(np.array(known, np.int64)) if known else None
    return squeeze(extents([total], [part for source in sources for part in _parts(source)]))


def _parts(utf8: Node) -> list[Node]:
    """Bytes, and what they were joined from, whose extents are those that theirs is the sum of."""
    return [utf8, *(part for joined in (inputs(utf8) if _is_joined(utf8) else ()) for part in _parts(joined))]


def _moved(spans: Node, begin: Node | None) -> Node:
    if begin is None:
        return spans
    return add(spans, left_shift(begin, Constant(np.array(LENGTH_BITS, np.int64))))
