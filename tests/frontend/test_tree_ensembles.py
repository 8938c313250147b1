"""ONNX's tree ensembles against an oracle that walks them node by node, onnx's reference, and onnxruntime."""

from itertools import product

import numpy as np
import pytest
import random_forests as forests
from needed_tools import module
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import check, each_version, ml_case

import loopwright as lw
from loopwright.graph import Call
from loopwright.graph.visit import post_order

COLUMNS = 5
NODES = forests.nodes_of(np.random.default_rng(1), 6, 3, COLUMNS)
LEAVES = forests.leaves_of(np.random.default_rng(2), NODES, 3, 1)
ROWS = forests.rows_of(np.random.default_rng(3), 20, COLUMNS)


def scores(x):
    """The reference of versions 1 and 3 sends some NaN where neither the standard nor onnxruntime does."""
    return forests.scores(NODES, LEAVES, x, 3).astype(np.float32)


def classes_and_scores(x):
    return np.array([5, 6, 7])[scores(x).argmax(1)], scores(x)


TARGETS = forests.attributes(NODES, LEAVES, "target")
CASES = [
    ml_case("TreeEnsembleRegressor", (1, 3), ROWS, n_targets=3, expected=scores, **TARGETS),
    ml_case("TreeEnsemble", (5,), ROWS, n_targets=3, **forests.indexed_attributes(NODES, LEAVES)),
    ml_case(
        "TreeEnsembleClassifier",
        (1, 3),
        ROWS,
        outputs=2,
        classlabels_int64s=[5, 6, 7],
        expected=classes_and_scores,
        **forests.attributes(NODES, LEAVES, "class"),
    ),
]


def found(model, x, **options):
    return lw.Engine(lw.compile(model, **options))([x])


def onnxruntime_outputs(model, x):
    ort = module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})


@each_version(CASES)
def test_each_version_gives_what_the_reference_gives(case, version):
    check(case, version)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("mode", [*forests.MODES, "all"])
def test_every_mode_asks_what_it_says_of_bounds_infinities_and_nan(mode, kind):
    rng = np.random.default_rng([7, len(mode)])
    modes = forests.MODES if mode == "all" else (mode,)
    nodes = forests.nodes_of(rng, 5, 4, COLUMNS, modes)
    leaves = forests.leaves_of(rng, nodes, 1, None)
    attrs = forests.attributes(nodes, leaves, "target", kind) | {"n_targets": 1}
    onnx_kind = TensorProto.FLOAT if kind is np.float32 else TensorProto.DOUBLE
    model = forests.model_of("TreeEnsembleRegressor", 3, attrs, COLUMNS, kind=onnx_kind)
    x = forests.rows_of(rng, 200, COLUMNS, kind)
    (y,) = found(model, x)
    np.testing.assert_allclose(y, forests.scores(nodes, leaves, x, 1), atol=1e-5)


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("modes", [("BRANCH_EQ",), (*forests.MODES, "BRANCH_EQ", "BRANCH_EQ")], ids=["equal", "all"])
def test_several_nodes_that_lead_to_one_are_walked(modes, version):
    rng = np.random.default_rng([5, len(modes)])
    nodes = forests.asked_in_turn(rng, forests.nodes_of(rng, 7, 4, COLUMNS, modes), 6)
    leaves = forests.leaves_of(rng, nodes, 1, 1)
    made = forests.attributes(nodes, leaves, "target") if version == 3 else forests.indexed_attributes(nodes, leaves)
    operator = "TreeEnsembleRegressor" if version == 3 else "TreeEnsemble"
    model = forests.model_of(operator, version, made | {"n_targets": 1}, COLUMNS)
    for rows in (1, 200):
        x = forests.rows_of(rng, rows, COLUMNS)
        (y,) = found(model, x)
        np.testing.assert_allclose(y, forests.scores(nodes, leaves, x, 1), atol=1e-5)


