"""Vectors of words that are joined of their bytes: loaded as they lie where the bytes lie side by side."""

import ctypes
import functools
import mmap
import operator

import numpy as np
import pytest
from pairs import each_pair

import loopwright as lw
from loopwright import te

WORDS = 77
HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
ORDERS = {"as they lie": (0, 1, 2, 3), "turned": (3, 2, 1, 0), "one twice": (0, 1, 1, 3)}
BYTES = np.random.default_rng(0).integers(0, 256, WORDS * 5 + 3).astype(np.uint8)


def join(lanes, target, kind="uint8", order=(0, 1, 2, 3), stride=4, tail="guard", x=BYTES, **options):
    """A kernel of words, of the bytes at a place and near it."""
    x = te.placeholder(x.shape, kind, name="x")

    def element(i):
        bits = [te.cast(te.cast(x[i * stride + at], "uint8"), "int32") << 8 * place for place, at in enumerate(order)]
        return bits[0] | bits[1] | bits[2] | bits[3]

    y = te.compute((WORDS,), element, name="y")
    schedule = lw.create_schedule(y)
    _, lane = schedule[y].split(y.op.axis[0], factor=lanes, tail=tail)
    schedule[y].vectorize(lane)
    return lw.build(schedule, [x, y], target=target, name="join", **options)


def before_unreadable(array):
    """The bytes, the last of which is that of a page behind which nothing may be read."""
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    held = np.frombuffer(pages, np.uint8)
    behind = ctypes.c_void_p(held.ctypes.data + mmap.PAGESIZE)
    assert ctypes.CDLL(None).mprotect(behind, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    held[mmap.PAGESIZE - array.size : mmap.PAGESIZE] = array
    return held[mmap.PAGESIZE - array.size : mmap.PAGESIZE]


def check(kernel, kind="uint8", order=(0, 1, 2, 3), stride=4, x=BYTES):
    y = np.empty(WORDS, np.int32)
    kernel(x.view(kind), y)
    at = np.arange(WORDS)[:, None] * stride + np.array(order)
    np.testing.assert_array_equal(y, np.ascontiguousarray(x[at]).view("<i4")[:, 0])


@pytest.mark.parametrize("tail", ["guard", "mask", "peel"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("target", RUNNABLE)
def test_words_have_the_bytes_that_they_are_joined_of(target, order, kind, tail):
    check(join(8, target, kind, order, tail=tail), kind, order)


@each_pair(
    target=RUNNABLE,
    stride=[1, 2, 3, 5, 8],
    order=[*ORDERS.values(), (0, 2, 4, 6), (5, 0, 8, 1)],
    tail=["guard", "mask", "peel"],
)
def test_words_that_overlap_or_lie_apart_are_joined(target, stride, order, tail):
    x = np.resize(BYTES, WORDS * stride + 8)
    for lanes in (4, 8, 16):
        check(join(lanes, target, order=order, stride=stride, tail=tail, x=x), order=order, stride=stride, x=x)


@each_pair(target=RUNNABLE, stride=[1, 2, 4], places=[(0, 1, 2), (3, 1), (1, 2, 3), (0, 3)])
def test_bytes_that_no_load_gives_are_zero(target, stride, places):
    """Words of three taps have a byte that nothing is read for."""
    x = te.placeholder((WORDS * 4 + 3,), "uint8", name="x")

    def element(i):
        bits = [te.cast(x[i * stride + place], "int32") << 8 * place for place in places]
        return functools.reduce(operator.or_, bits)

    y = te.compute((WORDS,), element, name="y")
    schedule = lw.create_schedule(y)
    _, lane = schedule[y].split(y.op.axis[0], factor=16, tail="mask")
    schedule[y].vectorize(lane)
    given, found = BYTES[: WORDS * 4 + 3], np.empty(WORDS, np.int32)
    lw.build(schedule, [x, y], target=target)(given, found)
    expected = [sum(int(given[i * stride + place]) << 8 * place for place in places) for i in range(WORDS)]
    np.testing.assert_array_equal(found, np.array(expected, np.uint32).view(np.int32))


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("count", [1, 5, 7])
def test_nothing_behind_the_last_byte_is_read(target, count):
    """Of a vector that a mask cuts short, only what it shows is read: the page behind the bytes is none of ours."""
    x = te.placeholder((count * 2 + 2,), "uint8", name="x")
    y = te.compute(
        (count,), lambda i: functools.reduce(operator.or_, [te.cast(x[i * 2 + k], "int32") << 8 * k for k in range(4)])
    )
    schedule = lw.create_schedule(y)
    _, lane = schedule[y].split(y.op.axis[0], factor=8, tail="mask")
    schedule[y].vectorize(lane)
    given, found = before_unreadable(BYTES[: count * 2 + 2]), np.empty(count, np.int32)
    lw.build(schedule, [x, y], target=target)(given, found)
    expected = [int.from_bytes(bytes(given[2 * i : 2 * i + 4]), "little", signed=True) for i in range(count)]
    np.testing.assert_array_equal(found, expected)


def test_what_is_checked_is_read_byte_by_byte():
    check(join(8, "native", debug=True))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_vectors_of_words_are_loaded_whole(kind):
    target = lw.resolve_target("x86-64-v3")
    cases = {(0, 1, 2, 3): "mask", (3, 2, 1, 0): "peel", (0, 1, 2, 30): "peel"}
    whole, turned, apart = (join(8, target, kind, order, tail=tail).assembly for order, tail in cases.items())
    assert "vpor" not in whole
    assert "vpshufb" not in whole
    assert "vpshufb" in turned
    assert turned.count("vpor") < apart.count("vpor")
