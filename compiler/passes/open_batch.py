"""The batch of a function made open, so that nothing is chosen by its size: a sample is computed as in any batch.

The batch is the leading dimension of the first input that has dimensions, and of the others that share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base.errors import LoopwrightError, ModelError, TargetError
from ...base.target import Target
from ...graph.node import Call, Function, Node, Var, tensor_of
from ...graph.types import GivenShapes, TensorType, given_shapes
from ...graph.visit import rewrite
from ...ir.build import index_var
from ...ir.constants import const_int
from ...ops.definition.registry import get_op, op_of
from ..symbols import Symbol, leading_dimensions, symbols_of
from .constraints import settle_dimensions
from .flatten_tuples import flatten_tuples

RESHAPE = get_op("reshape")


def with_open_batch(load: Callable[[GivenShapes], Function], shapes: GivenShapes | None, target: Target) -> Function:
    """The function that ``load`` gives for shapes, with a batch that is open, and its size in ``batch_size`` if the
    shapes tell it, or the function.

    Raises what ``load`` does, ``ModelError`` where the function holds for one batch only, and ``TargetError`` for a
    target with BLAS.
    """
    if target.libs:
        raise TargetError(
            f"batch_invariant has a sample get the same bits in any batch, and {', '.join(target.libs)} sums in orders "
            "of its own: take a target without -libs"
        )
    given = given_shapes(shapes)
    first = next((shape[0] for shape in given.values() if shape), None)
    size = first if isinstance(first, int) else None
    opened = {name for name, shape in given.items() if shape and size is not None and shape[0] == size}
    function = flatten_tuples(
        load({name: (None, *shape[1:]) if name in opened else shape for name, shape in given.items()})
    )
    sized = [param for param in function.params if param.name in opened]
    for param in sized:
        if _leading(param) not in (None, size):
            raise ModelError(f"input {param.name} is declared as {param.type}, which the batch {size} contradicts")
    batch = leading_dimensions(sized)
    if not batch:
        return open_batch(function)
    settled = settle_dimensions(function)
    if not set(batch) <= set(symbols_of(param.type for param in settled.params)):
        raise _holds_for_one(function, size, "its operators ask for it")
    return replace(settled, batch=function.batch or batch, batch_size=size)


def open_batch(function: Function) -> Function:
    """The function with a symbolic dimension for its batch, and the size that this has in ``batch_size``; itself where
    the batch is open already, or no input has dimensions.

    Raises ``ModelError`` where the function holds for one batch only.
    """
    function = flatten_tuples(function)
    tensors = [p for p in function.params if isinstance(p.type, TensorType) and p.type.ndim]
    if function.batch or leading_dimensions(tensors) or not tensors:
        return function
    size = _leading(tensors[0])
    alike = [p for p in tensors if _leading(p) == size]
    problem = ""
    for params in _attempts(alike):
        batch = index_var("batch")
        try:
            opened = settle_dimensions(_with_batch(function, {p: _opened(p, batch) for p in params}, batch))
        except LoopwrightError as error:
            problem = str(error)
            continue
        if batch in set(symbols_of(p.type for p in opened.params)):
            return replace(opened, batch=(batch,), batch_size=size)
        problem = "its operators ask for it"
    raise _holds_for_one(function, size, problem)


def _holds_for_one(function: Function, size: int | None, problem: str) -> ModelError:
    return ModelError(
        f"{function.name} holds for a batch of {size} only, so that there is no other to be the same for: {problem}. "
        "Leave out batch_invariant, or leave the batch open in the model"
    )


def _leading(param: Var) -> int | None:
    return const_int(tensor_of(param).shape[0])


def _attempts(alike: Sequence[Var]) -> Iterator[Sequence[Var]]:
    """All inputs of one leading extent, all but one, and the first alone: not all of them need be samples."""
    yield alike
    for other in alike[1:]:
        yield [p for p in alike if p is not other]
    yield alike[:1]


def _opened(param: Var, batch: Symbol) -> Var:
    kind = tensor_of(param)
    return Var(param.name, TensorType((batch, *kind.shape[1:]), kind.dtype))


def _with_batch(function: Function, params: Mapping[Var, Var], batch: Symbol) -> Function:
    """The function with other parameters, its types inferred anew."""

    def infer(node: Node) -> Node | None:
        if isinstance(node, Var):
            return params.get(node)
        if isinstance(node, Call):
            made = op_of(node)(*node.args, attrs=_attributes(node, batch), origin=node.origin)
            return replace(made, value=node.value)
        return None

    return replace(
        function, params=tuple(params.get(p, p) for p in function.params), body=rewrite(function.body, infer)
    )


def _attributes(call: Call, batch: Symbol) -> Any:
    """The attributes of a call whose arguments have the batch now; a shape that holds its size leaves that open."""
    if call.op is not RESHAPE or batch not in set(symbols_of([call.args[0].type])):
        return call.attrs
    extents = [const_int(extent) for extent in tensor_of(call).shape]
    if not extents or None in extents or any(isinstance(extent, str) for extent in call.attrs.shape):
        return call.attrs
    return replace(call.attrs, shape=(-1, *extents[1:]))
