"""Models trained on the spot by scikit-learn, LightGBM and XGBoost, against onnxruntime: labels, scores, maps."""

import warnings

import numpy as np
import pytest
from needed_tools import module

import loopwright as lw

EXTRA = "trained"
ROWS = (1, 7, 1000)
pytestmark = pytest.mark.slow
rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 8)).astype(np.float32)
SCORE = X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * np.abs(X[:, 3])
TWO = (SCORE > 0).astype(int)
THREE = np.digitize(SCORE, [-0.7, 0.5])
NAMES = np.array(["low", "middle", "high"])[THREE]
COUNTS = np.floor(np.abs(X) * 3).astype(np.int64)
WORDS = np.array(["red", "green", "blue", "größe", "", "x" * 40], object)[COUNTS[:, :3] % 6]
TEXTS = np.array(["Fox", "jumps", "over", "éclair", "a", "2024"], object)[COUNTS % 6]
TEXTS = np.array([" ".join(row) for row in TEXTS], object)


def sklearn(path, **options):
    """A model of scikit-learn, as ``ensemble.RandomForestClassifier``."""
    part, _, name = path.rpartition(".")
    return getattr(module(f"sklearn.{part}", "examples"), name)(**options)


def pipeline(*steps):
    return module("sklearn.pipeline", "examples").make_pipeline(*steps)


def by_columns():
    return module("sklearn.compose", "examples").ColumnTransformer(
        [
            ("scaled", sklearn("preprocessing.StandardScaler"), [0, 1, 2]),
            ("limited", sklearn("preprocessing.MinMaxScaler"), [3, 4]),
            ("kept", "passthrough", [5]),
        ]
    )


def forest(kind, trees):
    return sklearn(f"ensemble.{kind}", n_estimators=trees, random_state=0)


def gaps():
    return np.where(rng.random(X.shape) < 0.1, np.nan, X).astype(np.float32)


MODELS = {
    "random forest of two": (lambda: forest("RandomForestClassifier", 30), X, TWO),
    "random forest of names": (lambda: forest("RandomForestClassifier", 9), X, NAMES),
    "extra trees": (lambda: forest("ExtraTreesClassifier", 20), X, THREE),
    "extra trees regressor": (lambda: forest("ExtraTreesRegressor", 20), X, SCORE),
    "random forest regressor of two targets": (lambda: forest("RandomForestRegressor", 10), X, X[:, :2] ** 2),
    "gradient boosting": (lambda: sklearn("ensemble.GradientBoostingClassifier", n_estimators=20), X, THREE),
    "gradient boosting of two": (lambda: sklearn("ensemble.GradientBoostingClassifier", n_estimators=20), X, TWO),
    "gradient boosting regressor": (lambda: sklearn("ensemble.GradientBoostingRegressor"), X, SCORE),
    "decision tree": (lambda: sklearn("tree.DecisionTreeClassifier"), X, NAMES),
    "logistic regression": (lambda: sklearn("linear_model.LogisticRegression"), X, THREE),
    "logistic regression of names": (lambda: sklearn("linear_model.LogisticRegression"), X, NAMES),
    "logistic regression of two": (lambda: sklearn("linear_model.LogisticRegression"), X, TWO),
    "ridge": (lambda: sklearn("linear_model.Ridge"), X, X[:, :3] @ np.ones((3, 2))),
    "linear SVC": (lambda: sklearn("svm.LinearSVC"), X, THREE),
    "SVC": (lambda: sklearn("svm.SVC"), X[:300], THREE[:300]),
    "SVC of two": (lambda: sklearn("svm.SVC", kernel="poly"), X[:300], TWO[:300]),
    "SVR": (lambda: sklearn("svm.SVR"), X[:300], SCORE[:300]),
    "scaled and normalized": (
        lambda: pipeline(
            sklearn("preprocessing.StandardScaler"), sklearn("preprocessing.Normalizer"),
            sklearn("linear_model.LogisticRegression")), X, THREE),
    "imputed": (
        lambda: pipeline(sklearn("impute.SimpleImputer"), sklearn("tree.DecisionTreeRegressor")), gaps(), SCORE),
    "encoded": (
        lambda: pipeline(
            sklearn("preprocessing.OneHotEncoder", handle_unknown="ignore"),
            sklearn("linear_model.LogisticRegression")),
        COUNTS, THREE),
    "words one hot": (
        lambda: pipeline(
            sklearn("preprocessing.OneHotEncoder", handle_unknown="ignore"),
            sklearn("linear_model.LogisticRegression")),
        WORDS, NAMES),
    "words by rank": (
        lambda: pipeline(sklearn("preprocessing.OrdinalEncoder"), forest("RandomForestClassifier", 9)), WORDS, NAMES),
    "by columns": (lambda: pipeline(by_columns(), sklearn("linear_model.LogisticRegression")), X, THREE),
    "multilayer perceptron": (lambda: sklearn("neural_network.MLPClassifier", max_iter=30, random_state=0), X, NAMES),
    "naive Bayes": (lambda: sklearn("naive_bayes.GaussianNB"), X, NAMES),
    "principal components": (
        lambda: pipeline(sklearn("decomposition.PCA", n_components=4), sklearn("linear_model.Ridge")), X, SCORE),
    "adaptive boosting": (lambda: sklearn("ensemble.AdaBoostClassifier", n_estimators=5), X, THREE),
    "bagging": (lambda: forest("BaggingClassifier", 3), X, THREE),
}  # fmt: skip


