"""Reductions in lanes: their order is that of the definition, to the bit, by any schedule; what is refused."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.errors import ExpressionError


def in_lanes(x, lanes, neighbours=False):
    """The float32 sum of the last axis in that order."""
    padded = np.zeros((*x.shape[:-1], -(-x.shape[-1] // lanes) * lanes), np.float32)
    padded[..., : x.shape[-1]] = x
    parts = np.zeros((*x.shape[:-1], lanes), np.float32)
    for first in range(0, padded.shape[-1], lanes):
        parts = parts + padded[..., first : first + lanes]
    while parts.shape[-1] > 1:
        half = parts.shape[-1] // 2
        parts = parts[..., ::2] + parts[..., 1::2] if neighbours else parts[..., :half] + parts[..., half:]
    return parts[..., 0]


def summed(shape, lanes, neighbours=False):
    a = te.placeholder(shape, name="A")
    k = te.reduce_axis((0, shape[-1]), name="k")
    return a, te.compute(
        shape[:-1], lambda *i: te.sum(a[(*i, k)], axis=k, lanes=lanes, neighbours=neighbours), name="S"
    )


@pytest.fixture
def values():
    return (np.random.default_rng(3).normal(size=(5, 83)) * 10.0 ** np.arange(-2, 3)[:, None]).astype(np.float32)


@pytest.mark.parametrize("neighbours", [False, True], ids=["halves", "neighbours"])
@pytest.mark.parametrize("lanes", [2, 16, 128])
@pytest.mark.parametrize("scheduled", ["plain", "default", "vectors"])
def test_the_order_is_that_of_the_definition_by_any_schedule(values, lanes, neighbours, scheduled):
    a, total = summed(values.shape, lanes, neighbours)
    s = lw.create_schedule(total)
    if scheduled == "default":
        s = lw.default_schedule([total], "native")
    elif scheduled == "vectors":
        row = s[total].split(s[total].loops[0], factor=2)[0]
        for part in reversed(te.lane_parts(total)):
            s[part].compute_at(s[total], row)
            s[part].vectorize(s[part].split(s[part].loops[1], factor=2)[1])
    result = np.empty(len(values), np.float32)
    lw.build(s, [a, total], precision="strict")(values, result)
    np.testing.assert_array_equal(result, in_lanes(values, lanes, neighbours))


def test_open_rows_give_the_bits_of_known_ones(values):
    n = te.var("n")
    a, total = summed((5, n), 16)
    kernel = lw.build(lw.create_schedule(total), [a, total])
    for length in (83, 64, 15, 1, 0):
        result = np.empty(5, np.float32)
        kernel(np.ascontiguousarray(values[:, :length]), result)
        np.testing.assert_array_equal(result, in_lanes(values[:, :length], 16))


def test_other_axes_and_a_condition_are_inside_of_each_lane(values):
    a = te.placeholder((3, 83), name="A")
    j, k = te.reduce_axis((0, 3), name="j"), te.reduce_axis((2, 83), name="k")
    total = te.compute((), lambda: te.sum(a[j, k], axis=(j, k), where=a[j, k] > 0.0, lanes=4), name="S")
    result = np.empty((), np.float32)
    lw.build(lw.create_schedule(total), [a, total])(values[:3], result)
    kept = np.where(values[:3] > 0, values[:3], np.float32(0))[:, 2:]
    lanes = np.zeros(4, np.float32)
    for row in kept:
        for at, term in enumerate(row):
            lanes[at % 4] += term
    assert result == (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


@pytest.mark.parametrize("length", [7, 64])
def test_reductions_of_pairs(length):
    x = np.random.default_rng(0).integers(0, 9, (4, length)).astype(np.float32)
    a, k = te.placeholder(x.shape, name="A"), te.reduce_axis((0, length), name="k")

    def largest(one, two):
        wins = (two[0] > one[0]) | (two[0] == one[0]) & (two[1] < one[1])
        return te.select(wins, two[0], one[0]), te.select(wins, two[1], one[1])

    first = te.reducer("first", largest, lambda kinds: (te.min_value(kinds[0]), te.max_value(kinds[1])))
    best, place = te.compute((4,), lambda i: first((a[i, k], te.cast(k, "int64")), axis=k, lanes=8), name="best")
    values, places = np.empty(4, np.float32), np.empty(4, np.int64)
    lw.build(lw.create_schedule([best, place]), [a, best, place])(x, values, places)
    np.testing.assert_array_equal(values, x.max(1))
    np.testing.assert_array_equal(places, x.argmax(1))


def test_the_parts_are_stages_of_their_own():
    _, total = summed((3, 40), 8)
    assert [part.name for part in te.lane_parts(total)] == ["S.lanes", "S.half4", "S.half2"]
    assert te.lane_parts(te.placeholder((3,))) == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"lanes": 12}, "lanes is a power of two, from 2 on, found 12"),
        ({"lanes": 1}, "found 1"),
        ({"lanes": 4.0}, "found 4.0"),
        ({"neighbours": True}, "neighbours says how lanes are folded"),
    ],
)
def test_what_is_no_number_of_lanes_is_refused(options, problem):
    a, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), name="k")
    with pytest.raises(ExpressionError, match=problem):
        te.sum(a[k], axis=k, **options)


def test_rows_of_several_lengths_are_refused():
    a, row = te.placeholder((9,), name="A"), te.placeholder((4,), "int32", name="row")

    def element(i):
        k = te.reduce_axis((row[i], row[i + 1]), name="k")
        return te.sum(a[k], axis=k, lanes=4)

    with pytest.raises(ExpressionError, match="k is folded in lanes, so it must be as long for all elements"):
        te.compute((3,), element, name="S")
