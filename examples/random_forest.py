"""A random forest, trained here on scikit-learn's digits, as a model of ai.onnx.ml whose labels are words.

The trees are walked natively, several side by side; Python is shown the labels as strings, and scores by label.
"""

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from support.peers import Forest, Tree, load_digits, train_forest

import loopwright as lw

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def tables(number: int, tree: Tree) -> dict[str, list[Any]]:
    """What one tree adds to the attributes of a TreeEnsembleClassifier."""
    nodes, inner = len(tree.left), tree.left >= 0
    leaves = np.repeat(np.flatnonzero(~inner), len(WORDS))
    return {
        "nodes_treeids": [number] * nodes,
        "nodes_nodeids": [*range(nodes)],
        "nodes_modes": np.where(inner, "BRANCH_LEQ", "LEAF").tolist(),
        "nodes_featureids": np.where(inner, tree.columns, 0).tolist(),
        "nodes_values": tree.bounds.tolist(),
        "nodes_truenodeids": np.where(inner, tree.left, 0).tolist(),
        "nodes_falsenodeids": np.where(inner, tree.right, 0).tolist(),
        "class_treeids": [number] * len(leaves),
        "class_nodeids": leaves.tolist(),
        "class_ids": [*range(len(WORDS))] * int((~inner).sum()),
        "class_weights": tree.shares[~inner].ravel().tolist(),
    }


def to_onnx(forest: Forest, columns: int) -> ModelProto:
    """``pixels`` to ``label``, and to ``scores``, a map for each row."""
    parts = [tables(number, tree) for number, tree in enumerate(forest.trees)]
    attributes: dict[str, Any] = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    domain = "ai.onnx.ml"
    words: dict[str, Any] = {"domain": domain, "classlabels_strings": WORDS}
    nodes = [
        helper.make_node("TreeEnsembleClassifier", ["pixels"], ["label", "sums"], **attributes, **words),
        helper.make_node("ZipMap", ["sums"], ["scores"], **words),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in ("label", "scores")]
    fed = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", columns])
    graph = helper.make_graph(nodes, "forest", [fed], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(domain, 3)])


pixels, digits = load_digits()
train, test = np.split(np.random.default_rng(0).permutation(len(digits)), [len(digits) * 7 // 10])
forest = train_forest(pixels[train], digits[train])
library = lw.compile(to_onnx(forest, pixels.shape[1]))
labels, scores = lw.Engine(library)(pixels[test])

probabilities = forest.probabilities(pixels[test])
np.testing.assert_allclose([[*row.values()] for row in scores], probabilities, atol=1e-5)
expected = np.array(WORDS)[probabilities.argmax(axis=1)]
print(f"{np.mean(labels == expected):.1%} of the labels are scikit-learn's; a tie may go either way")
print(f"{np.mean(labels == np.array(WORDS)[digits[test]]):.1%} of {len(test)} held-out digits are recognised")
print("the first:", labels[0], {word: round(score, 2) for word, score in scores[0].items() if score > 0})
