"""ONNX's operators for classical models: linear models, support vector machines, features; against onnxruntime, which
decides where onnx's reference differs from it or is not there."""

import numpy as np
import pytest
from needed_tools import module
from onnx import helper, numpy_helper
from onnx_cases import each_version, floats, integers, ml_case, model_of, run

import loopwright as lw

X = floats(13, 4)
X[3] = 0
X[5] = -np.abs(X[5])
WITH_NAN = np.where(floats(7, 3, seed=2) > 1, np.nan, floats(7, 3)).astype(np.float32)
SUPPORTS = [3, 2, 4]


def tensor(values, kind):
    return numpy_helper.from_array(np.array(values, kind), "t")


def linear(classes, transform="NONE", labels=None, **more):
    return ml_case(
        "LinearClassifier",
        (1,),
        X,
        outputs=2,
        label=f"{classes}-{transform}",
        coefficients=floats(classes * 4, seed=classes).tolist(),
        intercepts=floats(classes, seed=9).tolist(),
        classlabels_ints=labels or [7 * k for k in range(classes)],
        post_transform=transform,
        **more,
    )


def regressor(targets, transform="NONE"):
    return ml_case(
        "LinearRegressor",
        (1,),
        X,
        label=f"{targets}-{transform}",
        coefficients=floats(targets * 4, seed=targets).tolist(),
        intercepts=floats(targets, seed=8).tolist(),
        targets=targets,
        post_transform=transform,
    )


