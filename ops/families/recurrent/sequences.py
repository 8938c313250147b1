"""What stands around a recurrence: the products of all steps with the input weights, the order of the steps, and what
is given of sequences of unequal lengths."""

from __future__ import annotations

from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....graph.node import Node, tensor_of
from ....ir.constants import const_int
from ...definition.accumulate import accumulator
from ..binary import add, less
from ..cast import cast
from ..creation import arange, full
from ..gather import gather_nd
from ..matmul.matmul import matmul
from ..open_extents import last_of_axis, positions
from ..reshape import expand_dims, reshape, squeeze
from ..reverse_sequence import reverse_sequence
from ..select import where
from ..slicing import END, strided_slice
from ..transpose import transpose

TIME = 0


def input_products(x: Node, w: Node, bias: Node | None) -> Node:
    """x [time, batch, inputs] times the weights w [gates · hidden, inputs], plus the bias, in the dtype of states.

    It is one product of all rows, unless both time and batch are open.
    """
    time, batch, inputs = (const_int(extent) for extent in tensor_of(x).shape)
    columns = const_int(tensor_of(w).shape[0])
    if not (columns and inputs and (time or batch)):
        return _products(x, w, bias)
    made = _products(reshape(x, (-1, inputs)), w, bias)
    return reshape(made, (-1, batch, columns) if batch else (time or 0, -1, columns))


def _products(rows: Node, w: Node, bias: Node | None) -> Node:
    made = matmul(rows, transpose(w))
    return in_dtype(made if bias is None else add(made, bias), accumulator(tensor_of(rows).dtype))


def in_dtype(x: Node, kind: DType) -> Node:
    """x in a dtype; itself, if it has that."""
    return x if tensor_of(x).dtype is kind else cast(x, kind)


def as_state(given: Node | None, panels: Node, kind: DType) -> Node:
    """A state before the first step, in the dtype of states; where none is given, 0."""
    hidden = const_int(tensor_of(panels).shape[1]) or 0
    return full((1, hidden), 0.0, kind) if given is None else in_dtype(given, kind)


def check_arguments(op: str, x: Node, w: Node, *others: Node | None) -> None:
    """Raises ``TypeInferenceError``, with the operator, unless x is [time, batch, inputs], w a matrix, and the others,
    which may be left out, are tensors."""
    sequence, weights, *_ = map(tensor_of, (x, w, *(node for node in others if node is not None)))
    if sequence.ndim != 3 or weights.ndim != 2:
        raise TypeInferenceError(
            f"{op}: x must be [time, batch, inputs] and w a matrix, found {sequence} and {weights}"
        )


@dataclass(frozen=True, slots=True)
class Sequences:
    """Sequences of the lengths [batch], or of all steps, which a recurrence goes through from the start or the end."""

    lengths: Node | None
    reverse: bool

    def from_start(self, x: Node) -> Node:
        """x [time, batch, …] in the order in which the recurrence goes; the same turns its results back."""
        if not self.reverse:
            return x
        if self.lengths is None:
            return strided_slice(x, [-1], [-END], [TIME], [-1])
        return reverse_sequence(x, self.lengths, TIME, 1)

    def of_steps(self, states: Node) -> Node:
        """What each step gives, of all states [time + 1, batch, hidden]; 0 beyond the length."""
        y = self.from_start(strided_slice(states, [1], [END], [TIME]))
        if self.lengths is None:
            return y
        time = tensor_of(y).shape[TIME]
        count = const_int(time)
        steps = positions(time, [y]) if count is None else arange(0, count)
        within = less(expand_dims(steps, [1, 2]), expand_dims(cast(self.lengths, "int64"), [0, 2]))
        return where(within, y, full((), 0.0, tensor_of(y).dtype))

    def last(self, states: Node) -> Node:
        """The state after the last step of each sequence, [batch, hidden]."""
        if self.lengths is None:
            return squeeze(last_of_axis(states, TIME), [TIME])
        return gather_nd(transpose(states, (1, 0, 2)), expand_dims(self.lengths, [1]), batch_dims=1)
