"""What ONNX's classifiers and regressors do with scores in the end: the transforms that they have in common."""

from __future__ import annotations

import numpy as np

from ..base.dtype import FLOAT32, INT64, DType
from ..base.errors import ModelError
from ..base.output_form import OutputForm
from ..graph.node import Constant, Node, tensor_of
from ..ops.families import reduce, unary
from ..ops.families.cast import cast
from ..ops.families.concatenate import concatenate
from ..ops.families.gather import take
from ..ops.families.reshape import expand_dims
from ..ops.families.select import where
from ..ops.families.softmax import softmax
from .onnx_node import OnnxNode

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""By the numbers that ``TreeEnsemble`` has for them."""
ZERO = 1e-7
"""Up to here a score counts as 0 for ``SOFTMAX_ZERO``, which is what onnxruntime does."""


def transform_of(node: OnnxNode) -> str:
    """The transform that a node asks for by name. Raises ``ModelError`` for one that there is not."""
    name = node.string("post_transform", "NONE")
    if name not in TRANSFORMS:
        raise node.unsupported(f"a post_transform of {name!r}, which is none of {', '.join(TRANSFORMS)},")
    return name


def transformed(scores: Node, transform: str) -> Node:
    """The scores of rows, [rows, classes], after a transform."""
    match transform:
        case "SOFTMAX":
            return softmax(scores, -1)
        case "LOGISTIC":
            return unary.sigmoid(scores)
        case "SOFTMAX_ZERO":
            return _softmax_of_others(scores)
        case "PROBIT":
            return probit(scores)
        case _:
            return scores


def _softmax_of_others(scores: Node) -> Node:
    """softmax, in which scores of 0 stay so and do not count."""
    largest = reduce.max(scores, -1, keepdims=True)
    exponentials = unary.exp(scores - largest)
    others = unary.abs(scores) > ZERO
    total = reduce.sum(where(others, exponentials, number(0, scores)), -1, keepdims=True)
    return where(others, exponentials, scores * unary.exp(-largest)) / total


def probit(p: Node) -> Node:
    """Where the normal distribution reaches probability p, by Winitzki's approximation of the inverse of erf, with the
    constant 0.147, as onnxruntime computes it: it is off by up to 0.5 %."""
    x = p * 2.0 - 1.0
    logarithm = unary.log((1.0 - x) * (1.0 + x))
    half = logarithm * 0.5 + 2.0 / (3.14159 * 0.147)
    root = unary.sqrt(unary.sqrt(half * half - logarithm * (1 / 0.147)) - half)
    return where(x < 0.0, -root, root) * 1.41421356


def alone(score: Node, transform: str) -> Node:
    """The score of a class or target without another: PROBIT is the only transform that there is."""
    return probit(score) if transform == "PROBIT" else score


def mirrored(node: OnnxNode, score: Node, transform: str, probability: bool) -> Node:
    """The scores of both classes, of one score, [rows, 1], that may be a probability. Raises ``ModelError`` for PROBIT,
    which is defined for neither."""
    match transform:
        case "PROBIT":
            raise node.unsupported("PROBIT of two classes that share a score")
        case "LOGISTIC":
            return transformed(concatenate([-score, score], 1), transform)
        case _:
            return concatenate([1.0 - score if probability else -score, score], 1)


def float_matrix(node: OnnxNode, *kept: DType) -> Node:
    """The first input as a matrix of float32, or of one of the dtypes ``kept``. A vector is a row."""
    if node.rank not in (1, 2):
        raise ModelError(f"{node}: it takes a matrix or a vector, found {node.type()}")
    x = node[0] if node.rank == 2 else expand_dims(node[0], 0)
    return x if tensor_of(x).dtype in (FLOAT32, *kept) else cast(x, FLOAT32)


def number(value: float, like: Node) -> Constant:
    """A number in the dtype of a node."""
    return Constant(np.array(value, tensor_of(like).dtype.to_numpy()))


def label_names(node: OnnxNode) -> tuple[str, ...] | tuple[int, ...]:
    """The labels of the classes, as the attributes of any of the classifiers have them. Raises ``ModelError`` where
    there are none."""
    names = node.strings("classlabels_strings") or node.ints("classlabels_int64s") or node.ints("classlabels_ints")
    if not names:
        raise ModelError(f"{node}: there are no class labels")
    return names


def labels(node: OnnxNode, classes: Node) -> Node:
    """The labels of classes, which are given by number, [rows]."""
    names = node.strings("classlabels_strings")
    if names:
        return node.forms.put(cast(classes, INT64), OutputForm("labels", names))
    return take(Constant(np.array(label_names(node), np.int64)), classes)
