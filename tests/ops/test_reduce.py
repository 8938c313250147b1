"""Reductions: types, misuse, and values against numpy, by the interpreter and by both native schedules."""

import ml_dtypes
import numpy as np
import pytest

from loopwright.base.errors import TypeInferenceError
from loopwright.graph.types import tensor_type
from loopwright.ops.definition.registry import OpPattern, get_op
from loopwright.ops.families import reduce
from loopwright.te import var as dimension


def log_sum_exp(x, **k):
    return np.log(np.sum(np.exp(x), **k))


ORACLES = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "sum_square": lambda x, **k: np.sum(x * x, **k),
    "l1": lambda x, **k: np.sum(np.abs(x), **k),
    "l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "log_sum": lambda x, **k: np.log(np.sum(x, **k)),
    "log_sum_exp": log_sum_exp,
}
ALL_AXES = [None, 0, 1, -1, (0, 1), (0, 2), (2, 1), (0, 1, 2), ()]


def positive(shape, kind="float32", seed=0):
    """Numbers around 1: no sum cancels, no product overflows."""
    numbers = np.random.default_rng(seed).uniform(0.5, 1.6, shape)
    return numbers.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)


def as_axis(axes):
    return axes if axes is None or isinstance(axes, int) else tuple(axes)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_values_over_all_choices_of_axes_are_numpys(ops, name, native):
    x = positive((3, 4, 5))
    for axes in ALL_AXES if not native else [None, 0, (0, 2), ()]:
        for keepdims in (False, True):
            wanted = ORACLES[name](x.astype(np.float64), axis=as_axis(axes), keepdims=keepdims)
            found = ops.apply(getattr(reduce, name), x, axes=axes, keepdims=keepdims, native=native)
            assert found.dtype == np.float32
            assert found.shape == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6, err_msg=f"{axes} {keepdims}")


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("shape", "axes"), [((2, 3, 64), -1), ((3, 2, 77), (0, 2)), ((333,), 0)])
def test_long_rows_are_folded_in_lanes_and_give_numpys_values(ops, name, shape, axes):
    x = positive(shape)
    chosen, _, _ = ops.implement(getattr(reduce, name)(ops.var(shape), axes=axes))
    assert chosen.name == f"{name}.rows"
    for keepdims in (False, True):
        wanted = ORACLES[name](x.astype(np.float64), axis=axes, keepdims=keepdims)
        for native in (False, True):
            found = ops.apply(getattr(reduce, name), x, axes=axes, keepdims=keepdims, native=native)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"keepdims {keepdims}, native {native}")


@pytest.mark.parametrize("name", ["sum", "mean", "l2", "max", "log_sum_exp"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_narrow_floats_are_summed_in_float32(ops, name, kind):
    for axes in (0, 1):
        x = positive((90, 90), kind)
        wanted = ORACLES[name](x.astype(np.float64), axis=axes)
        tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-12}[kind]
        found = ops.apply(getattr(reduce, name), x, axes=axes, native=True)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance)


@pytest.mark.parametrize("kind", ["int8", "int64", "uint8"])
def test_integers_wrap_and_what_is_not_whole_is_truncated(ops, kind):
    info = np.iinfo(kind)
    x = np.random.default_rng(1).integers(max(info.min, -100), 101, (5, 70)).astype(kind)
    with np.errstate(all="ignore"):
        for axes in (0, 1):
            wanted = {
                "sum": x.sum(axes, dtype=kind),
                "prod": x.prod(axes, dtype=kind),
                "max": x.max(axes),
                "min": x.min(axes),
                "sum_square": (x * x).sum(axes, dtype=kind),
                "l1": np.abs(x).sum(axes, dtype=kind),
                "mean": np.trunc(x.mean(axes)).astype(kind),
            }
            if kind == "int64":
                wide = x.astype(np.float64)
                wanted["l2"] = np.trunc(np.sqrt((wide * wide).sum(axes))).astype(kind)
                wanted["log_sum_exp"] = np.trunc(np.logaddexp.reduce(wide, axes)).astype(kind)
            for name, value in wanted.items():
                for native in (False, True):
                    found = ops.apply(getattr(reduce, name), x, axes=axes, native=native)
                    np.testing.assert_array_equal(found, value, err_msg=f"{name} over {axes}, native {native}")


