"""Pools: types, misuse, values against slow numpy; auto_pad and ceil_mode as in onnx."""

import numpy as np
import pytest
import windows
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import each_value

import loopwright as lw
from loopwright.base.errors import TypeInferenceError
from loopwright.graph.types import tensor_type
from loopwright.ir.constants import const_int
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify
from loopwright.ops.families.global_pool import global_avg_pool, global_lp_pool, global_max_pool
from loopwright.ops.families.pool import avg_pool, lp_pool, max_pool, max_pool_with_indices
from loopwright.ops.families.pool_windows import PoolAttrs, taps_of
from loopwright.te import var as dimension

rng = np.random.default_rng(0)
# x, window, strides, padding, dilations, ceil_mode
CASES = {
    "1d": ((2, 3, 11), (3,), (1,), (0, 0), (1,), False),
    "2x2": ((1, 3, 8, 8), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False),
    "3x3 padded": ((1, 2, 9, 18), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False),
    "uneven": ((1, 2, 9, 10), (3, 4), (2, 3), (0, 2, 1, 3), (1, 1), False),
    "ceil": ((1, 2, 8, 8), (3, 3), (2, 2), (0, 0, 0, 0), (1, 1), True),
    "ceil, the last window would begin in the padding": ((1, 1, 4, 5), (2, 2), (3, 3), (1, 1, 1, 1), (1, 1), True),
    "dilated": ((1, 2, 9, 9), (2, 3), (1, 2), (1, 0, 0, 1), (3, 2), False),
    "ceil, the only window reaches beyond the end": ((1, 2, 2, 7), (3, 5), (2, 3), (0, 0, 0, 0), (1, 1), True),
    "dilated ceil": ((1, 2, 9, 9), (2, 3), (3, 2), (1, 0, 0, 1), (3, 2), True),
    "3d": ((1, 2, 4, 5, 6), (2, 3, 2), (1, 2, 2), (0, 1, 0, 1, 1, 1), (1, 1, 1), False),
    "3d, by planes": ((1, 1, 7, 4, 17), (5, 4, 3), (2, 1, 1), (2, 1, 1, 1, 2, 0), (1, 1, 1), False),
    "3d, by planes, dilated ceil": ((1, 1, 9, 5, 18), (4, 4, 2), (2, 1, 3), (0, 2, 0, 0, 1, 0), (2, 1, 2), True),
    "3d, by planes side by side": ((1, 1, 11, 6, 9), (6, 3, 2), (6, 3, 2), (1, 0, 1, 0, 0, 0), (1, 1, 1), False),
}


def poolings():
    """By name: the call maker, its extra attributes, the oracle's fold."""
    return {
        "max": (max_pool, {}, lambda v, padded: v.max(axis=-1)),
        "avg": (avg_pool, {}, lambda v, padded: v.mean(axis=-1)),
        "avg with padding": (
            avg_pool,
            {"count_include_pad": True},
            lambda v, padded: v.sum(axis=-1) / (v.shape[-1] + padded),
        ),
        "l1": (lp_pool, {"p": 1}, lambda v, padded: np.abs(v).sum(axis=-1)),
        "l2": (lp_pool, {"p": 2}, lambda v, padded: np.sqrt((v**2).sum(axis=-1))),
        "l3": (lp_pool, {"p": 3}, lambda v, padded: (np.abs(v) ** 3).sum(axis=-1) ** (1 / 3)),
    }


