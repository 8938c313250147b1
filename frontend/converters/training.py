"""The optimizers of ai.onnx.preview.training. R is the learning rate, T how many steps there were before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph.node import Constant, Node, tensor_of
from ...ops.families.binary import greater, power
from ...ops.families.reshape import reshape
from ...ops.families.select import where
from ...ops.families.unary import sqrt
from ..onnx_node import OnnxNode
from ..registry import converter
from ..structure import TRAINING
from .elementwise import as_dtype

Step = Callable[[OnnxNode, Sequence[Node], "Numbers"], Sequence[Node]]


class Numbers:
    """R and T as scalars, and attributes, in the dtype of a tensor."""

    def __init__(self, node: OnnxNode, like: Node) -> None:
        self._node, self._kind = node, tensor_of(like).dtype
        self.rate, self.steps = (as_dtype(reshape(node[k], []), self._kind) for k in range(2))
        self.has_steps = greater(self.steps, self.of(0.0))

    def of(self, value: float) -> Constant:
        """A constant without axes, in the dtype of the tensor that is optimized."""
        return Constant(np.array(value, self._kind.to_numpy()))

    def real(self, name: str, default: float | None = None) -> Constant:
        """An attribute of the node as such a constant. Raises ``ModelError`` if it is missing and has no default."""
        return self.of(self._node.real(name, default))


def _each(node: OnnxNode, count: int, step: Step) -> list[Node]:
    """What a step makes of each tensor with its gradient and states, of which there are ``count``; results go by kind,
    as the inputs do."""
    groups = (len(node.all) - 2) // count
    if groups < 1 or len(node.all) != 2 + groups * count:
        raise node.unsupported(f"{len(node.all)} inputs, which are not 2 and {count} for each tensor,")
    made = []
    for k in range(groups):
        tensors = [node[2 + k + part * groups] for part in range(count)]
        made.append(step(node, tensors, Numbers(node, tensors[0])))
    return [results[part] for part in range(count - 1) for results in made]


def _momentum(node: OnnxNode, tensors: Sequence[Node], numbers: Numbers) -> Sequence[Node]:
    x, gradient, velocity = tensors
    gradient = numbers.real("norm_coefficient") * x + gradient
    beta = where(numbers.has_steps, numbers.real("beta"), numbers.of(1.0))
    alpha = numbers.real("alpha")
    velocity = alpha * velocity + beta * gradient
    change = gradient + alpha * velocity if node.string("mode") == "nesterov" else velocity
    return x - numbers.rate * change, velocity


def _adagrad(node: OnnxNode, tensors: Sequence[Node], numbers: Numbers) -> Sequence[Node]:
    x, gradient, squares = tensors
    rate = numbers.rate / (numbers.of(1.0) + numbers.steps * numbers.real("decay_factor", 0.0))
    gradient = numbers.real("norm_coefficient", 0.0) * x + gradient
    squares = squares + gradient * gradient
    return x - rate * gradient / (sqrt(squares) + numbers.real("epsilon", 1e-6)), squares


def _adam(node: OnnxNode, tensors: Sequence[Node], numbers: Numbers) -> Sequence[Node]:
    x, gradient, means, squares = tensors
    one, alpha, beta = numbers.of(1.0), numbers.real("alpha", 0.9), numbers.real("beta", 0.999)
    gradient = numbers.real("norm_coefficient", 0.0) * x + gradient
    means = alpha * means + (one - alpha) * gradient
    squares = beta * squares + (one - beta) * (gradient * gradient)
    corrected = numbers.rate * sqrt(one - power(beta, numbers.steps)) / (one - power(alpha, numbers.steps))
    rate = where(numbers.has_steps, corrected, numbers.rate)
    x = x - rate * means / (sqrt(squares) + numbers.real("epsilon", 1e-6))
    return (one - numbers.real("norm_coefficient_post", 0.0)) * x, means, squares


@converter("Momentum", 1, domain=TRAINING)
def _momentum_1(node: OnnxNode) -> Sequence[Node]:
    return _each(node, 3, _momentum)


@converter("Adagrad", 1, domain=TRAINING)
def _adagrad_1(node: OnnxNode) -> Sequence[Node]:
    return _each(node, 3, _adagrad)


@converter("Adam", 1, domain=TRAINING)
def _adam_1(node: OnnxNode) -> Sequence[Node]:
    return _each(node, 4, _adam)