def test_values_that_are_asked_for_in_turn_are_one_set():
    """A set of 100 categories takes seven comparisons and a test for equality, not two for each."""
    root = {"tree": 0, "id": 0, "feature": 0, "mode": "BRANCH_EQ", "bound": 0.0, "missing": 0, "yes": 100, "no": 101}
    turns = [{**root, "id": k, "bound": float(k * k), "no": k + 1 if k < 99 else 101} for k in range(100)]
    ends = [{**root, "id": 100, "mode": "BRANCH_LEQ", "bound": 50.0, "feature": 1, "yes": 102, "no": 103},
            *({**root, "id": k, "mode": "LEAF"} for k in (101, 102, 103))]  # fmt: skip
    nodes, leaves = [*turns, *ends], [(0, 101, 0, 1.0), (0, 102, 0, 2.0), (0, 103, 0, 4.0)]
    attrs = forests.attributes(nodes, leaves, "target") | {"n_targets": 1}
    model = forests.model_of("TreeEnsembleRegressor", 3, attrs, 2)
    calls = [node for node in post_order(lw.from_onnx(model).body) if isinstance(node, Call)]
    (ensemble,) = [call for call in calls if call.op.name == "nn.tree_ensemble"]
    ((_, longest_way, _),) = ensemble.args[3].value
    assert longest_way == 7 + 2 + 1
    x = np.array([[k, c] for k in (*range(0, 10000, 7), 0.5, -1, np.nan) for c in (0, 60)], np.float32)
    np.testing.assert_array_equal(found(model, x)[0], forests.scores(nodes, leaves, x, 1))


@pytest.mark.parametrize("fold", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("targets", "per_leaf"), [(1, None), (3, None), (3, 3), (20, 20), (4, 2)])
def test_leaves_give_one_target_all_or_some_weights(targets, per_leaf, fold):
    rng = np.random.default_rng([targets, per_leaf or 0])
    nodes = forests.nodes_of(rng, 17, 3, COLUMNS)
    leaves = forests.leaves_of(rng, nodes, targets, per_leaf)
    base = rng.uniform(-1, 1, targets).astype(np.float32)
    attrs = forests.attributes(nodes, leaves, "target") | {"n_targets": targets, "aggregate_function": fold}
    model = forests.model_of("TreeEnsembleRegressor", 1, attrs | {"base_values": base.tolist()}, COLUMNS)
    x = forests.rows_of(rng, 40, COLUMNS)
    (y,) = found(model, x)
    np.testing.assert_allclose(y, forests.scores(nodes, leaves, x, targets, fold) + base, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 2, 11, 12, 13, 100, 300])
def test_any_number_of_rows_and_threads_gives_the_same_bits(rows):
    rng = np.random.default_rng(rows)
    nodes = forests.nodes_of(rng, 40, 5, COLUMNS, modes=("BRANCH_LEQ",))
    leaves = forests.leaves_of(rng, nodes, 1, None)
    attrs = forests.attributes(nodes, leaves, "target") | {"n_targets": 1}
    model = forests.model_of("TreeEnsembleRegressor", 3, attrs, COLUMNS)
    library = lw.compile(model)
    x = forests.rows_of(rng, 300, COLUMNS)
    (all_rows,) = lw.Engine(library, threads=1)([x])
    for threads in (1, 2):
        (y,) = lw.Engine(library, threads=threads)([x[:rows]])
        np.testing.assert_array_equal(y, all_rows[:rows])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_version_5_with_sets_equals_the_oracle(kind):
    rng = np.random.default_rng(3)
    modes = (*forests.MODES, "BRANCH_MEMBER")
    nodes = forests.nodes_of(rng, 9, 4, COLUMNS, modes)
    for node in nodes:
        if node["mode"] == "BRANCH_MEMBER":
            node["bound"] = rng.permutation([-1.5, -1.0, 0.0, 0.5, 1.0, 2.0])[: rng.integers(1, 6)].tolist()
    leaves = forests.leaves_of(rng, nodes, 2, 1)
    attrs = forests.indexed_attributes(nodes, leaves, kind) | {"n_targets": 2, "aggregate_function": 1}
    onnx_kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model = forests.model_of("TreeEnsemble", 5, attrs, COLUMNS, kind=onnx_kind)
    x = forests.rows_of(rng, 150, COLUMNS, kind)
    (y,) = found(model, x)
    assert y.dtype == kind
    np.testing.assert_allclose(y, forests.scores(nodes, leaves, x, 2), atol=1e-2 if kind is np.float16 else 1e-5)