def check_pool(ops, kind, x, window, strides, padding, dilations, ceil_mode, native):
    make, extra, fold = poolings()[kind]
    a = rng.normal(size=x).astype(np.float32)
    wanted = windows.pool(a, window, strides, padding, dilations, ceil_mode, fold)
    found = ops.apply(
        make,
        a,
        native=native,
        window=window,
        strides=strides,
        padding=padding,
        dilation=dilations,
        ceil_mode=ceil_mode,
        **extra,
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@each_value(kind=poolings(), native=[False, True])
def test_pools_are_right(ops, kind, native):
    for case in CASES.values():
        check_pool(ops, kind, *case, native)


def named(window, strides, padding, dilation, ceil_mode):
    return {
        "window": window,
        "strides": strides,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": ceil_mode,
    }


LAYOUTS = {"NHWC": (2, 9, 8, 5), "HWCN": (9, 8, 5, 2), "NCHW4c": (1, 2, 9, 8, 4), "NWC": (2, 9, 20)}


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pools_keep_the_layout_of_x(ops, layout, native):
    rank = len(LAYOUTS[layout]) - 2 - (layout == "NCHW4c")
    case = (3,) * rank, (2,) * rank, (1, 0) * rank, (1,) * rank, True
    primal, _ = windows.PRIMAL[rank]
    a = rng.normal(size=LAYOUTS[layout]).astype(np.float32)
    for make, extra, fold in (poolings()[kind] for kind in ("max", "avg", "l2")):
        wanted = windows.pool(windows.rearranged(a, layout, primal), *case, fold)
        found = ops.apply(make, a, layout=layout, native=native, **named(*case), **extra)
        np.testing.assert_allclose(found, windows.rearranged(wanted, primal, layout), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_global_pools_keep_the_layout_of_x(ops, layout, native):
    a = rng.normal(size=LAYOUTS[layout]).astype(np.float32)
    axes = tuple(layout.index(axis) for axis in "HW" if axis in layout)
    folds = {
        global_max_pool: a.max(axes, keepdims=True),
        global_avg_pool: a.mean(axes, keepdims=True),
        global_lp_pool: np.sqrt((a**2).sum(axes, keepdims=True)),
    }
    for make, wanted in folds.items():
        np.testing.assert_allclose(ops.apply(make, a, layout=layout, native=native), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "known"])
@pytest.mark.parametrize("layout", ["WNC", "WHNC"])
def test_rows_may_be_the_outermost_axis(layout, is_open):
    sizes = {"W": 9, "H": 6, "N": 2, "C": 20}
    shape, plain = [sizes[axis] for axis in layout], "NCHW" if "H" in layout else "NCW"
    x = lw.var("x", [dimension(axis.lower()) for axis in layout] if is_open else shape)
    rank = len(layout) - 2
    case = (3,) * rank, (1,) * rank, (1,) * rank * 2, (1,) * rank, False
    function = lw.Function([x], lw.nn.max_pool(x, layout=layout, **named(*case)))
    library = lw.compile(function, "x86-64-v3", jobs=1)
    assert all(candidate.refused is None for f in library.functions for c in f.choices for candidate in c.candidates)
    a = rng.normal(size=shape).astype(np.float32)
    wanted = windows.pool(windows.rearranged(a, layout, plain), *case, poolings()["max"][2])
    np.testing.assert_allclose(lw.Engine(library)([a])[0], windows.rearranged(wanted, plain, layout))


@pytest.mark.parametrize(
    ("kind", "layout", "x"),
    [
        ("max", "NCDHW", (1, 2, dimension("d"), dimension("h"), dimension("w"))),
        ("avg", "NDHWC", (1, 6, 7, 5, 20)),
        ("l3", "NCDHW", (dimension("n"), 2, 6, 7, 18)),
    ],
)
def test_windows_with_three_axes_are_folded_axis_by_axis(kind, layout, x):
    make, extra, fold = poolings()[kind]
    case = (5,) * 3, (1, 1, 2), (2,) * 6, (1,) * 3, False
    library = lw.compile(lw.Function([g := lw.var("x", x)], make(g, layout=layout, **named(*case), **extra)), jobs=1)
    assert "pool.separable" in [choice.implementation for f in library.functions for choice in f.choices]
    a = rng.normal(size=[e if isinstance(e, int) else 6 for e in x]).astype(np.float32)
    wanted = windows.pool(windows.rearranged(a, layout, "NCDHW"), *case, fold)
    found = lw.Engine(library)([a])[0]
    np.testing.assert_allclose(found, windows.rearranged(wanted, "NCDHW", layout), rtol=1e-5, atol=1e-5)


@st.composite
def pool_cases(draw):
    rank = draw(st.integers(1, 3))

    def numbers(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    window, strides, dilations = numbers(1, 4), numbers(1, 3), numbers(1, 2)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    # with a dilation, a window may miss the tensor between its elements: padding below the dilation only
    limit = [min(r - 1, 2) if d == 1 else 0 for r, d in zip(reach, dilations, strict=True)]
    begins, ends = (tuple(draw(st.integers(0, m)) for m in limit) for _ in range(2))
    extents = [draw(st.integers(r, r + {1: 20, 2: 12, 3: 5}[rank])) for r in reach]
    return (1, draw(st.integers(1, 3)), *extents), window, strides, (*begins, *ends), dilations, draw(st.booleans())


@settings(max_examples=20)
@given(pool_cases(), st.sampled_from(["max", "avg", "avg with padding"]))
def test_random_pools_are_right_native(ops, case, kind):
    check_pool(ops, kind, *case, native=True)


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_indices_of_maxima_are_places_in_x(ops, native):
    for case in CASES.values():
        x, window, strides, padding, dilations, ceil_mode = case
        a = rng.integers(0, 5, size=x).astype(np.float32)  # with ties: the first counts
        values, found = ops.apply(
            max_pool_with_indices,
            a,
            native=native,
            window=window,
            strides=strides,
            padding=padding,
            dilation=dilations,
            ceil_mode=ceil_mode,
        )
        wanted = windows.max_pool_indices(a, window, strides, padding, dilations, ceil_mode)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(values, a.reshape(-1)[wanted])


def test_indices_may_count_column_major(ops):
    a = rng.normal(size=(2, 2, 5, 7)).astype(np.float32)
    _, rows = ops.apply(max_pool_with_indices, a, window=2, strides=2)
    _, columns = ops.apply(max_pool_with_indices, a, window=2, strides=2, storage_order=1)
    n, c, y, x = np.unravel_index(rows, a.shape)
    np.testing.assert_array_equal(columns, ((n * 2 + c) * 7 + x) * 5 + y)


def test_maxima_of_integers_nan_and_padding(ops):
    for kind in (np.int8, np.uint8, np.int32):
        a = rng.integers(0, 100, size=(1, 1, 5, 5)).astype(kind) - kind(100 if kind != np.uint8 else 0)
        wanted = windows.pool(a, (3, 3), (2, 2), (1,) * 4, (1, 1), False, lambda v, _: v.max(axis=-1))
        np.testing.assert_array_equal(ops.apply(max_pool, a, window=3, strides=2, padding=1), wanted)
    a = np.array([[[1, np.nan, 3, -np.inf, -np.inf, -np.inf]]], np.float32)
    for native in (False, True):
        found = ops.apply(max_pool, a, window=2, strides=2, native=native)
        np.testing.assert_array_equal(found, [[[np.nan, 3, -np.inf]]])


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad_chooses_the_padding(ops, auto_pad):
    call = max_pool(ops.var((1, 1, 6, 7)), window=(3, 2), strides=2, auto_pad=auto_pad)
    padding = {"SAME_UPPER": (0, 0, 1, 1), "SAME_LOWER": (1, 1, 0, 0), "VALID": (0, 0, 0, 0)}[auto_pad]
    assert call.attrs.padding == padding
    assert call.type.static_shape == ((1, 1, 3, 4) if auto_pad != "VALID" else (1, 1, 2, 3))


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize(
    "shape", [(2, 3, 7), (1, 4, 7, 7), (2, 17, 1, 1), (1, 3, 2, 5, 6), (1, 2, 32, 3), (1, 3, 9, 15)], ids=str
)
def test_global_pools_are_numpys(ops, shape, native):
    a = rng.normal(size=shape).astype(np.float32)
    axes = tuple(range(2, a.ndim))
    wide = a.astype(np.float64)
    for make, extra, wanted in (
        (global_max_pool, {}, a.max(axis=axes, keepdims=True)),
        (global_avg_pool, {}, wide.mean(axis=axes, keepdims=True)),
        (global_lp_pool, {}, np.sqrt((wide**2).sum(axis=axes, keepdims=True))),
        (global_lp_pool, {"p": 1}, np.abs(wide).sum(axis=axes, keepdims=True)),
    ):
        np.testing.assert_allclose(ops.apply(make, a, native=native, **extra), wanted, rtol=1e-5, atol=1e-6)


def test_symbolic_dimensions_come_through(ops):
    n, h = dimension("n"), dimension("h")
    assert max_pool(ops.var((n, 3, h, 8)), window=3, padding=1).type is tensor_type((n, 3, h, 8), "float32")
    assert global_avg_pool(ops.var((n, 3, h, 8))).type is tensor_type((n, 3, 1, 1), "float32")
    x = ops.var((n, 3, h, 6))
    a = rng.normal(size=(2, 3, 7, 6)).astype(np.float32)
    for native in (False, True):
        for ceil_mode in (False, True):
            for kind in ("max", "avg", "avg with padding"):
                make, extra, fold = poolings()[kind]
                call = make(x, window=3, strides=2, padding=1, ceil_mode=ceil_mode, **extra)
                wanted = windows.pool(a, (3, 3), (2, 2), (1,) * 4, (1, 1), ceil_mode, fold)
                found = ops.evaluate(call, {x: a}, native=native)
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        for rows in (1, 3, 7, 25):  # a few elements, a few vectors, and long planes
            of = rng.normal(size=(2, 3, rows, 6)).astype(np.float32)
            found = ops.evaluate(global_avg_pool(x), {x: of}, native=native)
            np.testing.assert_allclose(found, of.mean(axis=(2, 3), keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: max_pool(v((1, 3)), 2), "at least one spatial axis"),
        (lambda v: max_pool(v((1, 3, 4, 4)), (2, 2, 2)), "window needs a number for each of the 2 spatial axes"),
        (lambda v: max_pool(v((1, 3, 4, 4)), 0), "PoolAttrs.window must be positive integers"),
        (lambda v: max_pool(v((1, 3, 4, 4)), 2, padding=2), "leaves windows (2, 2) without any element"),
        (lambda v: max_pool(v((1, 3, 4, 4)), 5), "is larger than the extent 4"),
        (lambda v: avg_pool(v((1, 3, 4), "int32"), 2), "x must be of floats, found int32"),
        (lambda v: lp_pool(v((1, 3, 4)), 2, p=0), "LpPoolAttrs.p must be a positive integer"),
        (lambda v: max_pool_with_indices(v((1, 3, 4)), 2, storage_order=2), "storage_order must be one of 0, 1"),
        (lambda v: avg_pool(v((1, 3, 4)), 2, layout="NHWC"), "x: the layout NHWC has 4 axes"),
        (lambda v: max_pool(v((1, 3, 4)), 2, layout="NWX"), "layout must have the axes N, C, W, found NWX"),
        (lambda v: global_max_pool(v((1, 3, 4, 2)), layout="NCW2w"), "layout may have blocks of C only"),
        (lambda v: global_avg_pool(v((1, 3))), "at least one spatial axis"),
        (lambda v: global_lp_pool(v((1, 3, 3), "int8")), "x must be of floats, found int8"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


@each_value(case=["3x3 padded", "2x2", "ceil", "dilated", "1d"], kind=poolings(), target=["native", "x86-64"])
def test_rows_of_open_length_are_folded_axis_by_axis(case, kind, target):
    """Lengths below, at and beyond those of vectors."""
    make, extra, fold = poolings()[kind]
    shape, *rest = CASES[case]
    x = lw.var("x", (*shape[:2], *(dimension(f"d{k}") for k in range(len(shape) - 2))))
    library = lw.compile(lw.Function([x], make(x, **named(*rest), **extra)), target, jobs=1)
    assert "pool.separable" in [choice.implementation for f in library.functions for choice in f.choices]
    engine = lw.Engine(library)
    for height, width in ((5, 5), (7, 7), (6, 17), (9, 33), (5, 31), (16, 40), (7, 113)):
        given = rng.normal(size=(*shape[:2], *(height, width)[2 - len(shape) + 2 :])).astype(np.float32)
        np.testing.assert_allclose(engine([given])[0], windows.pool(given, *rest, fold), rtol=1e-5, atol=1e-5)


LONG = {
    "in both axes": ((320, 320), (320, 320), (0,) * 4, (1, 1)),
    "padded": ((20, 17), (3, 2), (2, 3, 16, 9), (1, 1)),
    "dilated": ((17, 18), (3, 2), (24, 12, 33, 33), (3, 2)),
}


@each_value(case=LONG, kind=poolings())
def test_taps_of_long_windows_end_where_the_image_does(ops, kind, case):
    """Exporters write the mean over an image as a window of its size, which stays when the image becomes smaller."""
    window, *rest = LONG[case]
    make, extra, fold = poolings()[kind]
    options = dict(zip(("strides", "padding", "dilation"), rest, strict=True), window=window, ceil_mode=True, **extra)
    x = lw.var("x", (1, 3, dimension("h"), dimension("w")))
    library = lw.compile(lw.Function([x], make(x, **options)), jobs=1)
    engine = lw.Engine(library)
    for height, width in ((4, 4), (1, 7), (33, 5)):
        given = rng.normal(size=(1, 3, height, width)).astype(np.float32)
        wanted = windows.pool(given, window, *rest, True, fold)
        np.testing.assert_allclose(engine([given])[0], wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ops.apply(make, given, native=True, **options), wanted, rtol=1e-5, atol=1e-5)
    chosen = [choice.implementation for f in library.functions for choice in f.choices]
    assert any(name.endswith(".whole") for name in chosen) == (case != "dilated")
    attrs = PoolAttrs(window, *rest, True)
    counts = [const_int(simplify(tap.extent)) for tap in taps_of(attrs, (as_index(4), as_index(7)))]
    last = [(extent + before - 1) // step for extent, before, step in zip((4, 7), rest[1], rest[2], strict=False)]
    assert counts == [min(most, tap + 1) for most, tap in zip(window, last, strict=True)]


@each_value(kind=poolings(), window=[(7, 7), (3, 5), (2, 2)])
def test_images_of_known_extents_in_a_short_window_of_their_size_are_folded_whole(kind, window):
    """But for those that fill no vector."""
    make, extra, fold = poolings()[kind]
    x = lw.var("x", (2, 5, *window))
    library = lw.compile(lw.Function([x], make(x, window=window, **extra)), jobs=1)
    given = rng.normal(size=(2, 5, *window)).astype(np.float32)
    wanted = windows.pool(given, window, (1, 1), (0, 0, 0, 0), (1, 1), False, fold)
    np.testing.assert_allclose(lw.Engine(library)([given])[0], wanted, rtol=1e-5, atol=1e-6)
    chosen = [choice.implementation for f in library.functions for choice in f.choices]
    assert any(name.endswith(".whole") for name in chosen) == (window != (2, 2))


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW4c"])
def test_an_image_in_one_window_is_folded_in_each_layout(ops, layout, native):
    case = (40, 40), (40, 40), (3, 0, 1, 0), (1, 1), True
    a = rng.normal(size=LAYOUTS[layout]).astype(np.float32)
    for make, extra, fold in poolings().values():
        wanted = windows.pool(windows.rearranged(a, layout, "NCHW"), *case, fold)
        found = ops.apply(make, a, layout=layout, native=native, **named(*case), **extra)
        np.testing.assert_allclose(found, windows.rearranged(wanted, "NCHW", layout), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", LONG)
def test_indices_in_long_windows_are_places_in_x(ops, case):
    window, *rest = LONG[case]
    options = dict(zip(("strides", "padding", "dilation"), rest, strict=True), window=window, ceil_mode=True)
    a = rng.integers(0, 5, size=(1, 2, 6, 9)).astype(np.float32)
    _, found = ops.apply(max_pool_with_indices, a, native=True, **options)
    np.testing.assert_array_equal(found, windows.max_pool_indices(a, window, *rest, True))


@pytest.mark.parametrize("kind", poolings())
def test_short_rows_of_open_length_have_short_vectors(kind):
    make, extra, _ = poolings()[kind]
    x = lw.var("x", (1, 16, dimension("h"), dimension("w")))
    pooled = make(x, 3, strides=2, **extra)
    for target, served in (
        ("x86-64-v4", ["pool.separable_short_rows", "pool.separable"]),
        ("x86-64-v3", ["pool.separable"]),
    ):
        (function,) = lw.explain(lw.Function([x], pooled), target=target).functions
        assert [choice.implementation for choice in function.choices] == served


def test_open_rows_take_no_memory_of_their_length():
    """The columns of a tile's windows are in registers, and what is loaded of x are whole vectors or parts of them."""
    x = lw.var("x", (1, 16, dimension("h"), dimension("w")))
    (function,) = lw.compile(lw.Function([x], max_pool(x, 3, strides=2)), "x86-64-v4", jobs=1).functions
    assert "allocate('local')" in function.loop_ir
    assert "allocate('global')" not in function.loop_ir
    assert "gather" not in function.llvm_ir
