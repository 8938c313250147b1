"""Casts to and from the floats of 8 and 4 bits and the integers of 4 and 2: native code, the interpreter, ml_dtypes.

Values are compared by their bytes, so that the sign of zero counts; of a NaN only that it is one.
"""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import NARROW_KINDS, dtype
from loopwright.base.errors import ExpressionError
from loopwright.ir.interpret import interpret
from loopwright.ir.narrow_casts import narrow_cast
from loopwright.lowering.pipeline import lower

FLOATS = [kind for kind in NARROW_KINDS if "float" in kind]
INTEGERS = [kind for kind in NARROW_KINDS if "float" not in kind]
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
TARGETS = ["native", "x86-64-v2", "x86-64-v3"]


@pytest.fixture(autouse=True)
def _no_float_warnings():
    with np.errstate(all="ignore"):
        yield


def all_of(kind):
    """Each value of a narrow type."""
    return np.arange(1 << dtype(kind).bits, dtype=np.uint8).view(dtype(kind).to_numpy())


def program(x, to, element=None):
    """A schedule of the cast, in vectors where the number of elements allows it, and its tensors."""
    X = te.placeholder(x.shape, str(dtype(x.dtype)), name="X")
    Y = te.compute(x.shape, lambda i: (element or te.cast)(X[i], to), name="Y")
    s = lw.create_schedule(Y)
    if x.size % 4 == 0:
        s["Y"].split("i", 16 if x.size % 16 == 0 else 4)
        s["Y"].vectorize("i_inner")
    return s, [X, Y]


def native(x, to, target="native", element=None):
    schedule, tensors = program(x, to, element)
    result = np.empty(x.shape, dtype(to).to_numpy())
    lw.build(schedule, tensors, target=target)(x, result)
    return result


def interpreted(x, to, element=None):
    schedule, tensors = program(x, to, element)
    result = np.empty(x.shape, dtype(to).to_numpy())
    interpret(lower(schedule, tensors))(x, result)
    return result


def expanded(value, to):
    return narrow_cast(dtype(to).with_lanes(value.dtype.lanes), value)


