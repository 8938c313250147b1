"""attention: types, misuse, which implementation serves, and values against float64 numpy."""

import ml_dtypes
import numpy as np
import pytest
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import dtype
from loopwright.base.errors import TypeInferenceError
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.types import tensor_type
from loopwright.ops.families.attention.attention import attention

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order():
    """Each test draws the same numbers, whichever ran before it."""
    rng.bit_generator.state = np.random.default_rng(0).bit_generator.state


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def bools(*shape):
    return rng.random(shape) < 0.6


def oracle(query, key, value, mask=None, scale=None, causal=False, layout="BHSD", key_layout=""):
    """The definition in float64, but that scores under a mask are rounded as its type rounds them."""
    kind = query.dtype
    query, key, value = (x.astype(np.float64) for x in (query, key, value))
    if layout == "BSHD":
        query = query.swapaxes(1, 2)
        key, value = (x if key_layout else x.swapaxes(1, 2) for x in (key, value))
    if key_layout == "SBHD":
        key, value = (x.transpose(1, 2, 0, 3) for x in (key, value))
    group = query.shape[1] // key.shape[1]
    key, value = (np.repeat(x, group, axis=1) for x in (key, value))
    scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else (scores + mask).astype(kind)
        scores = scores.astype(np.float64)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    peak = np.maximum(scores.max(-1, keepdims=True), np.finfo(np.float64).min)
    weights = np.exp(scores - peak)
    total = weights.sum(-1, keepdims=True)
    result = weights @ value / np.where(total == 0, 1, total)
    return result.swapaxes(1, 2) if layout == "BSHD" else result


def run(query, key, value, mask=None, *, shapes=None, target="native", precision="standard", then=lambda x: x, **attrs):
    """The compiled model of one call; ``shapes`` are those of the variables, where they are symbolic."""
    arrays = [query, key, value, *([] if mask is None else [mask])]
    shapes = shapes or [x.shape for x in arrays]
    args = [lw.var(f"x{k}", shape, x.dtype.name) for k, (x, shape) in enumerate(zip(arrays, shapes, strict=True))]
    library = lw.compile(lw.Function(args, then(attention(*args, **attrs))), target=target, precision=precision)
    (found,) = lw.Engine(library, threads=2)(arrays)
    return found


def check(query, key, value, mask=None, tolerance=2e-6, **options):
    attrs = {name: options[name] for name in ("scale", "causal", "layout", "key_layout") if name in options}
    wanted = oracle(query, key, value, mask, **attrs)
    found = run(query, key, value, mask, **options)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * max(1, np.abs(value).max()))


