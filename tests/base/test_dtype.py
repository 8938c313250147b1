"""Dtypes: parsing, properties, identity."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from loopwright.base.dtype import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    HANDLE,
    INDEX,
    INT8,
    NARROW_KINDS,
    UINT64,
    DType,
    dtype,
)
from loopwright.base.errors import ExpressionError

NAMES = ["bool", "index", "handle", "bfloat16", "float16", "float32", "float64"]
NAMES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NAMES += NARROW_KINDS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lanes", ["", "x4", "x16"])
def test_text_and_dtype_convert_into_each_other(name, lanes):
    kind = dtype(name + lanes)
    assert str(kind) == name + lanes
    assert kind.lanes == int(lanes[1:] or 1)
    assert kind.element is dtype(name)
    assert dtype(kind) is kind


@pytest.mark.parametrize(
    "spec", [np.float32, np.dtype("float32"), "float32", float, np.int8, bool, ml_dtypes.bfloat16, ml_dtypes.int4]
)
def test_numpy_dtypes_are_understood(spec):
    assert dtype(spec).to_numpy() == np.dtype(spec)


@pytest.mark.parametrize(
    "spec", ["float", "int7", "float33", "bool2", "float32x", "x4", "", "complex64", "float32 ", "object"]
)
def test_other_texts_are_refused(spec):
    with pytest.raises(ExpressionError):
        dtype(spec)


def test_no_dtype_has_odd_bits_or_no_lanes():
    with pytest.raises(ExpressionError, match="no such dtype"):
        DType("int", 7)
    with pytest.raises(ExpressionError, match="no such dtype"):
        DType("int", 8, 0)


@pytest.mark.parametrize("kind", [FLOAT32, INDEX, BOOL.with_lanes(8)])
def test_dtypes_are_one_object_each(kind):
    assert DType(kind.kind, kind.bits, kind.lanes) is kind
    assert DType(lanes=kind.lanes, kind=kind.kind, bits=kind.bits) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert copy.deepcopy(kind) is kind
    assert kind.with_lanes(2).element.with_lanes(kind.lanes) is kind


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_equals_its_name_and_has_its_hash(name):
    for text in (name, f"{name}x4"):
        kind = dtype(text)
        assert kind == text
        assert text == kind
        assert hash(kind) == hash(text)
        assert kind in ("int16x3", text)
        assert {text: 1}[kind] == {kind: 1}[text] == 1
    assert dtype(name) != f"{name}x4"
    assert "float32" == FLOAT32 != "float64"
    assert FLOAT32 not in ("int8", "uint8", None, 32)


@pytest.mark.parametrize("other", ["flaot32", "float", "", "int8x1", np.float32, ml_dtypes.bfloat16, float, bool])
def test_comparing_a_dtype_with_what_it_never_equals_is_an_error(other):
    with pytest.raises(ExpressionError):
        FLOAT32.__eq__(other)
    with pytest.raises(ExpressionError):
        assert other != FLOAT32


@pytest.mark.parametrize("name", NAMES)
def test_numpy_takes_a_dtype_for_its_own(name):
    kind, own = dtype(name), dtype(name).to_numpy()
    assert np.dtype(kind) == own
    assert np.zeros(4, kind).dtype == own
    assert np.ones(4, "float32").astype(kind).dtype == own
    assert np.empty_like(np.zeros(3), dtype=kind).dtype == own


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_equals_that_of_arrays_which_numpy_makes_of_it(name):
    kind, array = dtype(name), np.zeros(4, dtype(name))
    assert kind == array.dtype
    assert array.dtype == kind
    other = np.dtype("complex64")
    assert kind != other
    assert other != kind
    assert kind.with_lanes(4) != array.dtype
    assert array.dtype != kind.with_lanes(4)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_refuses_the_dtype_of_a_vector(name):
    with pytest.raises(TypeError, match=f"Cannot interpret '{name}x4' as a data type"):
        np.zeros(4, dtype(name).with_lanes(4))


def test_sizes_and_ranges():
    assert (BOOL.bits, BOOL.storage_bits, BOOL.storage_bytes) == (1, 8, 1)
    assert FLOAT32.with_lanes(8).storage_bytes == 32
    assert INT8.int_range() == (-128, 127)
    assert UINT64.int_range() == (0, 2**64 - 1)
    assert BOOL.int_range() == (0, 1)
    assert INDEX.int_range() is None
    assert FLOAT16.int_range() is None


@pytest.mark.parametrize("name", NAMES)
def test_numpy_ranges_agree(name):
    kind = dtype(name)
    if kind.is_data_int:
        info = np.iinfo(kind.to_numpy())
        assert kind.int_range() == (info.min, info.max)
    assert kind.to_numpy().itemsize == kind.storage_bytes


def test_each_dtype_is_of_one_kind():
    for name in NAMES:
        kind = dtype(name)
        assert sum((kind.is_bool, kind.is_index, kind.is_data_int, kind.is_float, kind.is_narrow, kind is HANDLE)) == 1
    assert BFLOAT16.is_float
    assert not UINT64.is_signed
    assert INDEX.is_signed