def same(found, wanted):
    assert found.dtype == wanted.dtype
    if "float" in found.dtype.name:
        nan = np.isnan(wanted.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
        found, wanted = found[~nan], wanted[~nan]
    kind = f"u{found.dtype.itemsize}"
    np.testing.assert_array_equal(found.view(kind), wanted.view(kind))


def without_nan(x, to):
    """Of e2m1, which has none, it is not said which zero NaN becomes."""
    return x[~np.isnan(x)] if to == "float4_e2m1fn" else x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_every_value_is_widened_exactly(kind, target):
    same(native(all_of(kind), "float32", target), all_of(kind).astype(np.float32))


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_every_value_becomes_what_its_float32_becomes(kind, to):
    x = all_of(kind)
    wide = x.astype(np.int32 if kind in INTEGERS else np.float32)
    same(native(x, to), interpreted(wide, to))
    same(interpreted(x, to), interpreted(wide, to))


@pytest.mark.parametrize("kind", INTEGERS)
def test_bits_that_a_type_has_not_are_not_looked_at(kind):
    x = np.arange(256, dtype=np.uint8).view(dtype(kind).to_numpy())
    same(native(x, "int32"), x.astype(np.int32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", FLOATS)
def test_every_float16_is_rounded_as_ml_dtypes_does(kind, target):
    x = without_nan(HALVES, kind)
    same(native(x[: len(x) // 16 * 16], kind, target), x[: len(x) // 16 * 16].astype(dtype(kind).to_numpy()))


def boundaries(kind):
    """float32 around each value of the type and around the middle between each two, and beyond both ends."""
    values = np.sort(all_of(kind).astype(np.float64))
    values = values[np.isfinite(values)]
    middles = (values[1:] + values[:-1]) / 2
    ends = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e38,
        -1e38,
        1e-45,
        -1e-45,
        *(values[-1] * k for k in (1.01, 1.0625, 1.125, 2)),
    ]
    near = np.concatenate([values, middles, ends]).astype(np.float32)
    return np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", FLOATS)
def test_float32_is_rounded_at_every_boundary_as_ml_dtypes_does(kind, target):
    x = without_nan(boundaries(kind), kind)
    same(native(x, kind, target), x.astype(dtype(kind).to_numpy()))


@pytest.mark.parametrize("kind", FLOATS)
def test_float64_is_rounded_once(kind):
    """By way of float32, what is just beyond the middle would be the middle, and go to the even neighbour."""
    values = np.sort(all_of(kind).astype(np.float64))
    values = values[np.isfinite(values)]
    values = values[1:] if kind == "float8_e8m0fnu" else values  # its first two have no middle, see ``narrow_casts``
    middles = (values[1:] + values[:-1]) / 2
    apart = np.maximum(np.abs(middles), 2.0**-126) * 2.0**-40
    above, below = native(middles + apart, kind), native(middles - apart, kind)
    np.testing.assert_array_equal(above.astype(np.float64), values[1:])
    np.testing.assert_array_equal(below.astype(np.float64), values[:-1])
    same(interpreted(middles + apart, kind), above)
    same(interpreted(middles - apart, kind), below)


@pytest.mark.parametrize("kind", NARROW_KINDS)
@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"])
def test_integers_are_converted_as_the_interpreter_does(kind, source):
    small = np.arange(-300, 300)
    large = np.array([2**31 - 1, -(2**31), 2**62, 2**62 + 2**61 - 1, 2**62 + 2**61, 2**62 + 2**61 + 1, -(2**63)])
    x = np.concatenate([small, large, large // 2**32]).astype(dtype(source).to_numpy())
    same(native(x, kind), interpreted(x, kind))
    if kind in INTEGERS and source != "bool":
        same(native(x, kind), x.astype(dtype(kind).to_numpy()))


@pytest.mark.parametrize("kind", INTEGERS)
def test_floats_saturate_in_integers_and_nan_is_0(kind):
    low, high = dtype(kind).int_range()
    x = np.array([np.nan, np.inf, -np.inf, 1e9, -1e9, 1.9, -1.9, 0.5], np.float32)
    wanted = np.array([0, high, low, high, low, 1, max(low, -1), 0]).astype(dtype(kind).to_numpy())
    same(native(x, kind), wanted)
    same(interpreted(x, kind), wanted)


@pytest.mark.parametrize("to", NARROW_KINDS)
@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_narrow_types_are_converted_into_each_other(kind, to):
    x = all_of(kind)
    x = x[~np.isnan(x.astype(np.float32))] if to == "float4_e2m1fn" else x
    same(native(x, to), interpreted(x, to))


@pytest.mark.parametrize("kind", FLOATS)
def test_what_casts_become_is_the_cast(kind):
    """The arithmetic that stands for a cast, run by the interpreter: the same for every target."""
    x = without_nan(boundaries(kind), kind)[:256]
    same(interpreted(x, kind, expanded), interpreted(x, kind))
    same(interpreted(all_of(kind), "float32", expanded), all_of(kind).astype(np.float32))


@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_bits_are_taken_for_another_type(kind):
    x = all_of(kind)
    same(native(x, "uint8", element=te.as_bits), x.view(np.uint8))
    same(native(np.arange(len(x), dtype=np.uint8), kind, element=te.as_bits), x)
    same(interpreted(x, "uint8", te.as_bits), x.view(np.uint8))


def test_bits_of_floats_and_integers_are_each_others():
    x = np.array([1.0, -0.0, np.inf, 3.5], np.float32)
    same(native(x, "int32", element=te.as_bits), x.view(np.int32))
    same(native(x.view(np.int32), "float32", element=te.as_bits), x)
    same(native(x.astype(np.float16), "bfloat16", element=te.as_bits), x.astype(np.float16).view(ml_dtypes.bfloat16))
    same(native(np.array([True, False]), "uint8", element=te.as_bits), np.array([1, 0], np.uint8))
    same(native(np.array([2, 0], np.uint8), "bool", element=te.as_bits), np.array([True, False]))
    with pytest.raises(ExpressionError, match="bits"):
        te.as_bits(te.var("n"), "int32")


@pytest.mark.parametrize(
    "element",
    [lambda x: x + x, lambda x: x * x, lambda x: -x, te.exp, lambda x: x < x, lambda x: te.maximum(x, x)],
)
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "int4"])
def test_nothing_is_computed_in_narrow_types(kind, element):
    X = te.placeholder((4,), kind, name="X")
    with pytest.raises(ExpressionError, match=kind):
        te.compute((4,), lambda i: element(X[i]), name="Y")


@pytest.mark.parametrize("kind", FLOATS)
def test_casts_are_vector_code(kind):
    """No lane is taken out of its vector, and no table is read."""
    for x, to in ((np.zeros(64, np.float32), kind), (np.zeros(64, dtype(kind).to_numpy()), "float32")):
        schedule, tensors = program(x, to)
        text = lw.build(schedule, tensors, target="x86-64-v3").llvm_ir
        assert "<16 x i32>" in text
        assert "extractelement" not in text
