"""The attributes of recurrent operators: the activations of their gates, and the bound on what these are given.

Names, defaults and formulas are those of ONNX's operator LSTM.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.errors import TypeInferenceError
from ....ir.expr import Expr
from ...definition.attrs import Attrs, attr
from .. import activations


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation of a gate: its formula of an element, alpha and beta; and the defaults of those which it has."""

    formula: Callable[[Expr, float, float], Expr]
    alpha: float | None = None
    beta: float | None = None


ACTIVATIONS = {
    "Affine": Activation(lambda x, alpha, beta: x * alpha + beta, 1.0, 0.0),
    "Elu": Activation(lambda x, alpha, beta: activations.elu(x, alpha), 1.0),
    "HardSigmoid": Activation(activations.hard_sigmoid, 0.2, 0.5),
    "LeakyRelu": Activation(lambda x, alpha, beta: activations.leaky_relu(x, alpha), 0.01),
    "Relu": Activation(lambda x, alpha, beta: te.maximum(x, 0)),
    "ScaledTanh": Activation(lambda x, alpha, beta: te.tanh(x * beta) * alpha, 1.0, 1.0),
    "Sigmoid": Activation(lambda x, alpha, beta: te.sigmoid(x)),
    "Softplus": Activation(lambda x, alpha, beta: activations.softplus(x)),
    "Softsign": Activation(lambda x, alpha, beta: activations.softsign(x)),
    "Tanh": Activation(lambda x, alpha, beta: te.tanh(x)),
    "ThresholdedRelu": Activation(lambda x, alpha, beta: activations.thresholded_relu(x, alpha), 1.0),
}


def _known(names: tuple[str, ...]) -> str | None:
    return None if all(name in ACTIVATIONS for name in names) else f"must be of {', '.join(ACTIVATIONS)}"


@dataclass(frozen=True)
class RecurrentAttrs(Attrs):
    """The attributes of ``nn.gru_steps`` and ``nn.rnn_steps``, and those that all recurrences have; which activation is
    for which gate, the cell says."""

    activations: tuple[str, ...] = attr("the activations, by their names in ONNX", check=_known)
    alphas: tuple[float, ...] = attr("alpha of each activation; not used by those that have none")
    betas: tuple[float, ...] = attr("beta of each activation; not used by those that have none")
    clip: float = attr(
        "what activations of gates are given is held between this and minus this",
        default=math.inf,
        check=lambda v: None if v > 0 else "must be above 0",
    )

    def activated(self, number: int, x: Expr) -> Expr:
        """An activation of an element."""
        return ACTIVATIONS[self.activations[number]].formula(x, self.alphas[number], self.betas[number])

    def gate(self, number: int, total: Expr) -> Expr:
        """An activation of what a gate is given."""
        held = total if math.isinf(self.clip) else activations.clamp(total, -self.clip, self.clip)
        return self.activated(number, held)


ActivationLike = str | tuple[str, float] | tuple[str, float, float]
"""What users give: the name of an activation, and if need be its alpha, and its beta."""


def check_activations(attrs: RecurrentAttrs, count: int) -> None:
    """Raises ``TypeInferenceError`` unless there are so many activations, each with its alpha and beta."""
    if not len(attrs.activations) == len(attrs.alphas) == len(attrs.betas) == count:
        raise TypeInferenceError(f"it has {count} activations, each with alpha and beta, found {attrs}")


def parameters_of(
    op: str, given: Sequence[ActivationLike]
) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    """The names, alphas and betas of activations, as attributes have them. Raises ``TypeInferenceError``, with the name
    of the operator, for an activation that there is not."""
    rows = [(each,) if isinstance(each, str) else each for each in given]
    unknown = [row[0] for row in rows if row[0] not in ACTIVATIONS]
    if unknown:
        raise TypeInferenceError(f"{op}: there is no activation {unknown[0]!r}; there are {', '.join(ACTIVATIONS)}")
    known = [ACTIVATIONS[row[0]] for row in rows]
    return (
        tuple(row[0] for row in rows),
        tuple(row[1] if len(row) > 1 else made.alpha or 0.0 for row, made in zip(rows, known, strict=True)),
        tuple(row[2] if len(row) > 2 else made.beta or 0.0 for row, made in zip(rows, known, strict=True)),
    )
