"""Floats become integers: rounded towards zero, or the nearest limit, and NaN becomes 0; in vectors and one by one."""

import math

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.base.dtype import dtype
from loopwright.codegen.compile import compile_module
from loopwright.ir.stmt import IRModule
from loopwright.lowering.pipeline import lower

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.99, -0.99, 1.5, -1.5, 123456.75, -123456.75, 1e30, -1e30]
LANES = 16


def edges(source, to):
    """The values beside each limit of the integers, and the special ones."""
    kind = np.dtype(source).type
    around = []
    for limit in dtype(to).int_range():
        at = kind(limit)
        around += [at, np.nextafter(at, kind(0)), np.nextafter(at, kind(math.copysign(math.inf, limit or -1)))]
    values = np.array([*SPECIAL, *around], source)
    return np.resize(values, 2 * LANES)


def exact(value, to):
    low, high = dtype(to).int_range()
    if math.isnan(value):
        return 0
    return min(max(math.trunc(value), low), high) if math.isfinite(value) else high if value > 0 else low


def cast_of(count, source, to, lanes):
    X = te.placeholder((count,), source, name="X")
    Y = te.compute((count,), lambda i: te.cast(X[i], to), name="Y")
    s = lw.create_schedule(Y)
    if lanes > 1:
        _, lane = s[Y].split(s[Y].loops[0], factor=lanes)
        s[Y].vectorize(lane)
    return s, [X, Y]


@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_beside_the_limits_saturate(source, to, lanes, target):
    x = edges(source, to)
    schedule, tensors = cast_of(len(x), source, to, lanes)
    found = np.empty(x.shape, to)
    lw.build(schedule, tensors, target=target)(x, found)
    assert found.tolist() == [exact(float(value), to) for value in x]


@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_are_indices_too(source, lanes, target):
    X, T = te.placeholder((LANES,), source, name="X"), te.placeholder((5,), name="T")
    Y = te.compute((LANES,), lambda i: T[te.minimum(te.maximum(te.cast(X[i], "index"), 0), 4)], name="Y")
    s = lw.create_schedule(Y)
    if lanes > 1:
        s[Y].vectorize(s[Y].loops[0])
    x = np.resize(np.array([*SPECIAL, 3.99, 4.0], source), LANES)
    table, found = np.arange(5, dtype=np.float32) * 10, np.empty(LANES, np.float32)
    expected = [10.0 * min(max(exact(float(value), "int64"), 0), 4) for value in x]
    for run in (lw.build(s, [X, T, Y], target=target), lw.interpret(lw.lower(s, [X, T, Y], target=target))):
        run(x, table, found)
        assert found.tolist() == expected


@pytest.mark.parametrize("target", ["x86-64-v3", "skylake-avx512"])
def test_vectors_of_floats_are_converted_at_once(target):
    """One by one, each takes a conversion, comparisons and moves of its own."""
    schedule, tensors = cast_of(LANES, "float32", "int32", LANES)
    module = IRModule((lower(schedule, tensors),))
    assembly = compile_module(module, lw.resolve_target(target), CodegenOptions(cache=False)).assembly
    assert "vcvttps2dq" in assembly
    assert "cvttss2si" not in assembly
