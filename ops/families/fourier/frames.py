"""``nn.frames``: the windows of a signal that begin at every so many elements, as a short-time transform reads them."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.errors import TypeInferenceError
from ....graph.node import Call, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....te.tensor import Tensors
from ...definition.arguments import integer
from ...definition.attrs import Attrs, attr, positive
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute


@dataclass(frozen=True)
class FramesAttrs(Attrs):
    """The attributes of ``nn.frames``."""

    length: int = attr("how many elements a frame has", check=positive)
    step: int = attr("how far the next frame begins behind it", check=positive)


def _relation(types: Sequence[Type], attrs: FramesAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.ndim != 3:
        raise TypeInferenceError(f"x must be signals [batch, length, components], found {x}")
    known = const_int(x.shape[1])
    if known is not None and known < attrs.length:
        raise TypeInferenceError(f"signals of {known} elements have no frame of {attrs.length}")
    count = (x.shape[1] - attrs.length) // attrs.step + 1
    return TensorType((x.shape[0], count, as_index(attrs.length), x.shape[2]), x.dtype)


def _compute(attrs: FramesAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs

    def element(n: Axis, frame: Axis, k: Axis, component: Axis) -> Expr:
        return x[n, frame * attrs.step + k, component]

    return te.compute(tensor_argument(result, "result").shape, element, name="frames")


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """A signal has a frame at least."""
    return (tensor_of(call.args[0]).shape[1] - call.attrs.length,)


FRAMES = register_op(
    "nn.frames",
    "the windows of signals that begin at every so many elements: [batch, frames, length, components]",
    [("x", "[batch, signal, components]; a signal has at least the elements of a frame")],
    _relation,
    OpPattern.OPAQUE,  # each element of a signal is in several frames, and is to be computed once
    FramesAttrs,
    support_level=4,
    extent_rule=_asked_of_extents,
)
register_compute(FRAMES, _compute)


def frames(x: Node, length: int, step: int) -> Call:
    """The windows of ``length`` elements of ``x`` [batch, signal, components], ``step`` apart; what is left over at the
    end is in none."""
    return FRAMES(x, attrs=FramesAttrs(integer(length, "length"), integer(step, "step")))
