"""Products of 8-bit integers against numpy in int64: every pair of signs, awkward extents, extreme values, targets."""

from dataclasses import replace

import numpy as np
import pytest
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.base.errors import TypeInferenceError
from loopwright.compiler.selection.select import get_valid_implementations
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Constant
from loopwright.graph.types import tensor_type
from loopwright.ops import nn
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.matmul.matmul import dense, matmul
from loopwright.ops.families.matmul.packed import WordPanels

HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v4", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
SIGNS = [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")]
rng = np.random.default_rng(0)


def extremes(shape, kind):
    """The smallest and largest values and those around 0, each in a third of the places or so."""
    limits = np.iinfo(kind)
    return rng.choice([limits.min, limits.max, limits.min + 1, 1, 0, limits.max - 1], shape).astype(kind)


def offered(call, target):
    return [candidate.implementation for candidate in get_valid_implementations(call, CompileSettings(target))]


def product(a, b):
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize("signs", SIGNS, ids="-".join)
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 5), (5, 3)),
        ((3, 8), (8, 20)),
        ((2, 3, 6), (2, 6, 5)),
        ((2, 3, 4), (4, 7)),
        ((4,), (4, 2)),
        ((3, 1), (1, 2)),
    ],
    ids=str,
)
def test_small_products_are_numpys(ops, a, b, native, signs):
    x, y = extremes(a, signs[0]), extremes(b, signs[1])
    found = ops.apply(matmul, x, y, native=native)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, product(x, y))


AWKWARD = [(3, 1000, 17), (33, 66, 65), (40, 64, 33), (9, 3001, 16)]


@pytest.mark.parametrize(("shape", "signs"), [*zip(AWKWARD, SIGNS, strict=True)], ids=str)
def test_products_of_awkward_sizes_are_exact_native(ops, shape, signs):
    m, k, n = shape
    a, b = extremes((m, k), signs[0]), extremes((k, n), signs[1])
    np.testing.assert_array_equal(ops.apply(matmul, a, b, native=True), product(a, b))
    np.testing.assert_array_equal(ops.apply(dense, a, b.T, native=True), product(a, b))


@pytest.mark.parametrize("shape", [((0, 5), (5, 7)), ((3, 0), (0, 7)), ((3, 5), (5, 0))], ids=str)
def test_empty_products(ops, shape):
    a, b = (np.zeros(s, "int8") for s in shape)
    np.testing.assert_array_equal(ops.apply(matmul, a, b, native=True), product(a, b))


def test_sums_beyond_int32_wrap(ops):
    a, b = np.full((1, 70_000), 255, "uint8"), np.full((70_000, 1), 255, "uint8")
    np.testing.assert_array_equal(ops.apply(matmul, a, b, native=True), product(a, b))


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("signs", SIGNS[:2], ids="-".join)
def test_every_target_gives_the_same(ops, target, signs):
    resolved = lw.resolve_target(target)
    call = matmul(ops.var((2, 19, 50), signs[0]), ops.var((2, 50, 37), signs[1]))
    chosen, tensors, computed = ops.implement(call, resolved)
    (out,) = outputs_of(computed)
    assert chosen.name == "matmul.bytes"
    schedule = chosen.schedule(call.attrs, computed, (out,), resolved)
    a, b, found = extremes((2, 19, 50), signs[0]), extremes((2, 50, 37), signs[1]), np.empty((2, 19, 37), np.int32)
    lw.build(schedule, [*tensors, out], target=resolved, precision="strict")(a, b, found)
    np.testing.assert_array_equal(found, product(a, b))


PRODUCTS = {"made": matmul, "turned": dense, "packed": nn.packed_byte_matmul}


@each_value(name=PRODUCTS, terms=[64, 70], target=RUNNABLE)
def test_a_left_factor_beyond_the_second_cache_goes_by_once_for_a_chunk_of_panels(ops, name, terms, target):
    make = PRODUCTS[name]
    resolved = replace(lw.resolve_target(target), l2_bytes=2**12)
    a, b = extremes((45, terms), "uint8"), extremes((terms, 150), "uint8")
    right = b
    if make is nn.packed_byte_matmul:
        right = np.ascontiguousarray(WordPanels(resolved.lanes("int32"), transposed=False)(b))
        call = make(ops.var(a.shape, "uint8"), ops.var(right.shape, "int32"), 150, "uint8")
    else:
        right = np.ascontiguousarray(b.T) if make is dense else b
        call = make(ops.var(a.shape, "uint8"), ops.var(right.shape, "uint8"))
    chosen, tensors, computed = ops.implement(call, resolved)
    (out,) = outputs_of(computed)
    schedule = chosen.schedule(call.attrs, computed, (out,), resolved)
    found = np.empty((45, 150), np.int32)
    lw.build(schedule, [*tensors, out], target=resolved)(a, right, found)
    np.testing.assert_array_equal(found, product(a, b))


