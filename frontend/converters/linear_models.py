"""ONNX's linear classifiers and regressors."""

from __future__ import annotations

import numpy as np

from ...base.dtype import INT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ops.families.argreduce import argmax
from ...ops.families.cast import cast
from ...ops.families.matmul.matmul import matmul
from ...ops.families.reshape import squeeze
from ..assumed_extent import with_extent
from ..class_scores import alone, float_matrix, label_names, labels, mirrored, transform_of, transformed
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"


@converter("LinearRegressor", 1, domain=DOMAIN)
def _regressor(node: OnnxNode) -> Node:
    targets = node.integer("targets", 1)
    scores, transform = _scores(node, targets), transform_of(node)
    return transformed(scores, transform) if targets > 1 else alone(scores, transform)


@converter("LinearClassifier", 1, domain=DOMAIN)
def _classifier(node: OnnxNode) -> list[Node]:
    """A single score is that of the second of two classes."""
    names, transform = label_names(node), transform_of(node)
    count = len(node.float_array("intercepts")) or len(names)
    scores = _scores(node, count)
    if count > 1:
        if count != len(names):
            raise ModelError(f"{node}: there are {count} intercepts for {len(names)} class labels")
        return [labels(node, argmax(scores, -1)), transformed(scores, transform)]
    if len(names) != 2:
        raise ModelError(f"{node}: a single score needs two class labels, found {len(names)}")
    chosen = cast(squeeze(scores > 0.0, [1]), INT64)
    return [labels(node, chosen), mirrored(node, scores, transform, probability=True)]


def _scores(node: OnnxNode, count: int) -> Node:
    """The product of rows and coefficients, [rows, count], with the intercepts."""
    coefficients, intercepts = node.float_array("coefficients"), node.float_array("intercepts")
    x = with_extent(float_matrix(node), 1, len(coefficients) // max(count, 1))
    columns = node.numbers(tensor_of(x).shape[1:])[0]
    if len(coefficients) != count * columns or len(intercepts) not in (0, count):
        raise ModelError(f"{node}: {count} scores of {columns} columns take {count * columns} coefficients and {count} "
                         f"intercepts, found {len(coefficients)} and {len(intercepts)}")  # fmt: skip
    product = matmul(x, Constant(np.ascontiguousarray(coefficients.reshape(count, columns).T)))
    return product + intercepts if len(intercepts) else product
