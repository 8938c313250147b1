"""Tiles as instructions: which ones, how often they are configured, what a target without them says, exact results."""

import numpy as np
import pytest
from tile_products import product

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.module import emit_module
from loopwright.codegen.processor import allowed
from loopwright.ir.build import make_buffer
from loopwright.ir.constants import ZERO
from loopwright.ir.extern import Region
from loopwright.ir.makers import as_index
from loopwright.ir.stmt import Allocate, CallExtern, IRModule, PrimFunc, seq
from loopwright.ir.tiles import TileBlock
from loopwright.lowering.tensor_intrinsic import intrinsic_named
from loopwright.lowering.tile_intrinsics import dot4_tiles, require_intrinsic, store_tiles

TILES = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids"
rng = np.random.default_rng(0)


def built(target, signed=False, **options):
    s, args, C, held, i, block = product(signed=signed)
    s[held].tensorize(i, dot4_tiles(block, "int32", signed))
    s[C].tensorize(s[C].loops[0], store_tiles(block))
    return lw.build(s, args, target=target, **options)


@pytest.mark.parametrize(("signed", "instruction"), [(False, "tdpbusd"), (True, "tdpbsud")])
def test_a_function_configures_its_tiles_once_and_gives_them_back(signed, instruction):
    code = built(TILES, signed).assembly
    assert code.count("ldtilecfg") == code.count("tilerelease") == 1
    assert code.count(instruction) == 4  # two tiles of nine rows by two
    assert code.count("tilestored") == code.count("tilezero") == 4


def test_two_kinds_of_blocks_in_a_function_are_configured_one_after_the_other():
    A, W = te.placeholder((18, 6), "int32", "A"), te.placeholder((6, 16), "int32", "W")
    k, r = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 16), name="r")
    first = te.compute((18, 16), lambda i, j: te.sum(te.dot4(A[i, k], W[k, j]), axis=k), name="first")
    second = te.compute((18, 6), lambda i, j: te.sum(te.dot4(first[i, r], W[j, r]), axis=r), name="second")
    out = te.compute((18, 6), lambda i, j: second[i, j] + 1, name="out")
    s = lw.create_schedule(out)
    turned = s.cache_read(W, "local", [second])
    s[turned].transform_layout(lambda j, r: (r, j))
    for sums, block in ((first, TileBlock(18, 16, 6)), (second, TileBlock(18, 6, 16))):
        held = s.cache_write(sums, "tile")
        s[held].tensorize(s[held].loops[0], dot4_tiles(block, "int32", False))
        s[sums].tensorize(s[sums].loops[0], store_tiles(block))
    code = lw.build(s, [A, W, out], target=TILES).assembly
    assert code.count("ldtilecfg") == 2
    assert code.count("tilerelease") == 1


def test_two_blocks_are_not_in_tiles_at_once():
    block = TileBlock(4, 4, 4)
    for name in (dot4_tiles(block, "int32", False), store_tiles(block)):
        require_intrinsic(name)
    zero = intrinsic_named(dot4_tiles(block, "int32", False)).reset.function
    store = intrinsic_named(store_tiles(block)).update.function
    C = make_buffer("C", (as_index(4), as_index(4)), "int32")
    first, second = (make_buffer(name, C.shape, "int32", "tile") for name in ("first", "second"))

    def calls(*order):
        for buffer in order:
            yield CallExtern(zero, (whole(buffer),))
        yield CallExtern(store, (whole(C), whole(first)))

    def whole(buffer):
        return Region(buffer, (ZERO, ZERO), buffer.shape)

    for order, fits in (((second, first), True), ((first, second), False)):
        body = Allocate(first, Allocate(second, seq(*calls(*order))))
        module = IRModule((PrimFunc("main", (C,), body, (C,)),))
        if fits:
            emit_module(module, lw.resolve_target(TILES), CodegenOptions())
            continue
        with pytest.raises(lw.ScheduleError, match="accesses first, which is not in tiles, or not any more"):
            emit_module(module, lw.resolve_target(TILES), CodegenOptions())


def test_what_loops_access_cannot_lie_in_tiles():
    s, args, _, held, i, block = product()
    s[held].tensorize(i, dot4_tiles(block, "int32", False))
    with pytest.raises(lw.ScheduleError, match="lies in tiles, which intrinsics access as a whole, and nothing else"):
        lw.build(s, args, target=TILES)


def test_a_block_that_lies_elsewhere_is_refused():
    s, args, C, held, i, block = product()
    s[held].tensorize(i, dot4_tiles(block, "int32", False))
    s[C].tensorize(s[C].loops[0], store_tiles(block))
    s[held].set_scope("local")
    with pytest.raises(lw.ScheduleError, match=r"zero accesses C\.tile, which does not lie in tiles: set_scope"):
        lw.build(s, args, target=TILES)


@pytest.mark.parametrize("leave", [False, True])
def test_a_processor_whose_system_gives_no_leave_has_no_tiles(monkeypatch, leave):
    monkeypatch.setattr("loopwright.codegen.processor._may_use_tiles", lambda: leave)
    found = allowed({"avx2": True, "amx-tile": True, "amx-int8": True, "amx-fp16": False})
    assert found == {"avx2": True, "amx-tile": leave, "amx-int8": leave, "amx-fp16": False}
    assert not allowed({"avx2": True, "amx-tile": False})["amx-tile"]


@pytest.mark.parametrize("target", ["native", "x86-64"])
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_products_in_tiles_are_exact_and_loops_where_there_are_none(signed, debug, target):
    kernel = built(target, signed, debug=debug)
    assert ("ldtilecfg" in kernel.assembly) == lw.resolve_target(target).has_tiles
    a, b = (rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32) for shape in ((18, 6), (6, 32)))
    found = np.zeros((18, 32), np.int32)
    kernel(a, b, found)
    left, right = ("int8", "uint8") if signed else ("uint8", "int8")
    columns = np.ascontiguousarray(b.T).view(right).astype(np.int32)
    np.testing.assert_array_equal(found, 2 * (a.view(left).astype(np.int32) @ columns.T))