def machine(kernel, supports, transform="NONE", positive=False, probabilities=False):
    """A classifier of support vectors, or of columns if there are none."""
    count, classes = sum(supports), len(supports) or 2
    if count:
        sizes = {"coefficients": (classes - 1) * count, "rho": classes * (classes - 1) // 2}
        more = {"vectors_per_class": supports, "support_vectors": floats(count * 4, seed=5).tolist()}
    else:
        sizes, more = {"coefficients": classes * 4, "rho": 1}, {}
    if probabilities:
        sizes |= {"prob_a": sizes["rho"], "prob_b": sizes["rho"]}
    reals = {name: floats(size, seed=size, low=0.1 if positive else -2.0).tolist() for name, size in sizes.items()}
    kind = f"{'-positive' * positive}{'' if count else '-columns'}{'-probabilities' * probabilities}"
    return ml_case(
        "SVMClassifier",
        (1,),
        X,
        outputs=2,
        label=f"{kernel}-{classes}-{transform}{kind}",
        kernel_type=kernel,
        kernel_params=[0.3, 0.2, 3.0],
        classlabels_ints=[3 * k for k in range(classes)],
        post_transform=transform,
        **reals,
        **more,
    )


def support_regressor(kernel, count, one_class=0):
    vectors = {"support_vectors": floats(count * 4, seed=4).tolist()} if count else {}
    return ml_case(
        "SVMRegressor",
        (1,),
        X,
        label=f"{kernel}-{count}-{one_class}",
        kernel_type=kernel,
        kernel_params=[0.3, 0.2, 2.0],
        n_supports=count,
        coefficients=floats(count or 4, seed=3).tolist(),
        rho=[0.4],
        one_class=one_class,
        **vectors,
    )


CASES = [
    *(linear(3, transform) for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")),
    *(linear(1, transform, [4, 9]) for transform in ("NONE", "LOGISTIC", "SOFTMAX")),
    linear(2, "LOGISTIC"),
    *(regressor(targets, transform) for targets in (1, 3) for transform in ("NONE", "SOFTMAX")),
    *(machine(kernel, SUPPORTS) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    *(machine("RBF", [3, 4], transform) for transform in ("NONE", "LOGISTIC", "SOFTMAX")),
    machine("RBF", SUPPORTS, "LOGISTIC"),
    *(machine("RBF", [2] * classes, probabilities=True) for classes in (2, 3, 9)),
    *(machine("RBF", SUPPORTS, transform, probabilities=True) for transform in ("LOGISTIC", "SOFTMAX")),
    machine("LINEAR", []),
    machine("LINEAR", [], positive=True),
    *(support_regressor(kernel, 5) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    support_regressor("LINEAR", 0),
    support_regressor("RBF", 5, one_class=1),
    ml_case("Scaler", (1,), X, offset=[0.5, -1.0, 0.0, 2.0], scale=[2.0, 0.5, -1.0, 3.0]),
    ml_case("Scaler", (1,), integers(3, 2), offset=[0.5], scale=[2.0], label="integers"),
    *(ml_case("Normalizer", (1,), X, norm=norm, label=norm) for norm in ("MAX", "L1", "L2")),
    ml_case("Binarizer", (1,), X, threshold=0.25),
    ml_case("Imputer", (1,), WITH_NAN, imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan")),
    ml_case("Imputer", (1,), WITH_NAN, imputed_value_floats=[5.0], replaced_value_float=float("nan"), label="one"),
    ml_case("Imputer", (1,), integers(5, 2), imputed_value_int64s=[1, 2], replaced_value_int64=3, label="integers"),
    ml_case("ArrayFeatureExtractor", (1,), X, np.array([[2, 0, 2]])),
    ml_case("ArrayFeatureExtractor", (1,), X[0], np.array([2, 0]), label="vector"),
    ml_case("ArrayFeatureExtractor", (1,), floats(2, 3, 4), np.array([1]), label="rank 3"),
    ml_case("FeatureVectorizer", (1,), X[:, :2].copy(), X[:, 2:].copy(), inputdimensions=[2, 2]),
    ml_case(
        "FeatureVectorizer", (1,), X[:, :3].copy(), X[:, 2:].copy(), inputdimensions=[2, 3], label="cut and filled"
    ),
    ml_case("OneHotEncoder", (1,), integers(5, 3, low=0, high=4), cats_int64s=[0, 3, 1], zeros=1),
    ml_case("OneHotEncoder", (1,), floats(6, low=0, high=3), cats_int64s=[0, 1], zeros=1, label="floats"),
    ml_case(
        "LabelEncoder",
        (2, 4),
        integers(20),
        keys_int64s=[-8, 7, 0, 1, 7],
        values_floats=[0.5, 1.5, 2.5, 3.5, 9.0],
        default_float=-1.0,
    ),
    ml_case(
        "LabelEncoder",
        (2, 4),
        integers(20),
        keys_int64s=[-8, 10**12, 3],
        values_int64s=[1, 2, 3],
        default_int64=0,
        label="far apart",
    ),
    ml_case(
        "LabelEncoder",
        (2, 4),
        np.array([0.5, np.nan, 2, 7, -3], np.float32),
        keys_floats=[2.0, 0.5, float("nan"), -3.0],
        values_int64s=[4, 5, 6, 7],
        label="floats",
    ),
    ml_case(
        "LabelEncoder",
        (4,),
        np.array([1, 5, 2], np.int16),
        keys_tensor=tensor([5, 2], np.int16),
        values_tensor=tensor([0.5, 2.0], np.float64),
        default_tensor=tensor([-1.0], np.float64),
        expected=lambda x: np.array([-1, 0.5, 2]),
        label="tensors",
    ),
]


def onnxruntime_outputs(case, version):
    ort = module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    model = model_of(case, version)
    model.ir_version = 10
    for k, value in enumerate(model.graph.output):
        labels = case.outputs == 2 and k == 0
        first = case.inputs[0].dtype
        wants = np.dtype(np.int64) if labels or case.attrs.get("values_int64s") else np.dtype(np.float32)
        same = case.op in ("Imputer", "Binarizer", "ArrayFeatureExtractor")
        kind = helper.np_dtype_to_tensor_dtype(first if same else wants)
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, None))
    return ort.InferenceSession(model.SerializeToString(), options).run(None, case.fed)


@each_version(CASES)
def test_an_operator_gives_what_onnxruntime_gives(case, version):
    wanted = [case.expected(*case.inputs)] if case.expected else onnxruntime_outputs(case, version)
    found = run(model_of(case, version), case.fed)
    assert [a.shape for a in found] == [a.shape for a in wanted]
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("operator", ["SVMRegressor", "SVMClassifier"])
def test_support_vectors_that_cancel_leave_an_exact_score(operator):
    """As those of one class with a linear kernel do: terms of a hundred, and scores of a hundred-thousandth."""
    count = 40
    vectors, coefficients = floats(count * 4, seed=8).reshape(count, 4), 30 * floats(count, seed=9)
    rest = np.linalg.lstsq(vectors[:4].T.astype(float), vectors[4:].T @ coefficients[4:].astype(float), rcond=None)[0]
    coefficients[:4] = -rest
    weights = vectors.T.astype(float) @ coefficients.astype(float)
    rows = floats(200 * 4, seed=10).reshape(200, 4)
    expected = rows.astype(float) @ weights
    assert np.abs(expected).max() < 1e-3
    reals = {
        "kernel_params": [0.3, 0.0, 3.0],
        "coefficients": coefficients.tolist(),
        "support_vectors": vectors.ravel().tolist(),
        "rho": [0.0],
    }
    if operator == "SVMRegressor":
        (found,) = run(*_model_and_rows(ml_case(operator, (1,), rows, n_supports=count, **reals)))
    else:
        classes = {"classlabels_ints": [0, 1], "vectors_per_class": [count - 3, 3]}
        _, found = run(*_model_and_rows(ml_case(operator, (1,), rows, outputs=2, **classes, **reals)))
    np.testing.assert_allclose(found[:, -1], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def _model_and_rows(case):
    return model_of(case, 1), case.fed


def test_rows_may_be_open():
    model = model_of(linear(3, "SOFTMAX"), 1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    engine = lw.Engine(lw.compile(model))
    whole = engine([X])
    for rows in (0, 1, 7):
        label, scores = engine([X[:rows]])
        np.testing.assert_array_equal(label, whole[0][:rows])
        np.testing.assert_allclose(scores, whole[1][:rows], atol=1e-6)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (linear(3, labels=[1, 2]), "there are 3 intercepts for 2 class labels"),
        (linear(1, labels=[3]), "a single score needs two class labels, found 1"),
        (ml_case("LinearRegressor", (1,), X, coefficients=[1.0] * 7), "take 4 coefficients and 1 intercepts, found 7"),
        (ml_case("LinearClassifier", (1,), X, coefficients=[1.0] * 4), "there are no class labels"),
        (ml_case("Scaler", (1,), X, offset=[1.0, 2.0], scale=[1.0]), "there are 2 values of offset for 4 columns"),
        (ml_case("Scaler", (1,), X, offset=[1.0]), "attribute scale is missing"),
        (ml_case("Normalizer", (1,), X, norm="L3"), "the norm 'L3'"),
        (ml_case("Imputer", (1,), X), "there are no values of the dtype float32 to put in"),
        (ml_case("OneHotEncoder", (1,), X, cats_strings=["a"]), "no categories of the type of its input"),
        (
            ml_case("LabelEncoder", (2,), X, keys_floats=[1.0], values_floats=[1.0, 2.0]),
            "there are 1 keys and 2 values",
        ),
        (ml_case("FeatureVectorizer", (1,), X), "inputdimensions must have a number for each of 1 inputs"),
        (machine("TANH", SUPPORTS), "the kernel 'TANH'"),
    ],
)
def test_what_does_not_fit_is_a_model_error(case, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(model_of(case, case.versions[0]))


@pytest.mark.slow
def test_neighbours_fill_in_missing_values():
    """Its branches differ in rank, and columns without a neighbour are left out at run time."""
    converter = module("skl2onnx", package="trained")
    imputer = module("sklearn.impute", package="trained").KNNImputer
    known = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    known[np.random.default_rng(1).random(known.shape) < 0.2] = np.nan
    made = imputer(n_neighbors=3).fit(known)
    model = converter.to_onnx(made, known[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    engine = lw.Engine(lw.compile(model))
    session = module("onnxruntime").InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in (1, 2, 7, 40):
        x = np.roll(known, rows, axis=0)[:rows]
        (found,) = engine(x)
        np.testing.assert_array_equal(found, session.run(None, {session.get_inputs()[0].name: x})[0])
        np.testing.assert_allclose(found, made.transform(x), rtol=1e-5, atol=1e-5)
