"""Products of rows in a loop over all rows become one product before it.

    loop(h, x of xs): h ← tanh(h @ u + (x @ w + b))   →   ys = xs @ w + b; loop(h, y of ys): h ← tanh(h @ u + y)

What is elementwise behind such a product goes along, as its epilogue. A loop that a condition or a limit may end before
the last row stays as it is: rows would be computed that nobody asks for.
"""

from __future__ import annotations

from dataclasses import fields, replace

from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Constant, Node, Tuple, Var
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order
from ...ops.definition.registry import OpPattern, op_of
from ...ops.families.matmul.matmul import DENSE, MATMUL
from .loop_parts import LoopParts


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """A value of a body that is a row of ``whole``, from the last one on if ``reverse``. ``multiplied`` says whether it
    takes a product to compute it."""

    whole: Node
    reverse: bool
    multiplied: bool = False


def hoist_rows(parts: LoopParts) -> LoopParts:
    """The loop over rows of products, where it multiplied rows."""
    if parts.attrs.limited or parts.attrs.conditional or not parts.sliced:
        return parts
    rows = _rows(parts)
    found: dict[Node, Node] = {}
    for node in post_order(Tuple(parts.results)):
        if node not in rows or not rows[node].multiplied:
            found.update((used, used) for used in inputs(node) if used in rows and rows[used].multiplied)
    if not found:
        return parts
    variables = {node: Var(f"row{k}", node.type) for k, node in enumerate(found)}
    flags = tuple(rows[node].reverse for node in found)
    made = replace(
        parts,
        attrs=replace(parts.attrs, sliced=(*parts.attrs.sliced, *flags)),
        sliced=(*parts.sliced, *((rows[node].whole, var) for node, var in variables.items())),
    )
    return made.with_values(variables)


def _rows(parts: LoopParts) -> dict[Node, _Rows]:
    """The values of a body that are rows of something that can be had before the loop."""
    flags = zip(parts.sliced, parts.attrs.sliced, strict=True)
    found: dict[Node, _Rows] = {param: _Rows(arg, reverse) for (arg, param), reverse in flags}
    fixed: dict[Node, Node] = {param: arg for arg, param in parts.captured}
    for node in post_order(Tuple(parts.results)):
        if isinstance(node, Constant):
            fixed[node] = node
        elif isinstance(node, Call) and (made := _row_of_call(node, found, fixed)) is not None:
            found[node] = made
    return found


def _row_of_call(call: Call, rows: dict[Node, _Rows], fixed: dict[Node, Node]) -> _Rows | None:
    """What a call is a row of; None if it takes other things than rows and what is fixed, or is not done row by row."""
    own = [rows[arg] for arg in call.args if arg in rows]
    if not own or len({each.reverse for each in own}) > 1 or not all(a in rows or a in fixed for a in call.args):
        return None
    product = _is_product_of_row(call, fixed)
    if not product and not _is_elementwise(call, rows):
        return None
    args = [rows[arg].whole if arg in rows else fixed[arg] for arg in call.args]
    try:
        whole = replace(op_of(call)(*args, attrs=call.attrs), origin=call.origin)
    except TypeInferenceError:
        return None
    kind, first = call.type, own[0].whole.type
    if not isinstance(kind, TensorType) or not isinstance(first, TensorType):
        return None
    expected = TensorType((first.shape[0], *kind.shape), kind.dtype)
    multiplied = product or any(each.multiplied for each in own)
    return _Rows(whole, own[0].reverse, multiplied) if whole.type is expected else None


def _is_product_of_row(call: Call, fixed: dict[Node, Node]) -> bool:
    """Whether a row is multiplied by a matrix that is fixed."""
    if call.op not in (DENSE, MATMUL) or call.args[1] not in fixed:
        return False
    kind = call.args[1].type
    return isinstance(kind, TensorType) and kind.ndim == 2


def _is_elementwise(call: Call, rows: dict[Node, _Rows]) -> bool:
    """Whether elements are computed one by one, of rows as long as the result, and of what broadcasts to that."""
    if op_of(call).pattern > OpPattern.BROADCAST or not isinstance(call.type, TensorType):
        return False
    if call.attrs is not None and any(f.name.startswith("ax") for f in fields(call.attrs)):
        return False
    kinds = [(arg, arg.type) for arg in call.args]
    return all(
        isinstance(kind, TensorType) and (kind.ndim == call.type.ndim if arg in rows else kind.ndim <= call.type.ndim)
        for arg, kind in kinds
    )