def test_a_tree_of_one_leaf_gives_its_weight():
    tensors = {"nodes_modes": np.uint8, "nodes_splits": np.float32}
    attrs = {name: numpy_helper.from_array(np.zeros(1, kind), name) for name, kind in tensors.items()}
    attrs |= {name: [0] for name in ("tree_roots", "nodes_featureids", "leaf_targetids")}
    attrs |= {f"nodes_{side}nodeids": [0] for side in ("true", "false")}
    attrs |= {f"nodes_{side}leafs": [1] for side in ("true", "false")}
    attrs["leaf_weights"] = numpy_helper.from_array(np.array([2.5], np.float32), "w")
    (y,) = found(
        forests.model_of("TreeEnsemble", 5, attrs | {"n_targets": 1}, 1), np.array([[np.nan], [1]], np.float32)
    )
    assert y.tolist() == [[2.5], [2.5]]
    leaf = {"tree": 0, "id": 0, "feature": 0, "mode": "LEAF", "bound": 0.0, "missing": 0}
    attrs = forests.attributes([leaf], [(0, 0, 0, 1.5)], "target") | {"n_targets": 1}
    (y,) = found(forests.model_of("TreeEnsembleRegressor", 3, attrs, 1), np.zeros((3, 1), np.float32))
    assert y.tolist() == [[1.5]] * 3


@pytest.mark.parametrize("fold", ["SUM", "MAX"])
@pytest.mark.parametrize("targets", [1, 2])
def test_weights_that_a_leaf_gives_one_target_several_times_count_as_in_onnxruntime(targets, fold):
    """Those of the only target once, the first of them: so skl2onnx has trees give the number of the leaf."""
    rng = np.random.default_rng(targets)
    nodes = forests.nodes_of(rng, 6, 3, COLUMNS)
    leaves = forests.leaves_of(rng, nodes, targets, None)
    leaves = [*leaves, *((*leaf[:-1], leaf[-1] + 1) for leaf in leaves), *leaves[::2]]
    attrs = forests.attributes(nodes, leaves, "target") | {"n_targets": targets, "aggregate_function": fold}
    model = forests.model_of("TreeEnsembleRegressor", 3, attrs, COLUMNS)
    model.ir_version = 10
    x = forests.rows_of(rng, 40, COLUMNS)
    np.testing.assert_allclose(found(model, x)[0], onnxruntime_outputs(model, x)[0], atol=1e-5)


def test_bounds_of_integers_are_compared_as_floats():
    rng = np.random.default_rng(5)
    nodes = forests.nodes_of(rng, 4, 3, COLUMNS)
    leaves = forests.leaves_of(rng, nodes, 1, None)
    attrs = forests.attributes(nodes, leaves, "target") | {"n_targets": 1}
    model = forests.model_of("TreeEnsembleRegressor", 3, attrs, COLUMNS, kind=TensorProto.INT64)
    x = rng.integers(-3, 4, (50, COLUMNS))
    (y,) = found(model, x)
    np.testing.assert_allclose(y, forests.scores(nodes, leaves, x.astype(float), 1), atol=1e-5)


TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_transforms_of_regressors_are_onnxruntimes(targets, transform):
    rng = np.random.default_rng(targets)
    nodes = forests.nodes_of(rng, 6, 3, COLUMNS)
    low, high = (0.01, 0.15) if transform == "PROBIT" else (-1, 1)
    leaves = forests.leaves_of(rng, nodes, targets, targets, low, high)
    attrs = forests.attributes(nodes, leaves, "target") | {"n_targets": targets, "post_transform": transform}
    model = forests.model_of("TreeEnsembleRegressor", 3, attrs, COLUMNS)
    x = forests.rows_of(rng, 30, COLUMNS)
    tolerance = 2e-4 if transform == "PROBIT" else 1e-5  # its formula takes near equals from each other
    np.testing.assert_allclose(found(model, x)[0], onnxruntime_outputs(model, x)[0], atol=tolerance)


def stumps(classes, weights, base, transform):
    """A classifier of trees that ask whether x <= 0: for each, the class, and its weight where it is and is not."""
    nodes, leaves = [], []
    for tree, (target, below, above) in enumerate(weights):
        root = {
            "tree": tree,
            "id": 0,
            "feature": 0,
            "mode": "BRANCH_LEQ",
            "bound": 0.0,
            "missing": 0,
            "yes": 1,
            "no": 2,
        }
        nodes += [root, *({**root, "id": k, "mode": "LEAF"} for k in (1, 2))]
        leaves += [(tree, 1, target, below), (tree, 2, target, above)]
    attrs = forests.attributes(nodes, leaves, "class")
    attrs |= {"classlabels_int64s": [10 * (k + 1) for k in range(classes)], "post_transform": transform}
    return forests.model_of(
        "TreeEnsembleClassifier", 3, attrs | ({"base_values": base} if base else {}), 1, ("label", "scores")
    )


