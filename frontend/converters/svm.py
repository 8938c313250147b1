"""ONNX's support vector machines: a kernel between rows and support vectors, then sums of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...base.dtype import FLOAT32, INT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ops.families import parametric, reduce, unary
from ...ops.families.argreduce import argmax
from ...ops.families.binary import power, whole_power
from ...ops.families.cast import cast
from ...ops.families.coupling import coupled_probabilities
from ...ops.families.matmul.matmul import matmul
from ...ops.families.reshape import expand_dims, squeeze
from ...ops.families.select import where
from ...ops.families.tree_tables import Floats
from ..assumed_extent import with_extent
from ..class_scores import float_matrix, label_names, labels, mirrored, number, transform_of, transformed
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"
LEAST_PROBABILITY = 1e-7
"""How far the probabilities of pairs are kept from 0 and from 1, as in libsvm and onnxruntime."""


@converter("SVMRegressor", 1, domain=DOMAIN)
def _regressor(node: OnnxNode) -> Node:
    """Without support vectors the coefficients are those of the columns."""
    coefficients, count = node.float_array("coefficients"), node.integer("n_supports", 0)
    if count:
        scores = _sums_of_kernel(node, count, _sized(node, coefficients, (count, 1)))
    else:
        scores = matmul(float_matrix(node), Constant(coefficients.reshape(-1, 1)))
    scores = scores + _rho(node)[0]
    return where(scores > 0.0, number(1, scores), number(-1, scores)) if node.flag("one_class") else scores


@converter("SVMClassifier", 1, domain=DOMAIN)
def _classifier(node: OnnxNode) -> list[Node]:
    supports, names = node.ints("vectors_per_class") or (), label_names(node)
    if len(names) < 2:
        raise ModelError(f"{node}: there must be two class labels or more, found {len(names)}")
    return _one_against_one(node, supports) if sum(supports) else _one_against_all(node)


def _one_against_one(node: OnnxNode, supports: tuple[int, ...]) -> list[Node]:
    """A score for each pair of classes, which is a vote for one of both."""
    names, transform = label_names(node), transform_of(node)
    if len(supports) != len(names):
        raise ModelError(f"{node}: vectors_per_class must have {len(names)} numbers, found {len(supports)}")
    pairs = [*combinations(range(len(names)), 2)]
    rho = _rho(node)
    if len(rho) < len(pairs):
        raise ModelError(f"{node}: rho must have {len(pairs)} numbers, found {len(rho)}")
    scores = _sums_of_kernel(node, sum(supports), _pair_coefficients(node, supports, pairs)) + rho[: len(pairs)]
    votes = [np.eye(len(names), dtype=np.float32)[[pair[side] for pair in pairs]] for side in range(2)]
    for_first = cast(scores > 0.0, FLOAT32)
    chosen = argmax(matmul(for_first, Constant(votes[0] - votes[1])) + votes[1].sum(axis=0), -1)
    if node.has("prob_a") and len(node.float_array("prob_a")):
        return [labels(node, chosen), transformed(_probabilities(node, scores, len(names)), transform)]
    if len(names) > 2:
        return [labels(node, chosen), transformed(scores, transform)]
    return [labels(node, chosen), mirrored(node, scores, transform, probability=transform != "NONE")]


def _probabilities(node: OnnxNode, scores: Node, classes: int) -> Node:
    """The probabilities of the classes, [rows, classes], of the scores of pairs: Platt's sigmoid of each score, then
    what agrees best with all of them."""
    slopes, shifts = (
        _sized(node, node.float_array(name), (1, classes * (classes - 1) // 2)) for name in ("prob_a", "prob_b")
    )
    of_pairs = 1.0 - unary.sigmoid(scores * slopes + shifts)
    return coupled_probabilities(parametric.clip(of_pairs, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY), classes)


def _pair_coefficients(node: OnnxNode, supports: tuple[int, ...], pairs: list[tuple[int, int]]) -> Floats:
    """[support vectors, pairs]: row j - 1 of the coefficients has those of class i against class j."""
    given = _sized(node, node.float_array("coefficients"), (len(supports) - 1, sum(supports)))
    ends = np.cumsum(supports)
    of_class = [slice(end - count, end) for end, count in zip(ends, supports, strict=True)]
    made = np.zeros((sum(supports), len(pairs)), np.float32)
    for k, (i, j) in enumerate(pairs):
        made[of_class[i], k] = given[j - 1, of_class[i]]
        made[of_class[j], k] = given[i, of_class[j]]
    return made


def _one_against_all(node: OnnxNode) -> list[Node]:
    """A score for each class, of the columns. Between two classes the sign of the larger score decides, as in
    onnxruntime."""
    names = label_names(node)
    coefficients = node.float_array("coefficients")
    x = with_extent(float_matrix(node), 1, len(coefficients) // max(len(names), 1))
    columns = node.numbers(tensor_of(x).shape[1:])[0]
    scores = matmul(x, Constant(_sized(node, coefficients, (len(names), columns)).T.copy()))
    scores = scores + _rho(node)[0]
    chosen: Node = argmax(scores, -1)
    if len(names) == 2:
        positive = bool((coefficients >= 0).all())
        largest = squeeze(reduce.max(scores, -1, keepdims=True), [1])
        second = largest >= 0.5 if positive else largest > 0.0
        chosen = where(second, Constant(np.array(1, np.int64)), cast(chosen, INT64))
    return [labels(node, chosen), transformed(scores, transform_of(node))]


def _sums_of_kernel(node: OnnxNode, count: int, coefficients: Floats) -> Node:
    """Sums over the support vectors of the kernel with each row, times coefficients, [rows, sums]. Those of the linear
    kernel are products of the rows with weights, which are summed now, in float64: where vectors cancel, as those of
    one class do, sums of float32 would leave little of the score."""
    found = node.float_array("support_vectors")
    x = with_extent(float_matrix(node), 1, len(found) // max(count, 1))
    columns = node.numbers(tensor_of(x).shape[1:])[0]
    vectors = _sized(node, found, (count, columns))
    if node.string("kernel_type", "LINEAR") == "LINEAR":
        weights = vectors.T.astype(np.float64) @ coefficients.astype(np.float64)
        return matmul(x, Constant(weights.astype(np.float32)))
    return matmul(_kernel(node, x, vectors), Constant(coefficients))


def _kernel(node: OnnxNode, x: Node, vectors: Floats) -> Node:
    """The kernel between each row and each support vector, [rows, vectors]."""
    gamma, coef0, degree = (float(v) for v in _parameters(node))
    name = node.string("kernel_type")
    if name == "RBF":
        apart = expand_dims(x, 1) - vectors
        return unary.exp(reduce.sum_square(apart, -1) * -gamma)
    product = matmul(x, Constant(vectors.T.copy()))
    match name:
        case "POLY":
            return _power(product * gamma + coef0, degree)
        case "SIGMOID":
            return unary.tanh(product * gamma + coef0)
        case _:
            raise node.unsupported(f"the kernel {name!r}, which is none of LINEAR, POLY, RBF and SIGMOID,")


def _power(x: Node, degree: float) -> Node:
    return whole_power(x, int(degree)) if degree >= 1 and degree.is_integer() else power(x, number(degree, x))


def _parameters(node: OnnxNode) -> Floats:
    """gamma, coef0 and degree."""
    given = node.float_array("kernel_params")
    if len(given) not in (0, 3):
        raise ModelError(f"{node}: kernel_params are gamma, coef0 and degree, found {len(given)} numbers")
    return given if len(given) else np.zeros(3, np.float32)


def _rho(node: OnnxNode) -> Floats:
    given = node.float_array("rho")
    if not len(given):
        raise ModelError(f"{node}: attribute rho is missing")
    return given


def _sized(node: OnnxNode, values: Floats, shape: tuple[int, int]) -> Floats:
    """Numbers of an attribute as a matrix. Raises ``ModelError`` where there are more or fewer."""
    if len(values) != shape[0] * shape[1]:
        raise ModelError(f"{node}: it needs {shape[0]} x {shape[1]} coefficients, found {len(values)}")
    return values.reshape(shape)
