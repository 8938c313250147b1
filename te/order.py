"""The operations that tensors are computed by, in order of computation."""

from __future__ import annotations

from collections.abc import Iterable

from .tensor import Operation, Tensor


def operations_behind(outputs: Iterable[Tensor]) -> list[Operation]:
    """All operations that tensors depend on, their own and placeholders among them: each once, behind those that it
    reads, in the order in which the outputs reach them."""
    found: dict[Operation, None] = {}
    stack = [(tensor.op, False) for tensor in reversed(list(outputs))]
    while stack:
        op, ready = stack.pop()
        if op in found:
            continue
        if ready:
            found[op] = None
        else:
            stack.append((op, True))
            stack.extend((tensor.op, False) for tensor in reversed(op.inputs))
    return list(found)