def converted(model, x):
    """The model as one of ONNX."""
    skl2onnx = module("skl2onnx", EXTRA)
    data_types = module("skl2onnx.common.data_types", EXTRA)
    kinds = {"i": data_types.Int64TensorType, "f": data_types.FloatTensorType, "O": data_types.StringTensorType}
    kind = kinds[x.dtype.kind]([None, x.shape[1]])
    return skl2onnx.convert_sklearn(model, initial_types=[("X", kind)], target_opset=18)


def check(model, x):
    """Outputs equal onnxruntime's for some batches, open and known."""
    ort = module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options)
    name = model.graph.input[0].name
    library = lw.compile(model)
    for rows in ROWS:
        data = x[:rows]
        known = lw.compile(model, shapes={name: data.shape})
        wanted = session.run(None, {name: data})
        for made in (library, known):
            for found, expected in zip(lw.Engine(made)([data]), wanted, strict=True):
                check_output(found, expected)


def check_output(found, expected):
    if isinstance(expected, list):
        assert [row.keys() for row in found] == [row.keys() for row in expected]
        found, expected = (np.array([[*row.values()] for row in rows]) for rows in (found, expected))
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    else:
        assert (found != expected).mean() <= 0.002  # where scores tie but for their rounding


@pytest.mark.parametrize("name", MODELS)
def test_a_trained_model_gives_what_onnxruntime_gives(name):
    make, x, y = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(x, y)
        proto = converted(model, x)
    check(proto, x)


@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer"])
def test_a_model_of_texts_gives_what_onnxruntime_gives(name):
    features = sklearn(f"feature_extraction.text.{name}", lowercase=False, ngram_range=(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pipeline(features, sklearn("linear_model.LogisticRegression")).fit(TEXTS, NAMES)
    check(converted(model, TEXTS[:, None]), TEXTS[:, None])


BOOSTED = {
    "lightgbm of two": ("lightgbm", "LGBMClassifier", TWO, {"verbose": -1}),
    "lightgbm of three": ("lightgbm", "LGBMClassifier", THREE, {"verbose": -1}),
    "lightgbm regressor": ("lightgbm", "LGBMRegressor", SCORE, {"verbose": -1}),
    "xgboost of two": ("xgboost", "XGBClassifier", TWO, {"n_estimators": 40}),
    "xgboost of three": ("xgboost", "XGBClassifier", THREE, {"n_estimators": 40}),
    "xgboost regressor": ("xgboost", "XGBRegressor", SCORE, {"n_estimators": 40}),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_a_boosted_model_gives_what_onnxruntime_gives(name):
    package, kind, y, options = BOOSTED[name]
    x = gaps()
    onnxmltools = module("onnxmltools", EXTRA)
    data_types = module("onnxmltools.convert.common.data_types", EXTRA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(module(package, EXTRA), kind)(**options).fit(x, y)
        convert = getattr(onnxmltools, f"convert_{package}")
        proto = convert(model, initial_types=[("X", data_types.FloatTensorType([None, x.shape[1]]))], target_opset=15)
    check(proto, x)


def test_a_pipeline_that_begins_with_dicts():
    rng = np.random.default_rng(0)
    rows = [{f"f{k}": float(rng.normal()) for k in rng.choice(9, 4, replace=False)} for _ in range(60)]
    labels = [int(sum(row.values()) > 0) for row in rows]
    steps = sklearn("feature_extraction.DictVectorizer", sparse=False), sklearn("linear_model.LogisticRegression")
    trained = module("sklearn.pipeline", EXTRA).make_pipeline(*steps).fit(rows, labels)
    kinds = module("skl2onnx.common.data_types", EXTRA)
    entries = kinds.DictionaryType(kinds.StringTensorType([1]), kinds.FloatTensorType([1]))
    skl2onnx = module("skl2onnx", EXTRA)
    engine = lw.Engine(lw.compile(skl2onnx.convert_sklearn(trained, initial_types=[("X", entries)], target_opset=18)))
    for row in rows[:8]:
        label, scores = engine({"X": row})
        assert label == trained.predict([row])
        (found,) = scores
        np.testing.assert_allclose([found[0], found[1]], trained.predict_proba([row])[0], rtol=1e-5)
