"""topk: order, ties, NaN, all dtypes and extents, against numpy's stable sort."""

import ml_dtypes
import numpy as np
import pytest
from pairs import each_pair

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.graph.node import Tuple
from loopwright.ir.makers import as_index
from loopwright.ops import nn
from loopwright.ops.families.merge_exchange import sort_ascending

RNG = np.random.default_rng(0)


def best(x, k, axis, largest):
    """NaN is the largest; of equals the first is the first in either order."""
    order = np.unique(x.ravel()).tolist()  # ascending, NaN last
    ranks = np.searchsorted(order, x)
    places = np.take(np.argsort(-ranks if largest else ranks, axis, kind="stable"), np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places


def check(ops, x, k, axis, largest, native=True):
    values, places = (ops.apply(lambda v, n=n: nn.topk(v, k, axis, largest)[n], x, native=native) for n in range(2))
    wanted, where = best(x, k, axis, largest)
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(places, where)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("shape", "k", "axis"), [((17,), 5, 0), ((3, 9), 9, -1), ((4, 6, 3), 2, 1), ((5, 2), 1, 0)])
def test_the_best_come_in_order_and_the_first_of_equals_first(ops, shape, k, axis, largest, native):
    x = RNG.integers(-3, 4, shape).astype(np.float32)
    check(ops, x, k, axis, largest, native)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 64, 999, 1000])
def test_rows_that_ascend_descend_or_are_random(ops, k, largest):
    x = np.stack([np.arange(1000), -np.arange(1000), RNG.permutation(1000), np.zeros(1000)]).astype(np.float32)
    check(ops, x, k, 1, largest)


@pytest.mark.parametrize(
    "kind",
    [np.int8, np.uint8, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float64],
)
def test_all_numbers_are_ordered(ops, kind):
    limits = np.iinfo(kind) if np.issubdtype(kind, np.integer) else np.finfo(kind)
    x = np.concatenate([RNG.integers(0, 50, 40).astype(kind), np.array([limits.min, limits.max, 0], kind)])
    for largest in (False, True):
        check(ops, x, 10, 0, largest)


@pytest.mark.parametrize("largest", [False, True])
def test_nan_is_larger_than_all_numbers(ops, largest):
    x = np.array([1, np.nan, np.inf, -np.inf, np.nan, -0.0, 0.0, 5], np.float32)
    for k in (1, 3, 8):
        check(ops, x, k, 0, largest)


@pytest.mark.parametrize("largest", [False, True])
def test_nan_anywhere_in_a_long_row(ops, largest):
    x = RNG.standard_normal(500).astype(np.float32)
    x[RNG.integers(0, 500, 20)] = np.nan
    for k in (1, 15, 40):
        check(ops, x, k, 0, largest)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 7, 40, 300])
def test_the_best_come_late_or_are_many_alike(ops, k, largest):
    """The bound that groups give is poor in these rows, so that the buffer fills up again and again."""
    rises = np.arange(5003) * (1 if largest else -1)
    steps = rises // 500
    late = np.where(rises > 4500, rises, RNG.integers(0, 3, 5003))
    check(ops, np.stack([rises, steps, late, np.ones(5003)]).astype(np.float32), k, 1, largest)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("count", [*range(20), 31, 32, 33, 100, 257])
def test_merge_exchange_sorts_any_number_of_keys(count, native):
    x = RNG.integers(-20, 20, count + 1)

    def body(ins, outs):
        ib = te.IRBuilder()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, count + 1, name="i") as i:
            target[i] = source[i]
        sort_ascending(ib, target, as_index(count))
        return ib.get()

    X = te.placeholder(x.shape, "int64", name="X")
    Y = te.extern(x.shape, [X], body, name="Y", dtype="int64")
    made, y = lw.create_schedule(Y), np.zeros_like(x)
    if native:
        lw.build(made, [X, Y])(x, y)
    else:
        lw.interpret(lw.lower(made, [X, Y]))(x, y)
    np.testing.assert_array_equal(y, [*np.sort(x[:-1]), x[-1]])


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_nothing_is_found_in_nothing(ops, shape):
    x = np.zeros(shape, np.float32)
    check(ops, x, 0, 1, True)


