"""Col2Im where only a run knows the extents of the image or of its windows: the elements of windows are added up where
they lie."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.dataclass import dataclass
from ...graph.node import Node, tensor_of
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ops.families.binary import (
    add,
    divide,
    equal,
    greater_equal,
    less,
    logical_and,
    maximum,
    multiply,
    subtract,
)
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.reduce import prod as product_of
from ...ops.families.repeat import broadcast_to_extents
from ...ops.families.reshape import expand_dims
from ...ops.families.scatter import scatter_elements
from ...ops.families.select import where
from ..integers import as_vector, integers
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to
from .run_time_operands import element, extent_as_number, numbers_up_to


def col2im_of_run(node: OnnxNode) -> Node:
    """The image [batch, channels, …] of which x has the windows as columns."""
    image, window = (node.finish(as_vector(node[k])) for k in (1, 2))
    return folded(node, node[0], image, window)


def folded(node: OnnxNode, x: Node, image: Node, window: Node) -> Node:
    """The image of which x, [batch, elements of windows, windows], has the windows as columns: of the extents that the
    vector ``image`` has, by windows of those of another, which lie as the attributes of a node say."""
    inputs = node.shapes.inputs
    rank = len(node.shapes.elements(image))
    strides, dilations = (integers(node.ints(name) or (1,) * rank) for name in ("strides", "dilations"))
    pads = node.ints("pads") or (0,) * 2 * rank
    reach = add(multiply(dilations, subtract(window, integers(1))), integers(1))
    room = subtract(add(image, integers([pads[d] + pads[rank + d] for d in range(rank)])), reach)
    counts = node.finish(add(divide(room, strides), integers(1)))
    batch, rows, windows = tensor_of(x).shape
    size = node.finish(maximum(product_of(window, (0,), True), integers([1])))
    channels = divide(extent_as_number(node, rows), size)
    fits = equal(multiply(channels, size), extent_as_number(node, rows))
    fits = logical_and(fits, equal(product_of(counts, (0,), True), extent_as_number(node, windows)))
    numbers = concatenate([image, size, channels], 0)
    found = node.extents_of(
        where(fits, numbers, integers(-1)), "the image and its windows, -1 where they do not fit x,"
    )
    *extents, elements, planes = map(as_index, found)
    given = _Windows(image, window, counts, strides, dilations, pads, elements, windows)
    positions, inside = _places(node, given)
    planes = simplify(batch * planes)
    length = simplify(elements * windows)
    flat = reshape_to(x, (planes, length), inputs)
    kept = where(reshape_to(inside, (1, length), inputs), flat, cast(integers(0), tensor_of(x).dtype))
    at = broadcast_to_extents(node.finish(reshape_to(positions, (1, length), inputs)), [planes, length], inputs)
    total = simplify(math.prod(extents, start=ONE))
    zeros = broadcast_to_extents(cast(integers(0), tensor_of(x).dtype), [planes, total], inputs)
    made = node.finish(scatter_elements(node.finish(zeros), node.finish(at), node.finish(kept), 1, "add"))
    return reshape_to(made, (batch, as_index(found[-1]), *extents), inputs)


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """Vectors of a number for each axis of the image; ``pads`` are those before it. A window has so many ``elements``,
    and there are so many ``windows``."""

    image: Node
    window: Node
    counts: Node
    strides: Node
    dilations: Node
    pads: Sequence[int]
    elements: Expr
    windows: Expr


def _places(node: OnnxNode, given: _Windows) -> tuple[Node, Node]:
    """Where in the image the elements of windows lie, [elements of a window, windows], and which lie inside of it."""
    image, window, counts = given.image, given.window, given.counts
    within = expand_dims(numbers_up_to(node, given.elements), (1,))
    number = expand_dims(numbers_up_to(node, given.windows), (0,))
    position: Node = integers(0)
    inside: Node | None = None
    step: Node = integers(1)
    for d in reversed(range(const_int(tensor_of(image).shape[0]) or 0)):
        extent, size, count = (maximum(element(vector, d), integers(1)) for vector in (image, window, counts))
        k, p = (subtract(index, multiply(divide(index, of), of)) for index, of in ((within, size), (number, count)))
        within, number = divide(within, size), divide(number, count)
        at = add(multiply(p, element(given.strides, d)), multiply(k, element(given.dilations, d)))
        at = subtract(at, integers(given.pads[d]))
        here = logical_and(greater_equal(at, integers(0)), less(at, element(image, d)))
        inside = here if inside is None else logical_and(inside, here)
        position = add(position, multiply(at, step))
        step = multiply(step, extent)
    assert inside is not None
    return where(inside, position, integers(0)), inside
