"""The intrinsics of tiles: their code does what they say; schedules with them sum as without; and what is refused."""

import numpy as np
import pytest
from tile_products import product

import loopwright as lw
from loopwright import te
from loopwright.ir.stmt import CallExtern, If
from loopwright.ir.tiles import TileBlock
from loopwright.ir.visit import walk
from loopwright.lowering.intrinsic_check import check_intrinsic
from loopwright.lowering.tensor_intrinsic import intrinsic_named
from loopwright.lowering.tile_intrinsics import dot4_tiles, require_intrinsic, store_tiles

BLOCKS = [TileBlock(4, 6, 3), TileBlock(18, 20, 2), TileBlock(16, 48, 1), TileBlock(1, 1, 16)]
rng = np.random.default_rng(0)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize(("left", "signed"), [("int8", True), ("uint8", False), ("int32", True), ("int32", False)])
def test_the_code_of_a_step_does_what_its_compute_says(block, left, signed):
    name = dot4_tiles(block, left, signed)
    require_intrinsic(name)
    made = intrinsic_named(name)
    check_intrinsic(name, made.views, made.nest(made.declared), made.update)
    check_intrinsic(name, made.views, made.nest(made.identity), made.reset)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_the_code_that_stores_a_block_copies_it(block):
    require_intrinsic(store_tiles(block))
    made = intrinsic_named(store_tiles(block))
    check_intrinsic(made.name, made.views, made.nest(made.declared), made.update)


@pytest.mark.parametrize(
    ("block", "exists"),
    [
        (TileBlock(32, 32, 16), True),
        (TileBlock(16, 48, 16), True),
        (TileBlock(33, 32, 16), False),  # three tiles of 11 rows, by two: 11 registers
        (TileBlock(31, 16, 4), False),  # tiles are equally high
        (TileBlock(16, 16, 17), False),
        (TileBlock(0, 16, 4), False),
    ],
    ids=str,
)
def test_there_are_registers_for_blocks_of_eight_tiles(block, exists):
    assert block.exists is exists
    if not exists:
        with pytest.raises(lw.ScheduleError, match=r"no registers for tiles of"):
            require_intrinsic(store_tiles(block))


def test_an_interpreted_product_in_tiles_is_numpys():
    for signed in (False, True):
        s, args, C, held, i, block = product(signed=signed)
        s[held].tensorize(i, dot4_tiles(block, "int32", signed))
        s[C].tensorize(s[C].loops[0], store_tiles(block))
        lowered = lw.lower(s, args)
        assert sum(isinstance(node, CallExtern) for node in walk(lowered.body)) == 3
        a, b = (rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32) for shape in ((18, 6), (6, 32)))
        found = np.zeros((18, 32), np.int32)
        lw.interpret(lowered)(a, b, found)
        left, right = ("int8", "uint8") if signed else ("uint8", "int8")
        columns = np.ascontiguousarray(b.T).view(right).astype(np.int32)
        np.testing.assert_array_equal(found, 2 * (a.view(left).astype(np.int32) @ columns.T))


def test_rows_whose_words_lie_apart_do_not_match():
    s, args, _, held, i, block = product()
    s.cache_read(args[0], "local", [held])
    s["A.local"].transform_layout(lambda i, k: (k, i))
    with pytest.raises(lw.ScheduleError, match="the loops do not compute what tiles_18x32x2_dot4_int32_us does"):
        s[held].tensorize(i, dot4_tiles(block, "int32", False))


def test_a_block_with_other_signs_does_not_match():
    s, _, _, held, i, block = product(signed=True)
    with pytest.raises(lw.ScheduleError, match="the loops do not compute"):
        s[held].tensorize(i, dot4_tiles(block, "int32", False))


def test_ragged_rows_are_rounded_up_without_a_condition():
    """19 rows in blocks of 10, of a copy that goes on behind the last row."""
    A, B = te.placeholder((19, 4), "int32", "A"), te.placeholder((4, 16), "int32", "B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((19, 16), lambda i, j: te.sum(te.dot4(A[i, k], B[k, j]), axis=k), name="C")
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1, name="D")
    block, s = TileBlock(10, 16, 4), lw.create_schedule(D)
    s.cache_read(A, "local", [C], pad=0)
    held = s.cache_write(C, "tile")
    at, _ = s[D].split(s[D].loops[0], factor=10)
    for stage in (s[C], s[held]):
        stage.round_up(stage.loops[0], factor=10)
        stage.compute_at(s[D], at)
    s[C].tensorize(s[C].loops[0], store_tiles(block))
    s[held].tensorize(s[held].loops[0], dot4_tiles(block, "int32", False))
    lowered = lw.lower(s, [A, B, D])
    calls = [node for node in walk(lowered.body) if isinstance(node, If) for node in walk(node)]
    assert not any(isinstance(node, CallExtern) for node in calls)
    a, b = (rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32) for shape in ((19, 4), (4, 16)))
    found = np.zeros((19, 16), np.int32)
    lw.interpret(lowered)(a, b, found)
    columns = np.ascontiguousarray(b.T).view(np.int8).astype(np.int32)
    np.testing.assert_array_equal(found, a.view(np.uint8).astype(np.int32) @ columns.T + 1)


def test_a_trace_with_tiles_replays():
    s, args, C, held, i, block = product()
    s[held].tensorize(i, dot4_tiles(block, "int32", False))
    s[C].tensorize(s[C].loops[0], store_tiles(block))
    again = lw.create_schedule(args[-1])
    again.replay(s.trace)
    assert str(lw.lower(again, args)) == str(lw.lower(s, args))
