"""onnxruntime's DynamicQuantizeLSTM: an LSTM whose weights are bytes, and which brings inputs and states to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....base.dataclass import dataclass
from ....base.errors import ModelError
from ....graph.node import Constant, Node, tensor_of
from ....ir.constants import const_int
from ....ir.makers import as_index
from ....ops.families.binary import add, less, multiply, subtract
from ....ops.families.cast import cast
from ....ops.families.loops import scan
from ....ops.families.parametric import clip
from ....ops.families.quantize import dequantize
from ....ops.families.repeat import broadcast_to_extents
from ....ops.families.reshape import expand_dims
from ....ops.families.select import where
from ....ops.families.slicing import strided_slice
from ....ops.families.transpose import transpose
from ....ops.families.unary import sigmoid, tanh
from ....ops.families.zero_points import matmul_less_zeros
from ...onnx_node import OnnxNode
from ..quantization import dynamically_quantized
from ..recurrent import BIAS, CELL, LENGTHS, PEEPHOLES, STATE, Direction, R, W, X, all_directions, lstm_of
from ..run_time_operands import numbers_up_to
from .entering import contrib
from .integer_products import real_product

W_SCALE, W_ZERO, R_SCALE, R_ZERO = 8, 9, 10, 11
ZERO, ONE = (Constant(np.asarray(value, np.float32)) for value in (0, 1))
USUAL = ("sigmoid", "tanh", "tanh")


@contrib(
    "DynamicQuantizeLSTM",
    "activation_alpha activation_beta activations clip direction hidden_size input_forget",
    inputs=12,
)
def _dynamic_lstm(node: OnnxNode) -> Sequence[Node | None]:
    """Convert it as ONNX's, with weights that are [directions, input, 4 · hidden]. The inputs of all steps are
    brought to unsigned bytes together, the states of a batch before each step. With other activations than usual
    neither is rounded, so that the result is more exact than that of onnxruntime."""
    if not _has_usual_activations(node):
        inputs = list(node.inputs[:W_SCALE])
        inputs[W] = _weights(node, W, W_SCALE, W_ZERO)
        inputs[R] = _weights(node, R, R_SCALE, R_ZERO)
        return lstm_of(replace(node, inputs=inputs))
    quantized = dynamically_quantized(node[X])
    return all_directions(node, lambda direction: _Lstm(node, direction, quantized).results())


def _has_usual_activations(node: OnnxNode) -> bool:
    """Whether the activations are the usual ones of each direction."""
    names = [name.lower() for name in node.strings("activations") or ()]
    return all(name == USUAL[k % len(USUAL)] for k, name in enumerate(names))


def _weights(node: OnnxNode, index: int, scale: int, zero: int) -> Node:
    """Weights as real numbers, [directions, 4 · hidden, input]; scales are of directions, or of columns of each."""
    scales, zeros = (_of_columns(node[k]) for k in (scale, zero))
    return transpose(dequantize(node[index], scales, zeros), (0, 2, 1))


def _of_columns(x: Node) -> Node:
    return expand_dims(x, (1, 2) if tensor_of(x).ndim == 1 else (1,))


@dataclass(frozen=True, slots=True, eq=False)
class _Lstm:
    """One direction, as a loop over steps. Gates stand as in ONNX: input, output, forget, candidate."""

    node: OnnxNode
    of: Direction
    x: tuple[Node, Node, Node]  # bytes [time, batch, inputs], their scale and zero point

    @property
    def hidden(self) -> int:
        extent = const_int(self.node.type(R).shape[1])
        if extent is None:
            raise ModelError(f"{self.node}: the number of hidden units must be known, found {self.node.type(R)}")
        return extent

    def results(self) -> Sequence[Node]:
        """The states of all steps [time, batch, hidden], the last one, and the last cells."""
        gates = self._product(self.x, W, W_SCALE, W_ZERO)
        if (bias := self._bias()) is not None:
            gates = add(gates, bias)
        h, c = self._first(STATE), self._first(CELL)
        if (valid := self._valid()) is None:
            last_h, last_c, steps = scan(self._step, [h, c], [gates], self.of.reverse).fields
        else:
            last_h, last_c, _, steps = scan(self._valid_step, [h, c, h], [gates, valid], self.of.reverse).fields
        return [steps, last_h, last_c]

    def _product(self, rows: tuple[Node, Node, Node], weight: int, scale: int, zero: int) -> Node:
        quantized, rows_scale, rows_zero = rows
        sums = matmul_less_zeros(quantized, self._own(weight), rows_zero, self._own(zero))
        return real_product(sums, rows_scale, self._own(scale), None)

    def _own(self, index: int) -> Node:
        """What an input has for this direction; a constant stays one."""
        return self.node.finish(self.of.required(index))

    def _bias(self) -> Node | None:
        both, size = self.of.part(BIAS), 4 * self.hidden
        return None if both is None else add(self._cut(both, 0, size), self._cut(both, 1, size))

    @staticmethod
    def _cut(x: Node, number: int, size: int) -> Node:
        """One of several parts of the last axis that have this size."""
        return strided_slice(x, [number * size], [(number + 1) * size], [tensor_of(x).ndim - 1])

    def _first(self, index: int) -> Node:
        """A state before the first step, [batch, hidden]."""
        given = self.of.state(index)
        if given is not None:
            return given
        batch = tensor_of(self.of.x).shape[1]
        return broadcast_to_extents(ZERO, (batch, as_index(self.hidden)), [self.of.x])

    def _valid(self) -> Node | None:
        """Which samples have a step, [time, batch, 1]; None where all have all."""
        lengths = self.node.get(LENGTHS)
        if lengths is None:
            return None
        steps = numbers_up_to(self.node, tensor_of(self.of.x).shape[0])
        return expand_dims(less(expand_dims(steps, (1,)), cast(expand_dims(lengths, (0,)), "int64")), (2,))

    def _step(self, h: Node, c: Node, gates: Node) -> Sequence[Node]:
        """The state and the cell behind a step, and the row that it gives."""
        gates = add(gates, self._product(dynamically_quantized(h), R, R_SCALE, R_ZERO))
        in_gate, out_gate, forget, candidate = (self._cut(gates, k, self.hidden) for k in range(4))
        peephole = self.of.part(PEEPHOLES)
        of_in, of_out, of_forget = (None if peephole is None else self._cut(peephole, k, self.hidden) for k in range(3))
        taken = sigmoid(self._clipped(_peeping(in_gate, of_in, c)))
        coupled = self.node.flag("input_forget")
        kept = subtract(ONE, taken) if coupled else sigmoid(self._clipped(_peeping(forget, of_forget, c)))
        cell = add(multiply(kept, c), multiply(taken, tanh(self._clipped(candidate))))
        state = multiply(sigmoid(self._clipped(_peeping(out_gate, of_out, cell))), tanh(cell))
        return [state, cell, state]

    def _valid_step(self, h: Node, c: Node, row: Node, gates: Node, valid: Node) -> Sequence[Node]:
        """A step that samples without it leave their states at; these count as zeros where states become bytes."""
        state, cell, _ = self._step(row, c, gates)
        made = where(valid, state, ZERO)
        return [where(valid, state, h), where(valid, cell, c), made, made]

    def _clipped(self, x: Node) -> Node:
        bound = self.of.clip
        return x if bound == float("inf") else clip(x, -bound, bound)


def _peeping(gate: Node, weight: Node | None, cell: Node) -> Node:
    return gate if weight is None else add(gate, multiply(weight, cell))