def test_bools(ops):
    x = np.random.default_rng(2).random((4, 3, 70)) < 0.03
    x[0] = True
    for axes in ((0,), (2,), (1, 2), ()):
        for make, oracle in ((reduce.any, np.any), (reduce.all, np.all), (reduce.max, np.any), (reduce.min, np.all)):
            for native in (False, True):
                found = ops.apply(make, x, axes=axes, native=native)
                np.testing.assert_array_equal(found, oracle(x, axis=axes))


@pytest.mark.parametrize("width", [3, 100])
def test_extremes_and_log_sum_exp_meet_nan_infinities_and_large_numbers(ops, width):
    rows = [[np.nan, np.inf, 1], [np.inf, -np.inf, 1], [-np.inf] * 3, [1000, 999, -1000], [-1000, -1000, -1001]]
    x = np.array([np.resize(row, width) for row in rows], np.float32)
    for native in (False, True):
        for name, oracle in (("max", np.max), ("min", np.min), ("log_sum_exp", np.logaddexp.reduce)):
            found = ops.apply(getattr(reduce, name), x, axes=1, native=native)
            with np.errstate(invalid="ignore"):
                wanted = oracle(x.astype(np.float64), axis=1)
            np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=name)


def test_nothing_to_reduce_gives_the_neutral_element(ops):
    x = np.zeros((2, 0), np.float32)
    for native in (False, True):
        for name, value in {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf, "mean": np.nan, "l2": 0}.items():
            np.testing.assert_array_equal(ops.apply(getattr(reduce, name), x, axes=1, native=native), [value] * 2)
        np.testing.assert_array_equal(ops.apply(reduce.log_sum_exp, x, axes=1, native=native), [-np.inf] * 2)
        assert ops.apply(reduce.sum, np.zeros((0, 3), np.int32), axes=1, native=native).shape == (0,)
    np.testing.assert_array_equal(ops.apply(reduce.max, x.astype(np.int8), axes=1), [-128, -128])


def test_rank_0(ops):
    for native in (False, True):
        assert ops.apply(reduce.sum, np.float32(3.5), native=native) == 3.5
        np.testing.assert_allclose(ops.apply(reduce.l2, np.float32(-3.5), keepdims=True, native=native), 3.5)


def test_no_axes_leave_each_element_by_itself(ops):
    x = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
    np.testing.assert_array_equal(ops.apply(reduce.sum, x, axes=()), x)
    np.testing.assert_array_equal(ops.apply(reduce.sum_square, x, axes=()), x * x)
    np.testing.assert_array_equal(ops.apply(reduce.l1, x, axes=(), keepdims=True), np.abs(x))
    np.testing.assert_allclose(ops.apply(reduce.log_sum_exp, x, axes=()), x, rtol=1e-6)


def test_symbolic_dimensions(ops):
    n, m = dimension("n"), dimension("m")
    x = ops.var((n, m))
    assert reduce.sum(x, 1).type is tensor_type((n,), "float32")
    assert reduce.mean(x, 0, keepdims=True).type is tensor_type((1, m), "float32")
    data = positive((5, 7))
    for native in (False, True):
        for axes in (None, 0, 1):
            found = ops.evaluate(reduce.mean(x, axes), {x: data}, native=native)
            np.testing.assert_allclose(found, data.mean(axes), rtol=1e-6)
    rows = ops.var((n, 70))
    data = positive((5, 70))
    np.testing.assert_allclose(ops.evaluate(reduce.sum(rows, 1), {rows: data}, native=True), data.sum(1), rtol=1e-5)


def test_operators_are_registered_as_reductions():
    for name in [*ORACLES, "any", "all"]:
        assert get_op(name).pattern is OpPattern.COMM_REDUCE
    assert reduce.sum.__doc__.startswith("the sum over axes.")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: reduce.sum(v((2, 3)), 2), "axis 2 is not one of a tensor of rank 2"),
        (lambda v: reduce.sum(v((2, 3)), (0, -2)), "axes (0, -2) name an axis twice"),
        (lambda v: reduce.sum(v((2,), "bool")), "x must be of float, bfloat, int, uint, found bool"),
        (lambda v: reduce.any(v((2,))), "x must be of bool, found float32"),
        (lambda v: get_op("sum")(v((2,)), attrs=reduce.ReduceAttrs((-1,))), "ReduceAttrs.axes must be integers of 0"),
        (lambda v: get_op("sum")(v((2,)), attrs=reduce.ReduceAttrs((4,))), "axis 4 is not one of a tensor of rank 1"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)
