"""A product by a constant whose columns are read in parts only, such as queries, keys and values made by one, becomes a
product for each part: the parts then need no copies.

slice(x · w + b, columns)            = x · w[:, columns] + b[columns]
take(reshape(x · w + b), i, axis)    = reshape(x · w[:, columns i] + b[columns i]), columns = parts × …, on the axis
                                       of the parts
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ir.constants import const_int
from ...ops.definition.registry import get_op, op_of
from ...ops.families.reshape import reshape

ADD, DENSE, MATMUL, RESHAPE, SLICE, TAKE = (
    get_op(name) for name in ("add", "nn.dense", "nn.matmul", "reshape", "strided_slice", "take")
)
Users: TypeAlias = Mapping[Node, tuple[Node, ...]]


def split_products(function: Function) -> Function:
    """The function with a product for each part that is read, where all that reads a product are such parts."""
    used_by = users(function.body)
    order = list(post_order(function.body))
    parts: dict[Node, _Part] = {part.reader: part for node in order for part in _parts(node, used_by)}
    if not parts:
        return function
    done: dict[Node, Node] = {}
    for node in order:
        part = parts.get(node)
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        done[node] = rebuilt if part is None else part.made(done[part.calls[0].args[0]])
    return replace(function, body=done[function.body])


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The columns that ``reader`` takes of what ``calls`` make: a product, and sums of it with constants."""

    reader: Call
    calls: tuple[Call, ...]
    begin: int
    end: int

    def made(self, x: Node) -> Node:
        """The part, of what has become of the product's left side."""
        product, *sums = self.calls
        (weight,) = (a for a in product.args[1:] if isinstance(a, Constant))
        value = _called(product, x, self._cut(weight, _column_axis(product)))
        for call in sums:
            value = _called(call, *(self._cut(a, -1) if isinstance(a, Constant) else value for a in call.args))
        shape = [const_int(extent) for extent in tensor_of(self.reader).shape]
        made = reshape(value, [e for e in shape if e is not None])
        return replace(made, origin=self.reader.origin, value=self.reader.value)

    def _cut(self, constant: Constant, axis: int) -> Constant:
        """The columns of a constant, or all of it where it is the same for all columns."""
        if constant.value.ndim == 0 or constant.value.shape[axis] == 1:
            return constant
        rows = (slice(self.begin, self.end),)
        return Constant(constant.value[(..., *rows)] if axis == -1 else constant.value[rows], constant.name)


def _called(call: Call, *args: Node) -> Call:
    """The operator of a call, of other arguments."""
    return replace(op_of(call)(*args, attrs=call.attrs), origin=call.origin)


def _column_axis(product: Call) -> int:
    return 0 if product.op is DENSE and product.attrs.transposed else -1


def _parts(product: Node, used_by: Users) -> list[_Part]:
    """The parts of a product; none if something reads it in another way, or columns are read more than once."""
    if not isinstance(product, Call) or product.op not in (DENSE, MATMUL) or not isinstance(product.args[1], Constant):
        return []
    if product.args[1].value.ndim != 2 or any(const_int(extent) is None for extent in tensor_of(product).shape):
        return []
    calls = [product]
    while (following := _sum_with_constant(calls[-1], used_by)) is not None:
        calls.append(following)
    columns = const_int(tensor_of(product).shape[-1]) or 0
    parts = []
    for reader, found in _readers(calls[-1], columns, used_by):
        if found is None:
            return []
        parts.append(_Part(reader, tuple(calls), *found))
    ends = [0, *sorted(part.end for part in parts)]
    apart = all(begin >= end for begin, end in zip(sorted(part.begin for part in parts), ends, strict=False))
    return parts if len(parts) > 1 and apart else []


def _sum_with_constant(value: Call, used_by: Users) -> Call | None:
    """The only reader of a value, if it adds a constant to it that is the same in all rows."""
    match used_by[value]:
        case (Call(op=op) as call,) if op is ADD and call.type is value.type:
            constants = [a for a in call.args if isinstance(a, Constant)]
            return call if constants and math.prod(constants[0].value.shape[:-1]) == 1 else None
    return None


def _readers(value: Call, columns: int, used_by: Users) -> Iterator[tuple[Call, tuple[int, int] | None]]:
    """What reads a value, through one reshape, with the columns that it takes; None where that is no part."""
    for reader in used_by[value]:
        if not isinstance(reader, Call) or used_by[value].count(reader) > 1:
            yield value, None
        elif reader.op is RESHAPE and len(used_by[reader]) > 0:
            taken = [(call, _taken(call, reader, columns)) for call in used_by[reader] if isinstance(call, Call)]
            yield from taken if len(taken) == len(used_by[reader]) else [(reader, None)]
        else:
            yield reader, _sliced(reader, columns)


def _sliced(reader: Call, columns: int) -> tuple[int, int] | None:
    if reader.op is not SLICE or reader.attrs.axes != (tensor_of(reader).ndim - 1,) or reader.attrs.steps != (1,):
        return None
    begin, end, _ = slice(reader.attrs.starts[0], reader.attrs.ends[0]).indices(columns)
    return (begin, end) if begin < end else None


def _taken(reader: Call, reshaped: Call, columns: int) -> tuple[int, int] | None:
    """The columns of the part that a single index takes, where columns are reshaped to parts × …."""
    if reader.op is not TAKE or reader.args[0] is not reshaped or not isinstance(reader.args[1], Constant):
        return None
    axis, index = reader.attrs.axis, reader.args[1].value
    within = [const_int(extent) or 0 for extent in tensor_of(reshaped).shape[axis:]]
    if index.ndim > 0 or math.prod(within) != columns:
        return None
    number = int(index) % within[0] if -within[0] <= int(index) < within[0] else None
    width = columns // within[0]
    return None if number is None else (number * width, (number + 1) * width)
