"""coupled_probabilities: probabilities of classes from those of each class against each other one.

Source: Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling" (2004), second
approach, in the form of Algorithm 2 and with the stopping rule of libsvm, which scikit-learn and onnxruntime share: the
probabilities p minimise p' Q p, one coordinate after another. How many sweeps a row takes depends on its data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.NORMALISATION

MOST_SWEEPS = 100
"""Where libsvm gives up, with what it has."""
TOLERANCE = 0.005
"""The share of 1 / classes up to which the gradient counts as zero."""


@dataclass(frozen=True)
class CouplingAttrs(Attrs):
    """The attributes of ``coupled_probabilities``."""

    classes: int = attr("how many classes there are", check=lambda v: None if v >= 2 else "must be 2 or more")

    @property
    def pairs(self) -> int:
        """How many pairs of classes there are."""
        return self.classes * (self.classes - 1) // 2


def _relation(types: Sequence[Type], attrs: CouplingAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(FLOAT_KINDS)}, found {x.dtype}")
    problem = f"x must be [rows, {attrs.pairs}], a column for each pair of {attrs.classes} classes, found {x}"
    if x.ndim != 2:
        raise TypeInferenceError(problem)
    same_extent(x.shape[1], as_index(attrs.pairs), problem)
    return TensorType((x.shape[0], as_index(attrs.classes)), x.dtype)


def _compute(attrs: CouplingAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    rows, kind = x.shape[0], accumulator(x.dtype)

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        classes = as_index(attrs.classes)
        with ib.for_range(0, rows, name="row", kind="parallel") as row:
            form = ib.allocate(kind, (classes, classes), name="form")
            _fill_form(ib, form, lambda pair: te.cast(source[row, pair], kind), attrs.classes)
            descent = _Descent(
                ib,
                attrs.classes,
                form,
                ib.allocate(kind, (classes,), name="p"),
                ib.allocate(kind, (classes,), name="product"),
                ib.allocate(kind, (), name="value"),
            )
            descent.run()
            with ib.for_range(0, classes, name="i") as i:
                target[row, i] = te.cast(descent.p[i], x.dtype)
        return ib.get()

    return te.extern((rows, as_index(attrs.classes)), [x], body, name="coupled_probabilities", dtype=x.dtype)


def _fill_form(ib: IRBuilder, form: BufferPtr, pair_of: Callable[[Expr], Expr], classes: int) -> None:
    """Q: on the diagonal the sum of squares of the others' probabilities against the class, beside it the product of
    both probabilities of the pair, negated. Pairs stand in the order (0, 1), (0, 2) … (1, 2) …"""
    one = te.const(1.0, form.dtype)
    with ib.for_range(0, classes, name="i") as i:
        form[i, i] = te.const(0.0, form.dtype)
    pair = ib.allocate("index", (), name="pair")
    pair[()] = as_index(0)
    with ib.for_range(0, classes, name="i") as i, ib.for_range(i + 1, classes, name="j") as j:
        first = ib.let("first", pair_of(pair[()])).as_expr()
        second = ib.let("second", one - first).as_expr()
        form[i, i] = form[i, i] + second * second
        form[j, j] = form[j, j] + first * first
        form[i, j] = -(first * second)
        form[j, i] = -(first * second)
        pair[()] = pair[()] + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Descent:
    """Writes the descent of one row."""

    ib: IRBuilder
    classes: int
    form: BufferPtr
    p: BufferPtr
    product: BufferPtr
    """Q p."""
    value: BufferPtr
    """p' Q p."""

    def run(self) -> None:
        """Sweep over the coordinates until each element of Q p is p' Q p, nearly."""
        ib, kind = self.ib, self.p.dtype
        with ib.for_range(0, self.classes, name="i") as i:
            self.p[i] = te.const(1.0 / self.classes, kind)
        sweeps, error = ib.allocate("index", (), name="sweeps"), ib.allocate(kind, (), name="error")
        sweeps[()] = as_index(0)
        self._evaluate(error)
        least = te.const(TOLERANCE / self.classes, kind)
        with ib.while_loop((sweeps[()] < MOST_SWEEPS) & ~(error[()] < least)):
            with ib.for_range(0, self.classes, name="i") as i:
                self._step(i.as_expr())
            sweeps[()] = sweeps[()] + 1
            self._evaluate(error)

    def _evaluate(self, error: BufferPtr) -> None:
        """Compute Q p and p' Q p anew, and how far they are apart at the most."""
        ib, zero = self.ib, te.const(0.0, self.p.dtype)
        self.value[()] = zero
        error[()] = zero
        with ib.for_range(0, self.classes, name="i") as i:
            self.product[i] = zero
            with ib.for_range(0, self.classes, name="j") as j:
                self.product[i] = self.product[i] + self.form[i, j] * self.p[j]
            self.value[()] = self.value[()] + self.p[i] * self.product[i]
        with ib.for_range(0, self.classes, name="i") as i:
            error[()] = te.maximum(error[()], te.abs(self.product[i] - self.value[()]))

    def _step(self, i: Expr) -> None:
        """Move coordinate i to its minimum, and have the sum be 1 again."""
        ib, one, two = self.ib, te.const(1.0, self.p.dtype), te.const(2.0, self.p.dtype)
        change = ib.let("change", (self.value[()] - self.product[i]) / self.form[i, i]).as_expr()
        self.p[i] = self.p[i] + change
        grown = self.value[()] + change * (change * self.form[i, i] + two * self.product[i])
        self.value[()] = grown / (one + change) / (one + change)
        with ib.for_range(0, self.classes, name="j") as j:
            self.product[j] = (self.product[j] + change * self.form[i, j]) / (one + change)
            self.p[j] = self.p[j] / (one + change)


COUPLED_PROBABILITIES = register_op(
    "coupled_probabilities",
    "probabilities of classes from those of each class against each other one",
    [("x", "[rows, pairs]")],
    _relation,
    OpPattern.OPAQUE,
    CouplingAttrs,
    support_level=5,
)
register_compute(COUPLED_PROBABILITIES, _compute)


def coupled_probabilities(x: Node, classes: int) -> Call:
    """Probabilities of classes, [rows, classes], that agree best with those of pairs, [rows, pairs].

    Column (i, j) is the probability that a row belongs to class i if it belongs to i or j, for i < j, in the order
    (0, 1), (0, 2) … (1, 2) …; it must be above 0 and below 1. Raises ``TypeInferenceError`` for another number of
    columns than there are pairs.
    """
    return COUPLED_PROBABILITIES(x, attrs=CouplingAttrs(classes))