WEIGHTS = {
    "probability of one": [(0, 0.7, 0.2)],
    "score of one": [(0, 0.7, -0.2), (0, -0.3, 0.1)],
    "probability of the second": [(1, 0.7, 0.2)],
    "score of the second": [(1, 0.7, -0.2)],
    "probabilities": [(0, 0.7, 0.2), (1, 0.3, 0.8)],
    "scores": [(0, 0.7, -0.2), (1, -0.3, 0.8)],
    "scores of three": [(0, -0.3, 0.1), (2, 0.4, -0.8), (1, -0.2, 0.2)],
    "two of three, all below 0": [(0, -0.3, -0.1), (2, -0.4, -0.8)],
}


def is_model(weights, classes, bases):
    return all(target < classes for target, _, _ in WEIGHTS[weights]) and (bases in (0, classes) or bases < classes < 3)


def is_refused(weights, classes, bases, transform):
    """Two classes that share a score have no PROBIT."""
    shared = classes == 2 and bases < 2 and {target for target, _, _ in WEIGHTS[weights]} == {0}
    return shared and transform == "PROBIT"


CLASSIFIERS = [
    pytest.param(*case, marks=() if case[2:] in ((0, "NONE"), (2, "LOGISTIC"), (3, "SOFTMAX")) else pytest.mark.slow)
    for case in product(WEIGHTS, (1, 2, 3), (0, 1, 2, 3), TRANSFORMS)
    if is_model(*case[:3]) and not is_refused(*case)
]


@pytest.mark.parametrize(("weights", "classes", "bases", "transform"), CLASSIFIERS)
def test_classes_and_their_scores_are_onnxruntimes(weights, classes, bases, transform):
    model = stumps(classes, WEIGHTS[weights], [0.1, 0.3, 0.2][:bases], transform)
    x = np.array([[-1], [1]], np.float32)
    label, shown = found(model, x)
    wanted_label, wanted = onnxruntime_outputs(model, x)
    np.testing.assert_array_equal(label, wanted_label)
    np.testing.assert_allclose(shown, wanted, atol=1e-5)
    assert label.dtype == np.int64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": [9, 0, 0]}, "there is no node 9 in tree 0"),
        ({"nodes_truenodeids": [0, 0, 0]}, "from 1 inner nodes, walks go round"),
        ({"nodes_nodeids": [0, 1, 1]}, "node 1 of tree 0 is there twice"),
        ({"nodes_modes": ["BRANCH_LEQ", "LEAF", "TWIG"]}, "there is no mode 'TWIG'"),
        ({"nodes_values": [0.0]}, "nodes_values must have 3 elements, found 1"),
        ({"nodes_featureids": [4, 0, 0]}, "nodes ask for column 4, but there are 1"),
        ({"target_ids": [0, 3]}, "targets 0 to 0 weights, found 0 to 3"),
        ({"target_nodeids": [1, 7]}, "there is no node 7 in tree 0"),
        ({"aggregate_function": "MEDIAN"}, "an aggregate_function of 'MEDIAN'"),
        ({"post_transform": "SQUARE"}, "a post_transform of 'SQUARE'"),
    ],
)
def test_damaged_trees_are_model_errors(change, message):
    root = {"tree": 0, "id": 0, "feature": 0, "mode": "BRANCH_LEQ", "bound": 0.0, "missing": 0, "yes": 1, "no": 2}
    nodes = [root, *({**root, "id": k, "mode": "LEAF"} for k in (1, 2))]
    attrs = forests.attributes(nodes, [(0, 1, 0, 0.5), (0, 2, 0, 0.25)], "target") | {"n_targets": 1}
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(forests.model_of("TreeEnsembleRegressor", 3, attrs | change, 1))


@pytest.mark.parametrize("change", [{"tree_roots": [0, 0]}, {"tree_roots": [0, 1]}], ids=["roots", "a child"])
def test_an_inner_node_of_two_trees_is_refused(change):
    nodes = forests.nodes_of(np.random.default_rng(0), 1, 3, COLUMNS, fill=1)
    attrs = forests.indexed_attributes(nodes, forests.leaves_of(np.random.default_rng(0), nodes, 1, 1))
    with pytest.raises(lw.ModelError, match="inner nodes are in two trees"):
        lw.from_onnx(forests.model_of("TreeEnsemble", 5, attrs | {"n_targets": 1} | change, COLUMNS))


def test_probit_of_two_classes_with_one_score_is_refused():
    with pytest.raises(lw.ModelError, match="PROBIT of two classes that share a score is not supported"):
        lw.from_onnx(stumps(2, WEIGHTS["probability of one"], [], "PROBIT"))