def test_symbolic_rows_and_what_follows(ops):
    m = te.var("m")
    call = matmul(ops.var((m, 30), "uint8"), ops.var((30, 20), "int8"))
    assert call.type is tensor_type((m, 20), "int32")
    chosen, tensors, computed = ops.implement(call)
    (out,) = outputs_of(computed)
    scaled = te.compute(out.shape, lambda i, j: te.maximum(te.cast(out[i, j], "float32") * 0.5, 0.0), name="scaled")
    kernel = lw.build(chosen.schedule(call.attrs, computed, (scaled,), HOST), [*tensors, scaled], target=HOST)
    for rows in (1, 7, 40):
        a, b, found = extremes((rows, 30), "uint8"), extremes((30, 20), "int8"), np.empty((rows, 20), np.float32)
        kernel(a, b, found)
        np.testing.assert_array_equal(found, np.maximum(product(a, b) * np.float32(0.5), 0))


@pytest.mark.parametrize("transposed", [False, True])
def test_decisions_change_the_tile_but_not_the_sums(ops, transposed):
    a, b = extremes((10, 33), "int8"), extremes((33, 40), "int8")
    weight = np.ascontiguousarray(b.T) if transposed else b
    call = dense(ops.var(a.shape, "int8"), ops.var(weight.shape, "int8"), transposed=transposed)
    chosen = next(i for i in offered(call, HOST) if i.name == "matmul.bytes")
    with pytest.raises(lw.ScheduleError, match=r"matmul\.bytes has no decision 'lanes'"):
        chosen.decisions(call, HOST, {"lanes": 3})
    for decided in ({"rows": 3, "vectors": 1, "pack": False}, {"rows": 4, "vectors": 2, "pack": True}):
        configured = chosen.configured(decided)
        tensors = tuple(te.placeholder(x.type.shape, "int8") for x in call.args)
        computed = configured.computed(call.op.name, call.attrs, tensors, call.type)
        schedule = configured.scheduled(call.op.name, call.attrs, computed, outputs_of(computed), HOST)
        found = np.empty((10, 40), np.int32)
        lw.build(schedule, [*tensors, *outputs_of(computed)], target=HOST)(a, weight, found)
        np.testing.assert_array_equal(found, product(a, b))


@pytest.mark.parametrize(
    ("target", "instruction"),
    [("x86-64", "pmaddwd"), ("x86-64-v3", "vpmaddwd"), ("alderlake", "vpdpbusd")],
)
def test_the_best_exact_instruction_is_used(ops, target, instruction):
    resolved = lw.resolve_target(target)
    call = matmul(ops.var((20, 64), "int8"), ops.var((64, 48), "int8"))
    chosen, tensors, computed = ops.implement(call, resolved)
    (out,) = outputs_of(computed)
    kernel = lw.build(chosen.schedule(call.attrs, computed, (out,), resolved), [*tensors, out], target=resolved)
    assert instruction in kernel.assembly
    assert "pmaddubsw" not in kernel.assembly  # it saturates


@pytest.mark.parametrize("signs", SIGNS, ids="-".join)
@pytest.mark.parametrize("make", [matmul, dense, lambda x, w: dense(x, w, transposed=False)], ids=["kn", "nk", "dense"])
def test_constants_are_packed_in_words_when_the_model_is_compiled(make, signs):
    a, w = extremes((37, 66), signs[0]), extremes((100, 66) if make is dense else (66, 100), signs[1])
    library = lw.compile(lw.Function([x := lw.var("x", a.shape, signs[0])], make(x, Constant(w))))
    assert [f.name for f in library.functions] == ["fused_nn_packed_byte_matmul"]
    (found,) = lw.Engine(library)([a])
    np.testing.assert_array_equal(found, product(a, w.T if make is dense else w))


def test_panels_of_words_hold_what_they_say(ops):
    with pytest.raises(TypeInferenceError, match="40 columns do not fill 2 panels of 16"):
        lw.nn.packed_byte_matmul(ops.var((3, 5), "int8"), ops.var((2, 2, 16), "int32"), columns=40, dtype="int8")
    with pytest.raises(TypeInferenceError, match="differ in extent: 2 of words of a and 3 of panels"):
        lw.nn.packed_byte_matmul(ops.var((3, 5), "int8"), ops.var((2, 3, 16), "int32"), columns=32, dtype="int8")
    with pytest.raises(TypeInferenceError, match="in words of int32, found"):
        lw.nn.packed_byte_matmul(ops.var((3, 5), "int8"), ops.var((2, 2, 16), "int32"), columns=32, dtype="int32")
    with pytest.raises(TypeInferenceError, match="a needs two axes at least, and panels has three"):
        lw.nn.packed_byte_matmul(ops.var((5,), "int8"), ops.var((2, 2, 16), "int32"), columns=32, dtype="int8")


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "name"),
    [(40, 64, 64, "words"), (1, 512, 512, "words"), (128, 512, 512, "tiles"), (197, 192, 768, "tiles")],
)
def test_tiles_serve_where_they_gain_more_than_it_takes_to_begin(ops, rows, terms, columns, name):
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids")
    panels = ops.var((columns // 32, terms // 4, 32), "int32")
    call = nn.packed_byte_matmul(ops.var((rows, terms), "uint8"), panels, columns, "int8")
    assert ops.implement(call, target)[0].name == f"packed_byte_matmul.{name}"
