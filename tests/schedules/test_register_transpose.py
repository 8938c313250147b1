"""Tiles that are turned, or interleaved, in registers: against numpy, natively and by the interpreter."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.schedules.register_transpose import interleave_rows, turn_tiles


def turned(shape, lanes, follow):
    """A transpose of the last two of three axes by tiles of so many lanes: schedule and arguments."""
    X = te.placeholder(shape, name="X")
    T = te.compute((shape[0], shape[2], shape[1]), lambda b, i, j: X[b, j, i], name="T")
    Y = te.compute(T.shape, lambda *i: T[i] * 2.0, name="Y") if follow else T
    s = lw.create_schedule(Y)
    if follow:
        s[T].compute_inline()
    stage = s[Y]
    b, i, j = stage.loops
    i_outer, along = stage.split(i, lanes)
    j_outer, across = stage.split(j, lanes)
    stage.reorder(b, i_outer, j_outer, along, across)
    stage.unroll(along)
    stage.vectorize(across)
    turn_tiles(s, X, T, stage, j_outer, 1, lanes)
    return s, [X, Y]


def interleaved(rows, length, lanes):
    X = te.placeholder((2, rows, length), name="X")
    Y = te.compute((2, length, rows), lambda b, at, row: X[b, row, at], name="Y")
    s = lw.create_schedule(Y)
    stage = s[Y]
    _, at, row = stage.loops
    block, within = stage.split(stage.fuse(at, row), lanes * rows)
    vector, lane = stage.split(within, lanes)
    stage.unroll(vector)
    stage.vectorize(lane)
    interleave_rows(s, X, Y, stage, block, 1, lanes)
    return s, [X, Y]


def check(s, args, x, expected, target="x86-64-v3"):
    function = lw.lower(s, args, target=target)
    interpreted, native = (np.full(expected.shape, -7, np.float32) for _ in range(2))
    lw.interpret(function)(x, interpreted)
    lw.build(s, args, target=target)(x, native)
    for found in (interpreted, native):
        np.testing.assert_array_equal(found, expected)


def values(*shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x.flat[0], x.flat[-1] = np.nan, -np.inf
    return x


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", [(1, 8, 8), (2, 7, 13), (1, 1, 9), (3, 16, 5), (1, 17, 1)], ids=str)
def test_tiles_are_turned(shape, lanes, follow):
    x = values(*shape)
    check(*turned(shape, lanes, follow), x, x.transpose(0, 2, 1) * (2 if follow else 1))


def test_tiles_of_open_extents_are_turned():
    shape = (te.var("b"), te.var("n"), te.var("m"))
    for extents in ((1, 1, 1), (2, 9, 4), (1, 8, 23)):
        x = values(*extents)
        check(*turned(shape, 8, follow=True), x, x.transpose(0, 2, 1) * 2)


def test_a_turned_tile_is_loads_shuffles_and_stores_of_whole_vectors():
    s, args = turned((1, 64, 64), 8, follow=False)
    llvm_ir = lw.build(s, args, target="x86-64-v3").llvm_ir
    assert "gather" not in llvm_ir
    assert "load float," not in llvm_ir
    assert len(s.trace.steps) == 37


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 8, 13, 64])
def test_rows_are_interleaved(rows, length, lanes):
    x = values(2, rows, length)
    check(*interleaved(rows, length, lanes), x, x.transpose(0, 2, 1))