CASES = {
    "odd sizes": ((2, 1, 37, 20), (2, 1, 83, 20), 9, None, {}),
    "one query": ((1, 3, 1, 8), (1, 3, 50, 8), 8, None, {}),
    "fewer heads of keys": ((1, 6, 20, 16), (1, 2, 33, 16), 16, None, {"scale": 0.5}),
    "a mask for all queries": ((2, 2, 19, 16), (2, 2, 40, 16), 16, floats(2, 1, 1, 40), {}),
    "a mask for each query": ((1, 2, 19, 16), (1, 2, 40, 16), 16, floats(19, 40), {"causal": True}),
    "a cache": ((2, 3, 30, 16), (45, 2, 3, 16), 24, None, {"key_layout": "SBHD"}),
    "a cache, and heads beside their size": (
        (2, 30, 6, 16),
        (45, 2, 3, 16),
        24,
        None,
        {"layout": "BSHD", "key_layout": "SBHD"},
    ),
    "heads beside their size": ((2, 30, 3, 16), (2, 45, 3, 16), 24, None, {"layout": "BSHD"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys(name):
    query, key, size, mask, attrs = CASES[name]
    check(floats(*query), floats(*key), floats(*key[:3], size), mask, **attrs)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_targets_with_other_vectors_give_numpys_values(target):
    check(floats(1, 2, 20, 8), floats(1, 2, 40, 8), floats(1, 2, 40, 8), bools(20, 40), target=target)


def test_strict_precision_and_double_precision_have_it_too():
    arrays = [floats(1, 2, length, 8).astype(np.float64) for length in (21, 40, 40)]
    check(*arrays, precision="strict", tolerance=1e-14)


def test_scores_that_exponentials_would_overflow_on_are_no_trouble():
    query, key = 60 * floats(1, 1, 33, 16), 60 * floats(1, 1, 50, 16)
    check(query, key, floats(1, 1, 50, 16), tolerance=1e-3)  # scores of 10⁴ are exact to 10⁻³


def test_queries_that_see_no_key_give_zeros_and_others_are_as_if_alone():
    query, key, value = floats(1, 1, 20, 8), floats(1, 1, 30, 8), floats(1, 1, 30, 8)
    hidden = np.zeros((20, 30), np.float32)
    hidden[3:7] = -np.inf
    found = run(query, key, value, hidden)
    assert (found[0, 0, 3:7] == 0).all()
    np.testing.assert_allclose(found, oracle(query, key, value, hidden), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("attrs", [{}, {"causal": True}, {"layout": "BSHD"}], ids=["plain", "causal", "BSHD"])
def test_queries_whose_keys_a_finite_mask_covers_get_the_mean_of_the_values(kind, attrs):
    """Scores under the lowest number, which models add to hide keys, are all the same."""
    array_type = dtype(kind).to_numpy()
    shape = (1, 20, 4, 8) if "layout" in attrs else (1, 4, 20, 8)
    query, key, value = (floats(*shape).astype(array_type) for _ in range(3))
    mask = np.zeros((20, 20), array_type)
    mask[3:7] = ml_dtypes.finfo(array_type).min
    found = run(query, key, value, mask, target="x86-64-v3", **attrs)
    wanted = oracle(query, key, value, mask.astype(np.float64), **attrs)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=0.02, atol=0.02)
    if not attrs:
        mean = value.astype(np.float64).mean(axis=2, keepdims=True)
        np.testing.assert_allclose(found[:, :, 3:7].astype(np.float64), np.tile(mean, (1, 1, 4, 1)), atol=0.01)


@pytest.mark.parametrize("shape", [(1, 1, 1, 30), (20, 30), (1, 1, 20, 30)])
@pytest.mark.parametrize("lowest", [-3.4e38, -2.5e38, -1e38, 2.5e38])
def test_masks_at_the_ends_of_the_range_do_not_overflow(lowest, shape):
    mask = np.full(shape, lowest, np.float32)
    check(floats(1, 4, 20, 8), floats(1, 2, 30, 8), floats(1, 2, 30, 8), mask, target="x86-64-v3", tolerance=1e-5)
    mask[..., ::3] = 0
    check(floats(1, 4, 20, 8), floats(1, 2, 30, 8), floats(1, 2, 30, 8), mask, target="x86-64-v3", tolerance=1e-5)


@pytest.mark.parametrize("fill", [1e10, 1e18, 1e-30, 1e-40])
def test_outliers_among_queries_give_numpys_values(fill):
    query, key, value = floats(1, 2, 20, 8), floats(1, 2, 30, 8), floats(1, 2, 30, 8)
    signs = np.sign(query[0, 0, 5])  # of both: a score whose terms cancel is but what was rounded of them
    query[0, 0, 5], key[0, 0, 7] = fill * signs, min(fill, 1e10) * signs
    found = run(query, key, value, target="x86-64-v3")
    wanted = oracle(query, key, value)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_nan_spoils_the_queries_that_see_it_alone():
    query, key, value = floats(1, 1, 4, 8), floats(1, 1, 40, 8), floats(1, 1, 40, 8)
    query[0, 0, 2, 5] = np.nan
    found = run(query, key, value)
    assert np.isnan(found[0, 0, 2]).all()
    assert np.isfinite(found[0, 0, [0, 1, 3]]).all()


def test_symbolic_batches_and_sequences_are_served():
    b, s, t = te.var("b"), te.var("s"), te.var("t")
    shapes = [(b, 2, s, 8), (b, 2, t, 8), (b, 2, t, 8)]
    call = attention(*(lw.var(name, shape, "float32") for name, shape in zip("qkv", shapes, strict=True)))
    assert call.type is tensor_type((b, 2, s, 8), "float32")
    check(floats(2, 2, 37, 8), floats(2, 2, 300, 8), floats(2, 2, 300, 8), shapes=shapes)


def test_elementwise_operators_are_computed_with_it():
    query, key, value = floats(1, 2, 20, 16), floats(1, 2, 30, 16), floats(1, 2, 30, 16)
    found = run(query, key, value, then=lambda x: lw.nn.tanh(lw.nn.negative(x)))
    np.testing.assert_allclose(found, np.tanh(-oracle(query, key, value)), rtol=1e-5, atol=1e-6)


def test_results_do_not_depend_on_threads():
    query, key, value = floats(1, 2, 100, 16), floats(1, 2, 90, 16), floats(1, 2, 90, 16)
    args = [lw.var(f"x{k}", x.shape, "float32") for k, x in enumerate((query, key, value))]
    library = lw.compile(lw.Function(args, attention(*args)))
    one, two = (lw.Engine(library, threads=n)([query, key, value])[0] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(ops, kind, causal):
    call = attention(*(ops.var((1, 2, 20, 16), kind) for _ in range(3)), causal=causal)
    assert (
        select_implementation(call, CompileSettings(lw.resolve_target("x86-64-v3"))).chosen.name == "attention.blocks"
    )
    array_type = dtype(kind).to_numpy()
    query, key, value = (floats(1, 2, 20, 16).astype(array_type) for _ in range(3))
    found = run(query, key, value, causal=causal, target="x86-64-v3")
    wanted = oracle(query, key, value, causal=causal)
    ulp = np.spacing(np.abs(wanted).astype(array_type)).astype(np.float64)
    assert (np.abs(found.astype(np.float64) - wanted) <= 0.51 * ulp + 1e-7).all()


SHAPE = (2, 4, 6, 8)


@pytest.mark.parametrize(
    ("shapes", "kinds", "attrs", "message"),
    [
        ([SHAPE, SHAPE, (2, 4, 6)], "float32", {}, "value must have 4 axes, BHSD"),
        ([SHAPE, (1, 4, 6, 8), (1, 4, 6, 8)], "float32", {}, "query has 2 batches, but key has 1"),
        ([SHAPE, (2, 4, 6, 9), SHAPE], "float32", {}, "query has 8 sizes of head, but key has 9"),
        ([SHAPE, (2, 3, 6, 8), (2, 3, 6, 8)], "float32", {}, "must be a multiple of those of key, found 4 and 3"),
        ([SHAPE, (2, 4, 7, 8), SHAPE], "float32", {}, "key has 7 positions, but value has 6"),
        ([SHAPE] * 3, "int32", {}, "must be of float, bfloat, found int32"),
        ([SHAPE] * 3, "float32", {"layout": "SBHD"}, "layout must be one of 'BHSD', 'BSHD'"),
        ([*[SHAPE] * 3, (6, 5)], "float32", {}, "mask must broadcast to the scores|do not broadcast"),
        ([*[SHAPE] * 3, (3, 2, 4, 6, 6)], "float32", {}, "mask must broadcast to the scores"),
        ([*[SHAPE] * 3, (6, 6)], "float32 float32 float32 int32", {}, "mask must be of bool, or of float32"),
        ([(2, 4, 6, te.var("d"))] * 3, "float32", {}, "size of heads is not known, so give scale"),
    ],
)  # fmt: skip
def test_misuse_is_told(ops, shapes, kinds, attrs, message):
    names = kinds.split() if " " in kinds else [kinds] * len(shapes)
    args = [ops.var(shape, kind) for shape, kind in zip(shapes, names, strict=True)]
    with pytest.raises(TypeInferenceError, match=message):
        attention(*args, **attrs)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_half_precision_keys_and_values_are_converted_before_they_are_broadcast(kind, layout):
    """A product that converts what it broadcasts does so for each block of queries, one number at a time."""
    shapes = [(1, 2, 40, 16)] * 3 if layout == "BHSD" else [(1, 40, 2, 16)] * 3
    target = lw.resolve_target("x86-64-v3")
    call = attention(*(lw.var(name, shape, kind) for name, shape in zip("qkv", shapes, strict=True)), layout=layout)
    chosen = select_implementation(call, CompileSettings(target)).chosen
    assert chosen.name == "attention.blocks"
    todo, seen = [chosen.compute(call.attrs, [te.placeholder(s, kind) for s in shapes], call.type)], set()
    sums = 0
    while todo:
        tensor = todo.pop()
        if tensor not in seen and tensor.op.inputs:
            seen.add(tensor)
            todo += tensor.op.inputs
            if tensor.op.reduce_axis:
                sums += 1
                assert {str(source.dtype) for source in tensor.op.inputs} == {"float32"}
    assert sums == 3


@each_value(kind=["float32", "float16"], has_mask=[False, True])
def test_two_implementations_serve_all_open_lengths_and_give_0_where_there_are_no_keys(kind, has_mask):
    queries, keys = te.var("queries"), te.var("keys")
    shapes = [(1, 2, queries, 24), (1, 2, keys, 24), (1, 2, keys, 20), (1, 2, queries, keys)][: 3 + has_mask]
    inputs = [lw.var(name, shape, kind) for name, shape in zip("qkvm", shapes, strict=False)]
    library = lw.compile(lw.Function(inputs, attention(*inputs)), jobs=1)
    chosen = [choice.implementation for f in library.functions for choice in f.choices]
    assert sorted(chosen) == ["attention.blocks", "attention.few_queries"]
    engine = lw.Engine(library)
    for n, m in ((40, 70), (3, 5), (1, 0), (100, 0), (0, 3)):
        given = [floats(*s).astype(kind) for s in ((1, 2, n, 24), (1, 2, m, 24), (1, 2, m, 20), (1, 2, n, m))]
        (found,) = engine(given[: 3 + has_mask])
        wanted = oracle(*given[: 3 + has_mask]) if m else np.zeros((1, 2, n, 20))
        np.testing.assert_allclose(found, wanted, atol=3e-3 if kind == "float16" else 2e-6)
