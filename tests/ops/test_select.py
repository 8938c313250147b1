"""where, and clip with bounds that are tensors: types, misuse, values against numpy."""

import numpy as np
import pytest

from loopwright.base.errors import TypeInferenceError
from loopwright.graph.types import tensor_type
from loopwright.ops.definition.registry import OpPattern
from loopwright.ops.families.select import WHERE, clip_by, where
from loopwright.te import var as dimension

SHAPES = [
    ((3, 4), (3, 4), (3, 4)),
    ((4,), (3, 1), ()),
    ((), (2, 3), (3,)),
    ((2, 1, 1), (1, 3, 1), (1, 1, 4)),
    ((), (), ()),
]


@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "uint8", "float16"])
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_where_chooses_with_broadcasting(ops, kind, native):
    rng = np.random.default_rng(0)
    for of_condition, of_a, of_b in SHAPES:
        condition = rng.random(of_condition) < 0.5
        a, b = (np.asarray(rng.integers(0, 2 if kind == "bool" else 100, s)).astype(kind) for s in (of_a, of_b))
        found = ops.apply(where, condition, a, b, native=native)
        assert found.dtype == a.dtype
        np.testing.assert_array_equal(found, np.where(condition, a, b))


def test_where_lets_nan_through_only_where_it_is_chosen(ops):
    a = np.array([np.nan, 1.0, np.inf], np.float32)
    found = ops.apply(where, ~np.isnan(a), a, np.zeros(3, np.float32), native=True)
    np.testing.assert_array_equal(found, [0, 1, np.inf])


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 0.5), (0.5, None), (None, None), (2.0, 1.0)])
def test_clip_by_is_numpys_clip(ops, bounds):
    x = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    given = [np.float32(b) for b in bounds if b is not None]

    def make(x, *tensors):
        found = iter(tensors)
        return clip_by(x, *(None if b is None else next(found) for b in bounds))

    wanted = x if bounds == (None, None) else np.clip(x, *bounds)
    np.testing.assert_array_equal(ops.apply(make, x, *given), wanted)


def test_types_and_pattern(ops):
    n = dimension("n")
    call = where(ops.var((n, 1), "bool"), ops.var((3,)), ops.var(()))
    assert call.type is tensor_type((n, 3), "float32")
    assert WHERE.pattern is OpPattern.BROADCAST


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: where(v((2,)), v((2,)), v((2,))), "condition must be bool, found float32"),
        (lambda v: where(v((2,), "bool"), v((2,)), v((2,), "int8")), "a is float32, but b is int8"),
        (lambda v: where(v((2,), "bool"), v((3,)), v((1,))), "extents 2 of condition and 3 of a do not broadcast"),
        (lambda v: clip_by(v((2,)), v((), "float64")), "a is float32, but b is float64"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)
