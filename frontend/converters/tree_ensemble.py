"""ONNX's ensembles of decision trees. Where the standard leaves open what is meant, onnxruntime decides."""

from __future__ import annotations

import numpy as np

from ...base.dtype import FLOAT32, FLOAT64, INT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ops.families.argreduce import argmax
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.parametric import isinf
from ...ops.families.reshape import squeeze
from ...ops.families.select import where
from ...ops.families.slicing import strided_slice
from ...ops.families.tree_ensemble import tree_ensemble
from ...ops.families.tree_tables import Floats, tree_tables
from ..assumed_extent import with_extent
from ..class_scores import (
    TRANSFORMS,
    alone,
    float_matrix,
    label_names,
    labels,
    mirrored,
    number,
    transform_of,
    transformed,
)
from ..forest import Forest, forest_of_ids, forest_of_indices
from ..forest_comparisons import comparisons
from ..forest_weights import leaf_weights, with_first_weights
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""By the numbers that ``TreeEnsemble`` has for them."""


@converter("TreeEnsembleRegressor", 1, 3, domain=DOMAIN)
def _regressor(node: OnnxNode) -> Node:
    x = float_matrix(node, FLOAT64)
    forest = forest_of_ids(node, tensor_of(x).dtype.to_numpy(), "target")
    aggregate = node.string("aggregate_function", "SUM")
    if aggregate not in AGGREGATES:
        raise node.unsupported(f"an aggregate_function of {aggregate!r}, which is none of {', '.join(AGGREGATES)},")
    targets = node.integer("n_targets")
    scores = _aggregated(node, x, with_first_weights(forest) if targets == 1 else forest, targets, aggregate)
    return cast(_finished(scores, node.float_array("base_values"), targets, transform_of(node)), FLOAT32)


@converter("TreeEnsemble", 5, domain=DOMAIN)
def _ensemble(node: OnnxNode) -> Node:
    x = float_matrix(node, FLOAT64)
    forest = forest_of_indices(node, tensor_of(x).dtype.to_numpy())
    aggregate, transform = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
    if aggregate not in range(len(AGGREGATES)) or transform not in range(len(TRANSFORMS)):
        raise node.unsupported(f"aggregate_function {aggregate} or post_transform {transform}")
    targets = node.integer("n_targets")
    scores = _aggregated(node, x, forest, targets, AGGREGATES[aggregate])
    return cast(_finished(scores, np.array([]), targets, TRANSFORMS[transform]), node.type().dtype)


def _scores(node: OnnxNode, x: Node, forest: Forest, targets: int, aggregate: str) -> Node:
    if const_int(tensor_of(x).shape[1]) is None:  # those that the nodes ask for
        asked = int(forest.features.max(initial=0)) + 1
        x = with_extent(strided_slice(x, [0], [asked], axes=[1]), 1, asked)
    columns = node.numbers(tensor_of(x).shape[1:])[0]
    if forest.features.size and not 0 <= forest.features.min() <= forest.features.max() < columns:
        raise ModelError(f"{node}: nodes ask for column {forest.features.max()}, but there are {columns}")
    weights = leaf_weights(node, forest, targets, aggregate)
    tables = tree_tables(comparisons(forest, columns, weights.rows), weights.targets)
    negated = (tables.links[:, 0] >= columns).any()
    return tree_ensemble(concatenate([x, -x], 1) if negated else x, tables, weights.matrix, targets, aggregate)


def _aggregated(node: OnnxNode, x: Node, forest: Forest, targets: int, aggregate: str) -> Node:
    match aggregate:
        case "SUM":
            return _scores(node, x, forest, targets, "sum")
        case "AVERAGE":
            return _scores(node, x, forest, targets, "sum") / float(len(forest.roots))
        case _:
            scores = _scores(node, x, forest, targets, aggregate.lower())
            return where(isinf(scores), number(0, scores), scores)  # where no leaf gave the target a weight


def _finished(scores: Node, base: Floats, targets: int, transform: str) -> Node:
    """The scores of a regressor with base values, where there is one for each target, and transformed."""
    if len(base) == targets:
        scores = scores + base.astype(tensor_of(scores).dtype.to_numpy())
    return transformed(scores, transform) if targets > 1 else alone(scores, transform)


@converter("TreeEnsembleClassifier", 1, 3, domain=DOMAIN)
def _classifier(node: OnnxNode) -> list[Node]:
    x = float_matrix(node, FLOAT64)
    kind = tensor_of(x).dtype.to_numpy()
    forest = forest_of_ids(node, kind, "class")
    classes = len(label_names(node))
    scores = _scores(node, x, forest, classes, "sum")
    base = node.float_array("base_values").astype(kind)
    decide = _many_classes if classes > 2 else _two_classes
    label, shown = decide(node, forest, scores, base)
    return [label, cast(shown, FLOAT32)]


def _many_classes(node: OnnxNode, forest: Forest, scores: Node, base: Floats) -> tuple[Node, Node]:
    """The class of the highest score, of those that leaves or base values give any, and all scores."""
    count = len(label_names(node))
    scored = np.isin(np.arange(count), forest.targets) | (len(base) > 0)
    if len(base) not in (0, count):
        raise ModelError(f"{node}: there are {len(base)} base_values for {count} classes")
    scores = scores + base if len(base) else scores
    eligible = scores if scored.all() else where(Constant(scored), scores, number(-np.inf, scores))
    return labels(node, argmax(eligible, -1)), transformed(scores, transform_of(node))


def _two_classes(node: OnnxNode, forest: Forest, scores: Node, base: Floats) -> tuple[Node, Node]:
    """One score decides between two classes: that of class 1, where it has one, else that of class 0, which then
    stands for class 1. Base values count as onnxruntime has them count."""
    transform = transform_of(node)
    count, given = len(label_names(node)), set(forest.targets.tolist())
    if len(base) > count:
        raise node.unsupported(f"as many as {len(base)} base_values for {count} classes")
    if 1 not in given and len(base) < 2:
        decisive = scores[:, :1] + (base[0] if len(base) else base.dtype.type(0))
        positive = bool((forest.weights >= 0).all())
        shown = mirrored(node, decisive, transform, positive) if count == 2 else alone(decisive, transform)
        return _decided(node, decisive, given, forest), shown
    if given == {0, 1} and len(base) == 2:
        decisive = scores[:, :1] + base[1]
        return _decided(node, decisive, given, forest), transformed(concatenate([-decisive, decisive], 1), transform)
    if 1 not in given:
        scores = scores + base * np.array([1, 0], base.dtype)
    elif given == {1} and len(base) == 2:
        scores = scores * base.dtype.type(0) + base * np.array([0, 1], base.dtype)
    elif given == {0, 1} and len(base) == 1:
        scores = scores + np.pad(base, (0, 1))
    decisive = scores[:, 1:] if 1 in given else scores[:, :1]
    return _decided(node, decisive, given, forest), transformed(scores, transform)


def _decided(node: OnnxNode, decisive: Node, given: set[int], forest: Forest) -> Node:
    """The labels: those of the classes where only one of two has scores, else 1 and 0."""
    binary = len(label_names(node)) == 2 and len(given) == 1
    bound = 0.5 if binary and (forest.weights >= 0).all() else 0.0
    chosen = cast(squeeze(decisive > bound, [1]), INT64)
    return labels(node, chosen) if binary or node.strings("classlabels_strings") else chosen
