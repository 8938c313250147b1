"""``x[…]`` of a graph node: numpy's basic indexing is slices, squeezes and new axes; integers of an array, ``take``."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from ...base.errors import TypeInferenceError
from ...graph.array_operators import ArrayOperators
from ...graph.node import Constant, Node, TupleGet, check_node, tensor_of
from ...graph.numpy_protocol import implements
from ...graph.types import TupleType
from ...ir.constants import const_int
from ..definition.arguments import integer
from ..families.gather import take
from ..families.reshape import expand_dims, squeeze
from ..families.slicing import END, strided_slice
from .promotion import as_node


@implements(operator.getitem)
def _item(x: Node, key: object) -> Node:
    if isinstance(x.type, TupleType):
        number = integer(key, "the number of a member")
        return TupleGet(x, number + len(x.type.fields) * (number < 0))
    keys = _one_an_axis(key if isinstance(key, tuple) else (key,), tensor_of(x).ndim)
    made = _without(_sliced(x, keys), keys)
    kept = [part for part in keys if not _is_number(part)]
    new = [position for position, part in enumerate(kept) if part is None]
    if new:
        made = expand_dims(made, new)
    lists = [axis for axis, part in enumerate(kept) if part is not None and not isinstance(part, slice)]
    if len(lists) > 1:
        raise TypeInferenceError("integers of an array or node stand on one axis only: lw.nn.gather_nd takes more")
    return _taken(made, kept[lists[0]], lists[0]) if lists else made


def _one_an_axis(keys: Sequence[object], rank: int) -> list[object]:
    """The keys with ``...`` written out, so that there is one for each axis, besides ``None`` for new ones."""
    own = sum(part is not None and part is not Ellipsis for part in keys)
    if own > rank:
        raise TypeInferenceError(f"there are {own} indices for {rank} axes")
    if sum(part is Ellipsis for part in keys) > 1:
        raise TypeInferenceError("there is more than one `...`")
    at = next((k for k, part in enumerate(keys) if part is Ellipsis), len(keys))
    return [*keys[:at], *[slice(None)] * (rank - own), *keys[at + 1 :]]


def _is_number(part: object) -> bool:
    if isinstance(part, (bool, np.bool_)):
        raise TypeInferenceError("an index is no bool: np.where chooses by a mask")
    return hasattr(part, "__index__") and not isinstance(part, np.ndarray)


def _of_axes(keys: Sequence[object]) -> list[object]:
    """The keys of the axes that the tensor has."""
    return [part for part in keys if part is not None]


def _sliced(x: Node, keys: Sequence[object]) -> Node:
    """Numbers on axes of known extent become slices of one element."""
    cuts = []
    for axis, (part, extent) in enumerate(zip(_of_axes(keys), tensor_of(x).shape, strict=True)):
        if _is_number(part) and (number := const_int(extent)) is not None:
            cuts.append((axis, *_element(operator.index(part), number, axis), 1))  # type: ignore[arg-type]
        elif isinstance(part, slice) and part != slice(None):
            cuts.append((axis, *_bounds(part)))
        elif isinstance(part, str):
            raise TypeInferenceError(f"an index is an integer, a slice, `...` or None, found {part!r}")
    if not cuts:
        return x
    axes, starts, ends, steps = zip(*cuts, strict=True)
    return strided_slice(x, starts, ends, axes, steps)


def _without(x: Node, keys: Sequence[object]) -> Node:
    """The tensor without the axes that have a number: of an open one, the element is read at run time."""
    numbers = {axis: part for axis, part in enumerate(_of_axes(keys)) if _is_number(part)}
    shape = tensor_of(x).shape
    known = [axis for axis in numbers if const_int(shape[axis]) is not None]
    made = x
    for axis in sorted(numbers.keys() - set(known), reverse=True):
        made = take(made, Constant(np.asarray(operator.index(numbers[axis]), np.int64)), axis)  # type: ignore[arg-type]
        known = [each - (each > axis) for each in known]
    return squeeze(made, known) if known else made


def _element(number: int, extent: int, axis: int) -> tuple[int, int]:
    if not -extent <= number < extent:
        raise TypeInferenceError(f"index {number} is not one of axis {axis}, which has extent {extent}")
    return number, END if number == -1 else number + 1


def _bounds(part: slice) -> tuple[int, int, int]:
    step = 1 if part.step is None else integer(part.step, "the step of a slice")
    first, last = (0, END) if step > 0 else (END, -END)
    start = first if part.start is None else integer(part.start, "the start of a slice")
    return start, last if part.stop is None else integer(part.stop, "the end of a slice"), step


def _taken(x: Node, indices: object, axis: int) -> Node:
    if isinstance(indices, ArrayOperators):
        chosen = check_node(indices)
    elif isinstance(indices, (list, np.ndarray)):
        chosen = as_node(np.asarray(indices))
    else:
        raise TypeInferenceError(f"an index is an integer, a slice, `...` or None, found {indices!r}")
    if not tensor_of(chosen).dtype.is_data_int:
        raise TypeInferenceError(f"indices are integers, found {chosen.type}: np.where chooses by a mask")
    return take(x, chosen, axis)
