"""Vectors of words that are joined of their bytes: loaded as they lie where the bytes lie side by side."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

WORDS = 77
HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
ORDERS = {"as they lie": (0, 1, 2, 3), "turned": (3, 2, 1, 0), "one twice": (0, 1, 1, 3)}
BYTES = np.random.default_rng(0).integers(0, 256, WORDS * 5 + 3).astype(np.uint8)


def join(lanes, target, kind="uint8", order=(0, 1, 2, 3), stride=4, tail="guard", **options):
    """A kernel of words, of the bytes at a place and the three behind it."""
    x = te.placeholder(BYTES.shape, kind, name="x")

    def element(i):
        bits = [te.cast(te.cast(x[i * stride + at], "uint8"), "int32") << 8 * place for place, at in enumerate(order)]
        return bits[0] | bits[1] | bits[2] | bits[3]

    y = te.compute((WORDS,), element, name="y")
    schedule = lw.create_schedule(y)
    _, lane = schedule[y].split(y.op.axis[0], factor=lanes, tail=tail)
    schedule[y].vectorize(lane)
    return lw.build(schedule, [x, y], target=target, name="join", **options)


def check(kernel, kind="uint8", order=(0, 1, 2, 3), stride=4):
    y = np.empty(WORDS, np.int32)
    kernel(BYTES.view(kind), y)
    at = np.arange(WORDS)[:, None] * stride + np.array(order)
    np.testing.assert_array_equal(y, np.ascontiguousarray(BYTES[at]).view("<i4")[:, 0])


@pytest.mark.parametrize("tail", ["guard", "mask", "peel"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("target", RUNNABLE)
def test_words_have_the_bytes_that_they_are_joined_of(target, order, kind, tail):
    check(join(8, target, kind, order, tail=tail), kind, order)


@pytest.mark.parametrize("stride", [1, 3, 5])
def test_words_that_overlap_or_lie_apart_are_joined(stride):
    check(join(8, "native", stride=stride), stride=stride)


def test_what_is_checked_is_read_byte_by_byte():
    check(join(8, "native", debug=True))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_vectors_of_words_are_loaded_whole(kind):
    target = lw.resolve_target("x86-64-v3")
    whole, turned = (join(8, target, kind, order, tail="mask").assembly for order in ((0, 1, 2, 3), (3, 2, 1, 0)))
    assert "vpor" not in whole
    assert "vpor" in turned
