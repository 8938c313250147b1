"""``nn.for_loop``, ``nn.while_loop`` and ``nn.scan``: loops of graphs made by hand, of functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...base.dtype import INT64
from ...base.errors import TypeInferenceError
from ...graph.closure import closed, dependent_on
from ...graph.node import Function, Node, NodeBase, Tuple, Var, check_node, tensor_of
from ...graph.types import TensorType, tensor_type
from ...ir.expr import Expr
from ..definition.arguments import flag, tensors_of
from ..definition.bodies import called
from ..definition.extent_formulas import as_formulas
from ..definition.op_group import OpGroup
from .loop import LoopAttrs, as_result, loop_call, with_unused

GROUP = OpGroup.CONTROL_FLOW
Body = Callable[..., Node | Sequence[Node]]


def for_loop(trips: int | Expr | Node, body: Body, *carried: Node) -> Node:
    """What is carried after ``body(number, *carried)`` was computed ``trips`` times, each time of what it gave before;
    ``number`` counts from 0, and is one int64. The result is a node, or a ``Tuple`` of several.

    ``trips`` are a number, a formula over dimensions, or a node: one int64 that each run computes. ``body`` is called
    once, on variables; what it computes of other values alone is computed once, before the loop. It gives values of the
    types of ``carried``, else this raises ``TypeInferenceError``.
    """
    number, *variables = _number(), *_variables(carried)
    results = called(body, [number, *variables], "body")
    function, captured = _closed([number, *variables], results)
    of = (*carried, *captured)
    if isinstance(trips, NodeBase):
        attrs = LoopAttrs(function, limited=True, carried=len(carried))
        return as_result(loop_call(attrs, trips, None, carried, (), captured)[:-1])
    (formula,), tellers = as_formulas([trips], of, len(of))
    attrs = LoopAttrs(with_unused(function, tellers), carried=len(carried), trips=formula)
    return as_result(loop_call(attrs, None, None, carried, (), (*captured, *tellers))[:-1])


def while_loop(condition: Callable[..., Node], body: Body, *carried: Node) -> Node:
    """What is carried when ``condition(*carried)``, one bool, holds no longer: it is asked before each time that
    ``body(*carried)`` is computed. The result is a node, or a ``Tuple`` of several.

    Both are called on variables; what they compute of other values alone is computed once, before the loop.
    ``TypeInferenceError`` as for ``for_loop``.
    """
    number, *variables = _number(), *_variables(carried)
    results = called(body, variables, "body")
    holds = called(condition, results, "condition")
    first = called(condition, carried, "condition")
    if len(holds) != 1 or len(first) != 1:
        raise TypeInferenceError(f"a condition is one bool, found {len(holds)} values")
    function, captured = _closed([number, *variables], [*holds, *results])
    attrs = LoopAttrs(function, conditional=True, carried=len(carried))
    return as_result(loop_call(attrs, None, first[0], carried, (), captured)[:-1])


def scan(body: Body, carried: Sequence[Node], sliced: Sequence[Node], reverse: bool = False) -> Tuple:
    """What is carried after all rows, and behind it the rows that were made, stacked along a new first axis.

    ``body(*carried, *rows)`` is given row after row of each value that is ``sliced``, along the first axis, from the
    last one on if ``reverse``. It gives what is carried next, and behind it any number of rows, which are stacked where
    those that it was given stood. ``TypeInferenceError`` as for ``for_loop``, and for values that have other numbers of
    rows than the first.
    """
    carried, sliced = tensors_of("scan", carried), tensors_of("scan", sliced)
    if not sliced:
        raise TypeInferenceError("scan goes over the rows of at least one value, found none")
    number, *variables = _number(), *_variables(carried)
    rows = [Var(f"row{k}", _row_of(node)) for k, node in enumerate(sliced)]
    results = called(body, [*variables, *rows], "body")
    function, captured = _closed([number, *variables, *rows], results)
    attrs = LoopAttrs(
        function,
        carried=len(carried),
        sliced=(flag(reverse, "reverse"),) * len(sliced),
        stacked=(reverse,) * (len(results) - len(carried)),
        trips=f"x{len(carried)}_0",
    )
    return Tuple(loop_call(attrs, None, None, carried, sliced, captured)[:-1])


def _number() -> Var:
    return Var("number", TensorType((), INT64))


def _variables(carried: Sequence[Node]) -> list[Var]:
    return [Var(f"carried{k}", check_node(node).type) for k, node in enumerate(carried)]


def _row_of(node: Node) -> TensorType:
    kind = tensor_of(node)
    if not kind.shape:
        raise TypeInferenceError(f"what is sliced has rows along its first axis, found a {kind}")
    return tensor_type(kind.shape[1:], kind.dtype)


def _closed(params: Sequence[Var], results: Sequence[Node]) -> tuple[Function, tuple[Node, ...]]:
    """The body as a closed function; what depends on none of the parameters is captured, so that it is computed once,
    before the loop."""
    inside = dependent_on(params, results)
    return closed("body", params, results, lambda node: node not in inside)
