"""Operators that draw numbers: seeded ones against their generator in numpy, others by distribution, and run by run."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_cases import case, check, each_version, floats, ints, make_model

import loopwright as lw

FRACTION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
SEED = 7.5


def mixed(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(count, kind="float32", seed=SEED):
    """Numbers of SplitMix64 as fractions."""
    key = mixed(np.array([seed]).view(np.uint64))
    numbers = mixed(key + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    bits = FRACTION[kind]
    return (numbers >> np.uint64(64 - bits)).astype(float) / 2.0**bits


def normal(count, kind="float32"):
    u = uniform(2 * count, kind).reshape(-1, 2)
    return np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])


def drawn(numbers, shape, kind="float32", start=0.0, scale=1.0):
    return (np.reshape(numbers, shape) * scale + start).astype(kind)


def classes(x, samples):
    """By the sums of the probabilities of each row."""
    p = np.exp(x.astype(float) - x.max(1, keepdims=True))
    sums = np.cumsum(p, 1)
    wanted = uniform(len(x) * samples).reshape(len(x), samples) * sums[:, -1:]
    return (sums[:, None] <= wanted[..., None]).sum(2)


def dropped(ratio):
    def expected(x, *_):
        kept = np.random.RandomState(3).uniform(0, 1.0, x.shape) >= ratio
        return (kept * x / (1 - ratio)).astype(x.dtype), kept

    return expected


X = floats(3, 5)
DOUBLE = {"dtype": TensorProto.DOUBLE, "label": "double", "tolerance": 1e-12}
CASES = [
    case("RandomUniform", (1, 22), shape=[2, 33], seed=SEED, expected=lambda: drawn(uniform(66), (2, 33))),
    case("RandomUniform", (22,), shape=[40], seed=SEED, low=-3.0, high=2.0, **DOUBLE,
         expected=lambda: drawn(uniform(40, "float64"), 40, "f8", -3, 5)),
    case("RandomUniformLike", (1, 22), X, seed=SEED, expected=lambda x: drawn(uniform(15), x.shape)),
    case("RandomUniformLike", (22,), X, seed=SEED, dtype=TensorProto.FLOAT16, label="half",
         expected=lambda x: drawn(uniform(15, "float16"), x.shape, "f2")),
    case("RandomNormal", (1, 22), shape=[7, 3], seed=SEED, mean=2.0, scale=0.5,
         expected=lambda: drawn(normal(21), (7, 3), "f4", 2.0, 0.5)),
    case("RandomNormalLike", (1, 22), ints(1, 2, 3), seed=SEED, **DOUBLE,
         expected=lambda x: drawn(normal(3, "float64"), 3, "f8")),
    case("Bernoulli", (15, 22), abs(X) / 2, seed=SEED, dtype=TensorProto.BOOL,
         expected=lambda x: drawn(uniform(15), x.shape) < x),
    case("Multinomial", (7, 22), X, seed=SEED, sample_size=9, expected=lambda x: classes(x, 9).astype("i4")),
    case("Multinomial", (22,), X, seed=SEED, dtype=TensorProto.INT64, label="long", expected=lambda x: classes(x, 1)),
    case("Dropout", (12, 13, 22), X, np.float32(0.3), np.array(True), seed=3, outputs=2, expected=dropped(0.3)),
    case("Dropout", (22,), X, np.float32(0.75), np.array(True), const=(1, 2), seed=3, outputs=2, label="known",
         expected=dropped(0.75)),
    case("Dropout", (22,), X, None, np.array(True), seed=3, outputs=2, label="half", expected=dropped(0.5)),
    case("Dropout", (22,), X, np.float32(0.3), np.array(False), seed=3, outputs=2, label="not",
         expected=lambda x, *_: (x, np.ones(x.shape, bool))),
]  # fmt: skip


@each_version(CASES)
def test_agrees_with_the_generator(case, version):
    check(case, version)


def engine_of(op, inputs=(), version=22, threads=1, **attrs):
    """An engine of a model of one node, whose inputs are (dtype, shape) pairs."""
    given = {f"x{k}": pair for k, pair in enumerate(inputs)}
    model = make_model([helper.make_node(op, [*given], ["y"], **attrs)], given, ["y"], version)
    return lw.Engine(lw.compile(lw.from_onnx(model), jobs=1), threads=threads)


def test_runs_without_a_seed_differ_and_those_with_one_do_not():
    free, seeded = engine_of("RandomUniform", shape=[100]), engine_of("RandomUniform", shape=[100], seed=1.0)
    first, second = free([])[0], free([])[0]
    assert (first != second).mean() > 0.9
    np.testing.assert_array_equal(seeded([])[0], seeded([])[0])
    assert (seeded([])[0] != engine_of("RandomUniform", shape=[100], seed=2.0)([])[0]).mean() > 0.9


def test_two_nodes_without_a_seed_draw_different_numbers():
    nodes = [helper.make_node("RandomNormal", [], [name], shape=[50]) for name in "ab"]
    engine = lw.Engine(lw.compile(lw.from_onnx(make_model(nodes, {}, ["a", "b"], 22)), jobs=1))
    a, b = engine([])
    assert (a != b).all()


def test_numbers_do_not_depend_on_threads():
    options = {"shape": [300, 1000], "seed": 4.0}
    one, two = (engine_of("RandomUniform", threads=n, **options)([])[0] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("op", "mean", "deviation"), [("RandomUniform", 0.5, 12**-0.5), ("RandomNormal", 0, 1)])
def test_the_distribution_of_many(op, mean, deviation):
    (y,) = engine_of(op, shape=[1 << 18], seed=5.0)([])
    assert y.mean() == pytest.approx(mean, abs=0.005)
    assert y.std() == pytest.approx(deviation, abs=0.005)
    assert abs(np.corrcoef(y[:-1], y[1:])[0, 1]) < 0.01
    if op == "RandomNormal":
        assert ((abs(y) < 1).mean(), (abs(y) < 2).mean()) == pytest.approx((0.6827, 0.9545), abs=0.005)
    else:
        assert np.histogram(y, 16, (0, 1))[0] / y.size == pytest.approx(np.full(16, 1 / 16), abs=0.003)


def test_classes_are_drawn_by_their_probabilities_of_open_batches():
    engine = engine_of("Multinomial", [(np.float32, ("n", 4))], sample_size=20000, seed=1.0)
    shares = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.0, 0.3, 0.0]])
    with np.errstate(divide="ignore"):
        (y,) = engine([np.log(shares).astype(np.float32)])
    found = [np.bincount(row, minlength=4) / len(row) for row in y]
    np.testing.assert_allclose(found, shares, atol=0.015)
    assert engine([np.zeros((0, 4), np.float32)])[0].shape == (0, 20000)


def test_shapes_may_be_open_and_empty():
    engine = engine_of("RandomUniformLike", [(np.float32, ("n", 3))], seed=SEED)
    for rows in (0, 1, 50):
        (y,) = engine([np.zeros((rows, 3), np.float32)])
        np.testing.assert_array_equal(y, drawn(uniform(3 * rows), (rows, 3)))


def test_brain_floats_stay_below_one():
    (y,) = engine_of("RandomUniform", shape=[5000], dtype=TensorProto.BFLOAT16, seed=1.0)([])
    assert y.dtype == ml_dtypes.bfloat16
    assert y.astype(np.float32).max() < 1


def test_bernoulli_is_made_of_them():
    p = np.linspace(0, 1, 5, dtype=np.float32).repeat(4000)
    (y,) = engine_of("Bernoulli", [(np.float32, p.shape)], seed=2.0)([p])
    np.testing.assert_allclose(y.reshape(5, -1).mean(1), np.linspace(0, 1, 5), atol=0.03)


def test_dropout_without_a_seed_drops_a_share_of_open_shapes():
    model = make_model(
        [helper.make_node("Dropout", ["x", "r", "t"], ["y", "mask"])],
        {"x": (np.float32, ("n", 100))}, ["y", "mask"], 22, {"r": np.float32(0.25), "t": np.array(True)},
    )  # fmt: skip
    engine = lw.Engine(lw.compile(lw.from_onnx(model), jobs=1))
    x = np.ones((200, 100), np.float32)
    y, mask = engine([x])
    assert mask.mean() == pytest.approx(0.75, abs=0.02)
    np.testing.assert_allclose(y, np.where(mask, 1 / 0.75, 0), rtol=1e-6)
    assert (engine([x])[1] != mask).any()


def test_each_iteration_of_a_loop_draws_anew():
    body = helper.make_graph(
        [
            helper.make_node("RandomUniform", [], ["r"], shape=[4]),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [onnx.ValueInfoProto(name="go_on"), onnx.ValueInfoProto(name="r")],
    )  # fmt: skip
    node = helper.make_node("Loop", ["trips", ""], ["y"], body=body)
    model = make_model([node], {}, ["y"], 22, {"trips": np.int64(5)})
    (y,) = lw.Engine(lw.compile(lw.from_onnx(model), jobs=1))([])
    assert len(np.unique(y)) == y.size == 20


def test_what_is_drawn_must_be_of_floats():
    model = make_model([helper.make_node("RandomUniformLike", ["x"], ["y"])], {"x": np.arange(3)}, ["y"], 22)
    with pytest.raises(lw.ModelError, match="the element type int64 is not supported"):
        lw.from_onnx(model)
