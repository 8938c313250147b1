"""Convolutions of 8-bit integers against numpy in float64, which is exact here: signs, windows, groups, layouts."""

from dataclasses import replace

import numpy as np
import pytest
import windows
from implementation_tables import steps_of
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.graph.node import Constant
from loopwright.ops import nn
from loopwright.ops.definition.implementation import outputs_of

HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
SIGNS = [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")]
rng = np.random.default_rng(0)


def extremes(shape, kind):
    limits = np.iinfo(kind)
    return rng.choice([limits.min, limits.max, limits.min + 1, 1, 0, limits.max - 1], shape).astype(kind)


CASES = {  # x, weight, strides, padding, dilation, groups, the implementation
    "window": ((1, 8, 9, 10), (6, 8, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, "conv.bytes_shifted"),
    "odd channels": ((2, 5, 7, 6), (4, 5, 3, 2), (2, 1), (0, 1, 1, 0), (1, 2), 1, "conv.bytes_shifted"),
    "pointwise": ((1, 18, 5, 7), (7, 18, 1, 1), (1, 1), (0,) * 4, (1, 1), 1, "conv.bytes_pointwise"),
    "strided pointwise": ((1, 16, 6, 7), (8, 16, 1, 1), (2, 2), (0,) * 4, (1, 1), 1, "conv.bytes_pointwise"),
    "one position": ((2, 160, 1, 1), (32, 160, 1, 1), (1, 1), (0,) * 4, (1, 1), 1, "conv.bytes_dots"),
    "one position, parts of words": ((1, 219, 1, 1), (21, 219, 1, 1), (1, 1), (0,) * 4, (1, 1), 1, "conv.bytes_dots"),
    "one position, groups": ((1, 320, 1, 1), (38, 160, 1, 1), (1, 1), (0,) * 4, (1, 1), 2, "conv.bytes_dots"),
    "one position of several": ((1, 144, 2, 3), (16, 144, 1, 1), (2, 3), (0,) * 4, (1, 1), 1, "conv.bytes_dots"),
    "one position of few": ((1, 24, 1, 1), (16, 24, 1, 1), (1, 1), (0,) * 4, (1, 1), 1, "conv.bytes_pointwise"),
    "groups": ((1, 12, 6, 6), (4, 6, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2, "conv.bytes_shifted"),
    "depthwise": ((1, 6, 6, 9), (6, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 6, "conv.bytes_rows"),
    "depthwise, short rows": ((1, 6, 7, 7), (6, 1, 5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 6, "conv.bytes_rows"),
    "depthwise strided": ((2, 3, 9, 11), (6, 1, 5, 5), (2, 2), (2, 2, 2, 2), (1, 1), 3, "conv.bytes_rows"),
    "depthwise dilated": ((1, 5, 9, 12), (5, 1, 3, 3), (1, 1), (0, 0, 0, 0), (2, 3), 5, "conv.bytes_rows"),
    "depthwise, large window": ((2, 4, 13, 15), (8, 1, 7, 7), (1, 1), (3, 3, 3, 3), (1, 1), 4, "conv.bytes_rows"),
    "depthwise, far apart": ((1, 4, 19, 21), (4, 1, 3, 3), (3, 5), (2, 1, 0, 3), (2, 3), 4, "conv.bytes_rows"),
    "depthwise, many columns": ((1, 2, 5, 140), (2, 1, 3, 5), (1, 2), (1, 2, 1, 2), (1, 1), 2, "conv.bytes_rows"),
    "depthwise, a row": ((2, 5, 37), (5, 1, 4), (2,), (1, 2), (1,), 5, "conv.bytes_rows"),
    "depthwise, three axes": ((1, 3, 4, 5, 9), (3, 1, 2, 3, 3), (1, 2, 1), (1,) * 6, (1,) * 3, 3, "conv.bytes_rows"),
    "two channels": ((1, 2, 8, 10), (5, 2, 4, 7), (2, 1), (1, 3, 2, 3), (1, 1), 1, "conv.bytes_taps"),
    "first layer": ((2, 3, 16, 23), (6, 3, 5, 7), (2, 2), (2, 3, 2, 3), (1, 1), 1, "conv.bytes_taps"),
    "five channels": ((1, 5, 9, 7), (3, 5, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, "conv.bytes_taps"),
    "strided columns": ((1, 8, 9, 11), (6, 8, 3, 1), (1, 2), (0,) * 4, (1, 1), 1, "conv.bytes_shifted"),
    "strided, a word in a row": ((1, 2, 9, 11), (3, 2, 3, 2), (2, 2), (0,) * 4, (1, 1), 1, "conv.bytes_taps"),
    "patches": ((1, 3, 16, 24), (5, 3, 8, 8), (8, 8), (0,) * 4, (1, 1), 1, "conv.bytes_shifted"),
    "dilated and strided": ((1, 8, 16, 15), (6, 8, 3, 3), (2, 3), (0,) * 4, (2, 2), 1, "conv.bytes_shifted"),
    "one axis of one channel": ((2, 1, 40), (3, 1, 9), (3,), (4, 2), (1,), 1, "conv.bytes_taps"),
    "one axis": ((2, 7, 20), (3, 7, 5), (2,), (2, 1), (1,), 1, "conv.bytes_shifted"),
    "three axes": ((1, 4, 4, 5, 6), (3, 4, 2, 3, 2), (1,) * 3, (1, 1, 0, 0, 1, 1), (1,) * 3, 1, "conv.bytes_shifted"),
}


def served_by(case, target=HOST):
    """What serves a case: depthwise convolutions are of words of taps only where a core multiplies bytes."""
    *_, name = CASES[case]
    return "conv.bytes_floats" if name == "conv.bytes_rows" and not target.multiplies_bytes else name


OPEN = {"conv.bytes_shifted": "conv.bytes_open", "conv.bytes_pointwise": "conv.bytes_open_pointwise"}
OPEN["conv.bytes_dots"] = OPEN["conv.bytes_pointwise"]
"""What serves images of open extents in place of an implementation."""
ENOUGH_CHANNELS = 3
"""In a group, for words of channels in images of open extents."""


def expected(x, w, strides, padding, dilation, groups):
    return windows.conv(x, w, strides, padding, dilation, groups).astype(np.int64).astype(np.int32)


def made(ops, x, w, strides, padding, dilation, groups, **options):
    kinds = (str(x.dtype), str(w.dtype))
    variables = [ops.var(a.shape, kind, name) for a, kind, name in zip((x, w), kinds, "xw", strict=True)]
    call = nn.conv(*variables, strides=strides, padding=padding, dilation=dilation, groups=groups, **options)
    return call, dict(zip(variables, (x, w), strict=True))


@pytest.mark.parametrize(("case", "signs"), [(c, SIGNS[n % 4]) for n, c in enumerate([*CASES, "window", "depthwise"])])
def test_convolutions_of_bytes_are_exact(ops, case, signs):
    *shapes, strides, padding, dilation, groups, _ = CASES[case]
    x, w = (extremes(s, kind) for s, kind in zip(shapes, signs, strict=True))
    call, feeds = made(ops, x, w, strides, padding, dilation, groups)
    assert ops.implement(call)[0].name == served_by(case)
    found = ops.evaluate(call, feeds, native=True)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected(x, w, strides, padding, dilation, groups))


@pytest.mark.parametrize("signs", SIGNS, ids="-".join)
@pytest.mark.parametrize("window", [(8, 8), (8, 9)])
def test_sums_in_floats_are_exact_up_to_the_largest_and_beyond_are_of_words(ops, window, signs):
    target = lw.resolve_target("x86-64")
    low, high = (np.iinfo(kind) for kind in signs)
    for x, w in ((low.max, high.max), (low.min, high.min), (low.max, high.min)):
        a, b = np.full((1, 3, 11, 12), x, signs[0]), np.full((3, 1, *window), w, signs[1])
        call, feeds = made(ops, a, b, (1, 1), (1, 1, 1, 1), (1, 1), 3)
        implementation = ops.implement(call, target)[0].name
        assert implementation == ("conv.bytes_floats" if window == (8, 8) else "conv.bytes_taps")
        library = lw.compile(lw.Function(list(feeds), call), target, jobs=1)
        (found,) = lw.Engine(library)(list(feeds.values()))
        np.testing.assert_array_equal(found, expected(a, b, (1, 1), (1, 1, 1, 1), (1, 1), 3))


@pytest.mark.parametrize("signs", SIGNS, ids="-".join)
def test_pads_are_zeros_whatever_the_signs(ops, signs):
    x, w = np.full((1, 4, 2, 3), np.iinfo(signs[0]).max, signs[0]), extremes((2, 4, 3, 3), signs[1])
    call, feeds = made(ops, x, w, (1, 1), (2, 2, 2, 2), (1, 1), 1)
    for native in (False, True):
        found = ops.evaluate(call, feeds, native=native)
        np.testing.assert_array_equal(found, expected(x, w, (1, 1), (2, 2, 2, 2), (1, 1), 1))


@pytest.mark.parametrize("signs", SIGNS[:2], ids="-".join)
def test_weights_in_words_are_read_as_they_lie(ops, signs):
    x, w = extremes((1, 8, 6, 7), signs[0]), extremes((5, 8, 3, 3), signs[1])
    packed = windows.rearranged(w, "OIHW", "OHWI4i")
    call, feeds = made(ops, x, packed, (1, 1), (1, 1, 1, 1), (1, 1), 1, kernel_layout="OHWI4i")
    assert ops.implement(call)[0].name == "conv.bytes_shifted"
    found = ops.evaluate(call, feeds, native=True)
    np.testing.assert_array_equal(found, expected(x, w, (1, 1), (1, 1, 1, 1), (1, 1), 1))


def test_a_constant_weight_is_laid_out_in_words_once(ops):
    x, w = ops.var((1, 8, 6, 7), "uint8"), extremes((5, 8, 3, 3), "int8")
    call = nn.conv2d(x, Constant(w), padding=1)
    assert call.attrs.kernel_layout == "OHWI4i"
    a = extremes((1, 8, 6, 7), "uint8")
    found = ops.evaluate(call, {x: a}, native=True)
    np.testing.assert_array_equal(found, expected(a, w, (1, 1), (1, 1, 1, 1), (1, 1), 1))
    assert nn.conv2d(ops.var((1, 6, 6, 7), "uint8"), Constant(w[:, :6])).attrs.kernel_layout == "OIHW"


@pytest.mark.parametrize("shapes", [((1, 8, 9, 10), (6, 8, 3, 3)), ((1, 144, 1, 1), (32, 144, 1, 1))])
@pytest.mark.parametrize("target", RUNNABLE)
def test_every_target_gives_the_same_and_the_best_exact_instruction(ops, target, shapes):
    resolved = lw.resolve_target(target)
    x, w = (extremes(shape, "int8") for shape in shapes)
    padding = (w.shape[-1] // 2,) * 4
    call, _ = made(ops, x, w, (1, 1), padding, (1, 1), 1)
    chosen, tensors, computed = ops.implement(call, resolved)
    (out,) = outputs_of(computed)
    schedule = chosen.schedule(call.attrs, computed, (out,), resolved)
    kernel = lw.build(schedule, [*tensors, out], target=resolved, precision="strict")
    found = np.empty([int(e) for e in out.shape], np.int32)
    kernel(x, w, found)
    np.testing.assert_array_equal(found, expected(x, w, (1, 1), padding, (1, 1), 1))
    assert ("vpdpbusd" if resolved.multiplies_bytes else "pmaddwd") in kernel.assembly


TILES = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids"


@pytest.mark.parametrize(
    ("filters", "window", "padding", "strides", "signs"),
    [
        (16, (2, 3), (0, 1, 1, 1), (1, 1), ("uint8", "int8")),
        (40, (1, 1), (0, 0, 0, 0), (1, 1), ("int8", "int8")),
        (16, (3, 2), (1, 0, 1, 0), (2, 1), ("uint8", "uint8")),
    ],
    ids=str,
)
def test_open_images_are_summed_in_tiles(ops, filters, window, padding, strides, signs):
    height, width = te.var("height"), te.var("width")
    w = extremes((filters, 48, *window), signs[1])
    words = windows.rearranged(w, "OIHW", "OHWI4i")
    x = ops.var((1, 48, height, width), signs[0])
    weight = ops.var(words.shape, signs[1])
    call = nn.conv2d(x, weight, strides=strides, padding=padding, kernel_layout="OHWI4i")
    target = lw.resolve_target(TILES)
    chosen, tensors, computed = ops.implement(call, target)
    assert chosen.name == "conv.bytes_open_tiles"
    (out,) = outputs_of(computed)
    schedule = chosen.schedule(call.attrs, computed, (out,), target)
    least, most = steps_of(chosen.name)
    assert least <= len(schedule.trace) <= most
    program = lw.interpret(lw.lower(schedule, [*tensors, out], target=target))
    for size in ((3, 2), (2, 11)):
        a = extremes((1, 48, *size), signs[0])
        wanted = expected(a, w, strides, padding, (1, 1), 1)
        found = np.empty(wanted.shape, np.int32)
        program(a, words, found)
        np.testing.assert_array_equal(found, wanted)


def test_other_layouts_are_served_too(ops):
    x, w = extremes((1, 5, 6, 4), "uint8"), extremes((3, 3, 4, 2), "int8")
    call, feeds = made(ops, x, w, (1, 1), (0,) * 4, (1, 1), 1, data_layout="NHWC", kernel_layout="HWIO")
    wanted = windows.conv_in(x, w, (1, 1), (0,) * 4, (1, 1), 1, ("NHWC", "HWIO", "NHWC"))
    np.testing.assert_array_equal(ops.evaluate(call, feeds, native=True), wanted)


def test_an_open_batch_is_served_as_a_known_one_and_tiles_may_be_decided(ops):
    batch = te.var("batch")
    w = extremes((6, 8, 3, 3), "int8")
    call = nn.conv2d(ops.var((batch, 8, 5, 6), "int8"), ops.var(w.shape, "int8"), padding=1)
    chosen, tensors, _ = ops.implement(call)
    assert chosen.name == "conv.bytes_shifted"
    configured = chosen.configured({"rows": 2, "vectors": 1})
    computed = configured.computed(call.op.name, call.attrs, tensors, call.type)
    (out,) = outputs_of(computed)
    schedule = configured.scheduled(call.op.name, call.attrs, computed, (out,), HOST)
    assert [(d.name, d.value) for d in schedule.decisions] == [("rows", 2), ("vectors", 1)]
    kernel = lw.build(schedule, [*tensors, out], target=HOST)
    for count in (1, 3):
        x, found = extremes((count, 8, 5, 6), "int8"), np.empty((count, 6, 5, 6), np.int32)
        kernel(x, w, found)
        np.testing.assert_array_equal(found, expected(x, w, (1, 1), (1, 1, 1, 1), (1, 1), 1))


def without_tiles(target):
    """A target whose words are multiplied in vectors, also where it has registers for more."""
    resolved = lw.resolve_target(target)
    return replace(resolved, features=resolved.features - {"amx-int8"})


@each_value(name=CASES, constant=[False, True], target=RUNNABLE)
def test_words_serve_images_of_open_extents(name, constant, target):
    """Words of a constant weight lie ready where its channels fill them. Neighbouring cases have other signs."""
    signs = SIGNS[list(CASES).index(name) % len(SIGNS)]
    shape, weights, strides, padding, dilation, groups, _ = CASES[name]
    target = without_tiles(target)
    served = served_by(name, target)
    w = extremes(weights, signs[1])
    rank = len(strides)
    x = lw.var("x", (te.var("n"), shape[1], *(te.var(f"d{k}") for k in range(rank))), signs[0])
    right = lw.const(w) if constant else lw.var("w", weights, signs[1])
    options = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    body = getattr(nn, f"conv{rank}d")(x, right, **options)
    library = lw.compile(lw.Function([x] if constant else [x, right], body), target, jobs=1)
    chosen = {c.implementation for f in library.functions for c in f.choices if c.call.startswith("nn.conv")}
    of_channels = "conv.bytes_open" if weights[1] >= ENOUGH_CHANNELS else served
    assert chosen - {"conv.bytes_short_rows"} == {OPEN.get(served, of_channels)}
    assert ("conv.bytes_short_rows" in chosen) == (served == "conv.bytes_rows")
    engine = lw.Engine(library)
    for more in (0, 1, 2, 20):
        data = extremes((2, shape[1], *(extent + more for extent in shape[2:])), signs[0])
        found = engine([data] if constant else [data, w])[0]
        np.testing.assert_array_equal(found, expected(data, w, strides, padding, dilation, groups))