def test_extents_may_be_open_and_too_few_elements_are_an_error():
    n = te.var("n")
    x = lw.var("x", (n, n))
    engine = lw.Engine(lw.compile(lw.Function([x], Tuple(nn.topk(x, 3, axis=1)))))
    for extent in (3, 4, 33):
        array = RNG.standard_normal((extent, extent), np.float32)
        values, places = engine([array])
        np.testing.assert_array_equal(values, best(array, 3, 1, True)[0])
        np.testing.assert_array_equal(places, best(array, 3, 1, True)[1])
    with pytest.raises(lw.LoopwrightError, match="n"):
        engine([np.zeros((2, 2), np.float32)])


@each_pair(
    kind=["float32", "float16", "bfloat16", "int8", "uint32"],
    shape=[((37, 6), 1), ((6, 41), 0), ((3, 7, 19), 1), ((2, 25, 9), 2), ((16, 200), 1)],
    k=[2, 5],
    largest=[False, True],
)
def test_few_of_many_short_rows_are_found_side_by_side(ops, kind, shape, k, largest):
    extents, axis = shape
    x = RNG.integers(0, 9, extents).astype(np.float32)  # with many ties
    if kind in ("float32", "float16", "bfloat16"):
        x[x == 1], x[x == 2], x[x == 3] = np.nan, -np.inf, -0.0
    x = x.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    node = lw.var("x", x.shape, kind)
    function = lw.Function([node], Tuple(nn.topk(node, k, axis, largest)))
    (chosen,) = lw.explain(function, target="x86-64-v4").functions[0].choices
    assert chosen.implementation == "topk.lanes"
    wanted, where = best(x.astype(np.float64), k, axis, largest)
    values, places = (ops.apply(lambda v, n=n: nn.topk(v, k, axis, largest)[n], x) for n in range(2))
    np.testing.assert_array_equal(values.astype(np.float64), wanted)
    np.testing.assert_array_equal(places, where)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "native"])
def test_any_number_of_rows_is_served(target):
    x = lw.var("x", (te.var("rows"), te.var("columns")))
    engine = lw.Engine(lw.compile(lw.Function([x], Tuple(nn.topk(x, 3, 1))), target=target, jobs=1))
    for shape in ((1, 3), (7, 4), (8, 5), (9, 30), (40, 16), (20, 600), (0, 5)):
        data = RNG.integers(-9, 9, shape).astype(np.float32)
        for found, wanted in zip(engine([data]), best(data, 3, 1, True), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_misuse_is_refused(ops):
    x = ops.var((3, 4))
    with pytest.raises(TypeInferenceError, match=r"k is 5, but axis 1 of .* has only 4 elements"):
        nn.topk(x, 5)
    with pytest.raises(TypeInferenceError, match="must be 0 or more"):
        nn.topk(x, -1)
    with pytest.raises(TypeInferenceError, match="axis 2 is not one"):
        nn.topk(x, 1, 2)
    with pytest.raises(TypeInferenceError, match="x must be of float"):
        nn.topk(ops.var((3,), "bool"), 1)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "uint32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_largest_alone_is_found_by_reductions(ops, kind, axis):
    x = np.random.default_rng(axis).integers(0, 9, (5, 7, 33)).astype(kind)
    if x.dtype.kind == "f":
        x[2, 3, 4] = x[2, 3, 30] = x[4, 3, 4] = np.nan
    values, places = nn.topk(ops.var(x.shape, kind), 1, axis)
    assert (values.op.name, places.op.name) == ("max", "argmax")
    check(ops, x, 1, axis, True)
