"""scikit-learn and onnxruntime, which the demo compares with, each on one thread: their data, and what they compute."""

# These packages have no types, so that only what this module hands on can be checked strictly.
# pyright: basic

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]

threadpool_limits(1)  # from here on, for BLAS and OpenMP


@dataclass(frozen=True)
class Network:
    """Layers as pairs of a weight, [inputs, outputs], and a bias; and what scikit-learn computes with them."""

    layers: list[tuple[Floats, Floats]]
    probabilities: Callable[[Floats], Floats]


def load_digits() -> tuple[Floats, Numbers]:
    """The 1,797 images of handwritten digits as rows of 64 pixels from 0 to 1, and the digit that each shows."""
    pixels, digits = datasets.load_digits(return_X_y=True)
    return np.asarray(pixels / 16, np.float32), np.asarray(digits, np.int64)


def nearest_neighbours(pixels: Floats) -> Numbers:
    """For each row the index of another one that is nearest to it."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(pixels)
    return np.asarray(search.kneighbors(return_distance=False), np.int64)[:, 0]


def train_network(x: Floats, digits: Numbers) -> Network:
    """A perceptron of two hidden layers with Relu, whose last layer ends in a Softmax."""
    network = MLPClassifier((64, 32), max_iter=300, random_state=0).fit(x, digits)
    layers = [
        (np.asarray(weight, np.float32), np.asarray(bias, np.float32))
        for weight, bias in zip(network.coefs_, network.intercepts_, strict=True)
    ]
    return Network(layers, lambda x: np.asarray(network.predict_proba(x), np.float32))


@dataclass(frozen=True)
class Tree:
    """The nodes of a tree, an element or row a node: where pixel ``columns`` is at most ``bounds`` the way leads to
    ``left``, else to ``right``. A leaf has -1 there, and gives each class its ``shares``."""

    columns: Numbers
    bounds: Floats
    left: Numbers
    right: Numbers
    shares: Floats


@dataclass(frozen=True)
class Forest:
    """Trees whose shares add up to probabilities; and what scikit-learn computes with them."""

    trees: list[Tree]
    probabilities: Callable[[Floats], Floats]


def train_forest(x: Floats, digits: Numbers) -> Forest:
    """Fifty trees, of any depth."""
    forest = RandomForestClassifier(50, random_state=0).fit(x, digits)
    trees = [_tree(estimator.tree_, len(forest.estimators_)) for estimator in forest.estimators_]
    return Forest(trees, lambda x: np.asarray(forest.predict_proba(x), np.float32))


def _tree(tree: Any, trees: int) -> Tree:
    """Bounds, which have 64 bits, are rounded down: so the same numbers of 32 bits are at most as large."""
    rounded = tree.threshold.astype(np.float32)
    bounds = np.where(rounded > tree.threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    shares = tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True) / trees
    columns, left, right = (np.asarray(a, np.int64) for a in (tree.feature, tree.children_left, tree.children_right))
    return Tree(columns, bounds, left, right, shares.astype(np.float32))


def in_onnxruntime(path: Path) -> Callable[[Floats], Floats]:
    """A model of one input and one output, run by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: np.asarray(session.run(None, {name: x})[0], np.float32)
