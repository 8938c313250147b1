"""attention of a few queries, as decoders have it: against float64 numpy, alone and in a model of open extents."""

import numpy as np
import pytest
import test_attention as attention_tests
from pairs import each_value
from test_attention import bools, check, floats, oracle

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings

LENGTHS = (1, 2, 15, 16, 17, 33, 200)
LAYOUTS = {
    "BHSD": ({}, lambda x: x, lambda x: x),
    "BSHD": ({"layout": "BSHD"}, lambda x: x.swapaxes(1, 2), lambda x: x.swapaxes(1, 2)),
    "cache": ({"key_layout": "SBHD"}, lambda x: x, lambda x: x.transpose(2, 0, 1, 3)),
}


@pytest.fixture(autouse=True)
def same_numbers_in_any_order():
    attention_tests.rng.bit_generator.state = np.random.default_rng(0).bit_generator.state


def chosen(call, precision="standard"):
    settings = CompileSettings(lw.resolve_target("x86-64-v3"), CodegenOptions(precision))
    return select_implementation(call, settings).chosen.name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("heads", "shared"), [(4, 4), (8, 2), (6, 1), (5, 1)])
def test_heads_may_share_keys(layout, heads, shared):
    attrs, of_queries, of_keys = LAYOUTS[layout]
    query = np.ascontiguousarray(of_queries(floats(2, heads, 3, 32)))
    key, value = (np.ascontiguousarray(of_keys(floats(2, shared, 37, size))) for size in (32, 48))
    call = lw.nn.attention(*(lw.var(f"x{k}", x.shape) for k, x in enumerate((query, key, value))), **attrs)
    assert chosen(call) == "attention.few_queries"
    assert chosen(call, "strict") != "attention.few_queries"  # which adds lanes, in another order than the definition
    check(query, key, value, **attrs)


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "size", "few"),
    [
        (4, 1, 256, 32, True), (4, 4, 256, 32, True), (4, 8, 256, 32, True), (4, 16, 256, 32, False),
        (4, 8, 32, 32, True), (12, 4, 256, 64, True), (12, 16, 256, 64, False), (8, 24, 256, 128, False),
    ],
)  # fmt: skip
def test_some_queries_are_a_block_where_keys_would_come_from_the_second_cache_for_each(heads, queries, keys, size, few):
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=cascadelake")
    shapes = [(1, heads, count, size) for count in (queries, keys, keys)]
    call = lw.nn.attention(*(lw.var(f"x{k}", shape) for k, shape in enumerate(shapes)))
    name = select_implementation(call, CompileSettings(target)).chosen.name
    assert name == ("attention.few_queries" if few else "attention.blocks")


@each_value(size=[4, 8, 20, 40, 64, 72, 128], target=["x86-64", "x86-64-v3", "native"])
def test_sizes_of_heads(size, target):
    check(floats(1, 4, 1, size), floats(1, 2, 50, size), floats(1, 2, 50, size), target=target)


@pytest.mark.parametrize("mask", ["numbers", "bools", "of a key", "causal"])
def test_any_number_of_keys_under_masks(mask):
    batch, keys = lw.te.var("b"), lw.te.var("keys")
    shapes = [(batch, 4, 2, 16), (batch, 2, keys, 16), (batch, 2, keys, 16)]
    for count in LENGTHS:
        given = {"numbers": floats(1, 1, 2, count), "bools": bools(1, 1, 2, count), "of a key": floats(3, 1, 1, count)}
        value = given.get(mask)
        more = [] if value is None else [(batch if mask == "of a key" else 1, 1, value.shape[2], keys)]
        check(
            floats(3, 4, 2, 16),
            *(floats(3, 2, count, 16) for _ in range(2)),
            value,
            shapes=[*shapes, *more],
            causal=mask == "causal",
        )


@pytest.mark.parametrize(("kind", "tolerance"), [("float64", 1e-14), ("float16", 2e-3)])
def test_other_types(kind, tolerance):
    arrays = [floats(1, heads, count, 32).astype(kind) for heads, count in ((4, 2), (2, 45), (2, 45))]
    check(*arrays, tolerance=tolerance)


def test_hostile_scores():
    query, key, value = 1e4 * floats(1, 2, 2, 16), floats(1, 2, 40, 16), floats(1, 2, 40, 16)
    check(query, key, value, tolerance=1e-3)
    hidden = np.zeros((2, 40), np.float32)
    hidden[0] = -np.inf
    hidden[1, 3:] = np.finfo(np.float32).min
    found = attention_tests.run(query, key, value, hidden)
    assert not found[0, :, 0].any()
    np.testing.assert_allclose(found, oracle(query, key, value, hidden), rtol=1e-3, atol=1e-3)


def test_a_decoder_of_open_queries_has_a_kernel_for_few():
    """One compilation for a prompt and for the tokens after it."""
    batch, queries, keys = map(lw.te.var, ("batch", "queries", "keys"))
    shapes = [(batch, 8, queries, 32), (batch, 2, keys, 32), (batch, 2, keys, 32)]
    args = [lw.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    library = lw.compile(lw.Function(args, lw.nn.attention(*args)), "native")
    for count in (1, 2, 8, 9, 16, 17, 40):
        arrays = [floats(2, 8, count, 32), floats(2, 2, 50, 32), floats(2, 2, 50, 32)]
        (found,) = lw.Engine(library, threads=2)(arrays)
        np.testing.assert_allclose(found, oracle(*arrays), rtol=1e-5, atol=1e-5)
    assert "attention.few_queries" in {choice.implementation for choice in library.functions[0].choices}


def test_what_follows_is_fused():
    query, key, value = floats(1, 4, 1, 16), floats(1, 2, 33, 16), floats(1, 2, 33, 16)
    found = attention_tests.run(query, key, value, then=lw.nn.relu)
    np.testing.assert_allclose(found, np.maximum(oracle(query, key, value), 0), rtol=1e-5, atol=1e-5)
