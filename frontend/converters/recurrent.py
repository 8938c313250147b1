"""ONNX's LSTM, GRU and RNN: a call for each direction, whose results stand side by side.

Steps come first here; with ``layout`` 1, where samples come first, arguments and results are transposed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...base.dataclass import dataclass
from ...graph.node import Node, tensor_of
from ...ir.constants import const_int
from ...ir.makers import as_index
from ...ops.families.assume_extent import assume_extent
from ...ops.families.binary import add
from ...ops.families.concatenate import concatenate
from ...ops.families.creation import full
from ...ops.families.pad import pad
from ...ops.families.recurrent.attrs import ACTIVATIONS, ActivationLike
from ...ops.families.recurrent.gru import gru
from ...ops.families.recurrent.lstm import lstm
from ...ops.families.recurrent.rnn import rnn
from ...ops.families.reshape import expand_dims, reshape, squeeze
from ...ops.families.slicing import strided_slice
from ...ops.families.transpose import transpose
from ..onnx_node import OnnxNode
from ..registry import converter

X, W, R, BIAS, LENGTHS, STATE, CELL, PEEPHOLES = range(8)


@converter("LSTM", 1, 7, 14, 22)
def lstm_of(node: OnnxNode) -> Sequence[Node]:
    """The results of an LSTM."""

    def convert(one: Direction) -> Sequence[Node]:
        first, second = one.biases(4)
        peepholes = one.part(PEEPHOLES)
        return lstm(
            *one.products,
            bias=None if first is None or second is None else add(first, second),
            h=one.state(STATE),
            c=one.state(CELL),
            peepholes=None if peepholes is None else reshape(peepholes, (3, -1)),
            lengths=node.get(LENGTHS),
            reverse=one.reverse,
            activations=one.activations(("Sigmoid", "Tanh", "Tanh")),
            clip=one.clip,
            input_forget=node.flag("input_forget"),
        )

    return all_directions(node, convert)


@converter("GRU", 1, 3, 7, 14, 22)
def _gru(node: OnnxNode) -> Sequence[Node]:
    """The second bias of the candidate is added before the reset where that comes after the product."""
    reset_after = node.version > 1 and node.flag("linear_before_reset")

    def convert(one: Direction) -> Sequence[Node]:
        first, second = one.biases(3)
        bias = None if first is None or second is None else add(first, second)
        reset_bias = None
        if reset_after:
            hidden = one.hidden
            reset_bias = full((hidden,), 0.0, tensor_of(node[X]).dtype)
            if first is not None and second is not None:
                gates = strided_slice(second, [0], [2 * hidden], [0])
                bias = add(first, pad(gates, [0], [hidden]))
                reset_bias = strided_slice(second, [2 * hidden], [3 * hidden], [0])
        return gru(
            *one.products,
            bias=bias,
            h=one.state(STATE),
            reset_bias=reset_bias,
            lengths=node.get(LENGTHS),
            reverse=one.reverse,
            activations=one.activations(("Sigmoid", "Tanh")),
            clip=one.clip,
        )

    return all_directions(node, convert)


@converter("RNN", 1, 7, 14, 22)
def _rnn(node: OnnxNode) -> Sequence[Node]:
    def convert(one: Direction) -> Sequence[Node]:
        first, second = one.biases(1)
        return rnn(
            *one.products,
            bias=None if first is None or second is None else add(first, second),
            h=one.state(STATE),
            lengths=node.get(LENGTHS),
            reverse=one.reverse,
            activations=one.activations(("Tanh",)),
            clip=one.clip,
        )

    return all_directions(node, convert)


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a node: what it has of the node's inputs and attributes. ``x`` has the steps first."""

    node: OnnxNode
    x: Node
    number: int
    count: int
    reverse: bool

    def part(self, index: int, axis: int = 0) -> Node | None:
        """What an input that may be left out has for this direction."""
        given = self.node.get(index)
        if given is None:
            return None
        if const_int(tensor_of(given).shape[axis]) is None:
            given = assume_extent(given, axis, as_index(self.count), ())
        return squeeze(strided_slice(given, [self.number], [self.number + 1], [axis]), [axis])

    def required(self, index: int) -> Node:
        """What an input that must be there has for this direction."""
        given = self.node[index]
        return squeeze(strided_slice(given, [self.number], [self.number + 1], [0]), [0])

    @property
    def products(self) -> tuple[Node, Node, Node]:
        """x, and the weights that it and the state are multiplied with."""
        return self.x, self.required(W), self.required(R)

    @property
    def hidden(self) -> int:
        """How many hidden units there are."""
        return self.node.numbers(self.node.type(R).shape[2:])[0]

    def biases(self, gates: int) -> tuple[Node | None, Node | None]:
        """The biases of the products with x and with the state."""
        both = self.part(BIAS)
        if both is None:
            return None, None
        size = gates * self.hidden
        return strided_slice(both, [0], [size], [0]), strided_slice(both, [size], [2 * size], [0])

    def state(self, index: int) -> Node | None:
        """A state before the first step, [batch, hidden]."""
        return self.part(index, _directions_axis(self.node) - 1)

    def activations(self, default: Sequence[str]) -> list[ActivationLike]:
        """The activations of this direction. Each takes its alpha and beta, if it has such, off the lists of all."""
        names = self.node.strings("activations") or tuple(default) * (self.number + 1)
        alphas, betas = (iter(self.node.floats(name) or ()) for name in ("activation_alpha", "activation_beta"))
        made: list[ActivationLike] = []
        for given in names:
            name = _NAMES.get(given.lower(), given)
            known = ACTIVATIONS.get(name)
            if known is None:
                raise self.node.unsupported(f"the activation {given!r}")
            alpha = None if known.alpha is None else next(alphas, known.alpha)
            beta = None if known.beta is None else next(betas, known.beta)
            made.append((name, alpha or 0.0, beta or 0.0))
        count = len(default)
        return made[self.number * count : (self.number + 1) * count]

    @property
    def clip(self) -> float:
        """The bound on what activations are given."""
        return self.node.real("clip", math.inf)


