"""Ensembles of decision trees: boosted ones of a target, and forests whose leaves have a weight for each class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from .case import Bar, Case, Work, dims, work_of

BAR = Bar(1.0)
COLUMNS = 30
NODE_BYTES = 8
"""A column and a bound: less does not say what a node asks."""
ENSEMBLES = ((100, 6, 1), (1000, 8, 1), (100, 10, 10))
"""Trees, comparisons on each way through one, and targets."""


@dataclass(frozen=True)
class TreeCase(Case):
    """Complete trees with random questions."""

    rows: int = 1
    trees: int = 1
    depth: int = 1
    targets: int = 1

    def model(self) -> ModelProto:
        """The model, whose tables are attributes, which the text format would take long to read."""
        node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **self._attributes())
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.rows, columns])
            for name, columns in (("x", COLUMNS), ("y", self.targets))
        ]
        graph = helper.make_graph([node], "g", values[:1], values[1:])
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", 3)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _attributes(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.trees, self.depth, self.targets])
        inner, count = 2**self.depth - 1, 2 ** (self.depth + 1) - 1
        tree, number = np.divmod(np.arange(self.trees * count), count)
        leaf = number >= inner
        weighted = np.repeat(np.flatnonzero(leaf), self.targets)
        columns, bounds = rng.integers(0, COLUMNS, len(tree)), rng.standard_normal(len(tree), np.float32)
        weights = rng.standard_normal(len(weighted), np.float32) / np.float32(self.trees)
        return {
            "n_targets": self.targets,
            "nodes_treeids": tree.tolist(),
            "nodes_nodeids": number.tolist(),
            "nodes_featureids": np.where(leaf, 0, columns).tolist(),
            "nodes_values": np.where(leaf, 0, bounds).tolist(),
            "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
            "nodes_truenodeids": np.where(leaf, 0, 2 * number + 1).tolist(),
            "nodes_falsenodeids": np.where(leaf, 0, 2 * number + 2).tolist(),
            "target_treeids": tree[weighted].tolist(),
            "target_nodeids": number[weighted].tolist(),
            "target_ids": np.tile(np.arange(self.targets), leaf.sum()).tolist(),
            "target_weights": weights.tolist(),
        }

    def work(self, model: ModelProto) -> Work:
        """A comparison counts as an operation; of each level of a tree no more nodes are read than there are."""
        known = work_of(model)
        nodes = sum(min(self.rows, 2**level) for level in range(self.depth)) * self.trees
        return Work(self.rows * self.trees * self.depth, known.read + nodes * NODE_BYTES, known.written)


def cases() -> Iterator[Case]:
    for trees, depth, targets in ENSEMBLES:
        for rows in (1, 1000):
            sizes = {"rows": rows, "trees": trees, "depth": depth, "targets": targets}
            name = f"{trees} of depth {depth}, {targets} {'target' if targets == 1 else 'targets'}, {rows} rows"
            yield TreeCase("trees", name, f"{dims(rows, COLUMNS)} x", "", bar=BAR, **sizes)
