"""``nn.cond``: one of two functions, chosen at each run by a condition; the other is not computed.

No operator of the table, as ``extern``: ``definition/bodies.py`` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.closure import closed, dependent_on
from ...graph.node import Call, Function, Node, Tuple, TupleGet, Var, check_node
from ...graph.types import TupleType, Type, fields_of
from ...graph.visit import rewrite
from ..definition.bodies import BodyAttrs, called, condition_argument, results_of
from ..definition.op_group import OpGroup
from ..definition.registry import Argument, Op, OpPattern

GROUP = OpGroup.CONTROL_FLOW


@dataclass(frozen=True)
class IfAttrs(BodyAttrs):
    """What is computed where the condition holds, and where it does not. Both bodies take the operands of the call, and
    give tensors of the same types."""

    then: Function
    otherwise: Function

    def fitted(self, types: Sequence[Type]) -> Self:
        """Bodies for operands of these types, which come behind the condition."""
        return self.with_types([types[1:]] * 2)


def _relation(types: Sequence[Type], attrs: IfAttrs) -> Type:
    condition_argument(types[0], "the condition")
    attrs = attrs.fitted(types)
    then, otherwise = map(results_of, attrs.bodies)
    if len(then) != len(otherwise):
        raise TypeInferenceError(f"the branches give {len(then)} and {len(otherwise)} values")
    for number, (a, b) in enumerate(zip(then, otherwise, strict=True)):
        if a is not b:
            raise TypeInferenceError(
                f"result {number} is a {a} in one branch and a {b} in the other; both branches have to give one type"
            )
    return TupleType(then)


IF = Op(
    "if",
    "one of two functions, as a condition says; the other is not computed",
    (Argument("condition", "one bool; behind it what the bodies take"),),
    IfAttrs,
    _relation,
    OpPattern.OPAQUE,
    variadic=True,
)


def if_call(condition: Node, then: tuple[Function, Sequence[Node]], otherwise: tuple[Function, Sequence[Node]]) -> Call:
    """A call of two closed functions, each with the values that it captures as its parameters in order: these become
    operands of the call, those that both capture once."""
    operands = tuple(dict.fromkeys([*then[1], *otherwise[1]]))
    bodies = (_over(operands, *branch) for branch in (then, otherwise))
    return IF(condition, *operands, attrs=IfAttrs(*bodies))


def results_of_call(call: Call) -> tuple[Node, ...]:
    """The tensors that a call gives."""
    return tuple(TupleGet(call, number) for number in range(len(fields_of(call.type))))


def _over(operands: Sequence[Node], function: Function, captured: Sequence[Node]) -> Function:
    """The function with one parameter for each operand, of which it reads those that it captures; it may capture
    one twice."""
    own: dict[Node, Var] = {}
    twice: dict[Node, Node] = {}
    for node, param in zip(captured, function.params, strict=True):
        if own.setdefault(node, param) is not param:
            twice[param] = own[node]
    params = (own[node] if node in own else Var(f"unused{k}", node.type) for k, node in enumerate(operands))
    return Function(tuple(params), rewrite(function.body, twice.get), function.name)


def cond(
    condition: Node,
    then: Callable[..., Node | Sequence[Node]],
    otherwise: Callable[..., Node | Sequence[Node]],
    *operands: Node,
) -> Node:
    """What ``then`` gives of the operands where the condition, one bool, holds at a run, else what ``otherwise`` gives:
    a node, or a ``Tuple`` of several. The other is not computed.

    Both are functions of Python, called once each on variables. What they use beside these is computed before, whatever
    the condition: hand on as operands what only one branch is to make something of. Raises ``TypeInferenceError`` where
    the branches give other types.
    """
    params = {node: Var(f"operand{k}", node.type) for k, node in enumerate(dict.fromkeys(map(check_node, operands)))}
    variables = tuple(params.values())
    branches = []
    results: tuple[Node, ...] = ()
    for name, function in (("then", then), ("otherwise", otherwise)):
        results = called(function, [params[node] for node in operands], name)
        inside = dependent_on(variables, results)
        made, captured = closed(name, variables, results, lambda node, inside=inside: node not in inside)  # type: ignore[misc]
        branches.append((made, (*params, *captured)))
    call = if_call(condition, *branches)
    found = results_of_call(call)
    return found[0] if len(found) == 1 else Tuple(found)