_NAMES = {name.lower(): name for name in ACTIVATIONS}


def _directions_axis(node: OnnxNode) -> int:
    """The axis of the directions in results of all steps; in states it is one less."""
    return 2 if node.integer("layout", 0) else 1


def all_directions(node: OnnxNode, convert: Callable[[Direction], Sequence[Node]]) -> Sequence[Node]:
    """The results of all steps with the directions side by side, then those of the last one."""
    kinds = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    direction = node.string("direction", "forward")
    if direction not in kinds:
        raise node.unsupported(f"the direction {direction!r}")
    if node.rank != 3 or const_int(node.type(W).shape[0]) != len(kinds[direction]):
        raise node.unsupported(f"the direction {direction} of {node.type()} with weights {node.type(W)}")
    axis, count = _directions_axis(node), len(kinds[direction])
    x = _as_many_as_states(node, transpose(node[X], (1, 0, 2)) if axis == 2 else node[X])
    found = [convert(Direction(node, x, k, count, reverse)) for k, reverse in enumerate(kinds[direction])]
    steps, *states = (list(results) for results in zip(*found, strict=True))
    ordered = [transpose(y, (1, 0, 2)) for y in steps] if axis == 2 else steps
    return [_side_by_side(ordered, axis), *(_side_by_side(each, axis - 1) for each in states)]


def _as_many_as_states(node: OnnxNode, x: Node) -> Node:
    """x [time, batch, inputs]. Where its batch is open, it is the known one of a first state."""
    batch_axis = 0 if node.integer("layout", 0) else 1
    states = (node.get(index) for index in (STATE, CELL))
    known = [n for s in states if s is not None and (n := const_int(tensor_of(s).shape[batch_axis])) is not None]
    if not known or const_int(tensor_of(x).shape[1]) is not None:
        return x
    return assume_extent(x, 1, as_index(known[0]), ())


def _side_by_side(results: Sequence[Node], axis: int) -> Node:
    made = [expand_dims(result, [axis]) for result in results]
    return made[0] if len(made) == 1 else concatenate(made, axis)
