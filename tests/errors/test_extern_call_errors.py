"""Mistakes with functions of C: how they are declared, called and registered."""

import ctypes

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


def calling(function, *args, kind="serial"):
    """A tensor of 8 floats that a call computes; ``args`` are functions of the builder's handle on the output."""

    def body(ins, outs):
        ib = te.IRBuilder()
        b = ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4, name="i", kind=kind):
            ib.call(function, *(arg(b) if callable(arg) else arg for arg in args))
        return ib.get()

    return te.extern((8,), [], body, name="B", dtype="float32")


@pytest.mark.parametrize(
    ("symbol", "params", "message"),
    [
        ("no symbol", [], "an identifier of C, found 'no symbol'"),
        ("f", "int32", "a list of texts, found 'int32'"),
        ("f", None, "a list of texts, found None"),
        ("f", ["by int32"], "a parameter is a dtype, with value, reference, read, write, update before it"),
        ("f", ["index"], "f: C knows no index; a size is int32 or int64 there"),
        ("f", ["int8"], "a int8 is not passed by value, but as one of int32, int64"),
        ("f", ["read int33"], "no such dtype: int33"),
    ],
)
def test_declarations(symbol, params, message):
    with pytest.raises(lw.ExpressionError, match=message):
        te.extern_function(symbol, params)


def test_references_and_callees_that_are_none():
    with pytest.raises(lw.ExpressionError, match="the reference of f is a function in Python, found 1"):
        te.extern_function("f", ["int32"], 1)
    with pytest.raises(lw.ExpressionError, match=r"what is called is made by te\.extern_function, found 'f'"):
        calling("f", 1)


def test_calls_that_do_not_fit_the_declaration():
    f = te.extern_function("f", ["int32", "update float32"])
    with pytest.raises(lw.ExpressionError, match="takes 2 arguments, found 1"):
        calling(f, 1)
    with pytest.raises(lw.ExpressionError, match="argument 1 of f is declared as int32, found a region of float32"):
        calling(f, lambda b: b, lambda b: b)
    with pytest.raises(lw.ExpressionError, match="argument 2 of f is declared as update float32, found a float32"):
        calling(f, 1, 2.0)
    with pytest.raises(lw.ExpressionError, match="argument 2 of f is declared as update float64, found a region of f"):
        calling(te.extern_function("f", ["int32", "update float64"]), 1, lambda b: b)
    with pytest.raises(lw.ExpressionError, match="begins at 2 indices and has 1 extents"):
        calling(f, 1, lambda b: b.region((0, 0), 4))


def test_calls_in_vector_loops_and_into_inputs():
    f = te.extern_function("f", ["update float32"])
    with pytest.raises(lw.ExpressionError, match="f is called inside a vectorized loop"):
        calling(f, lambda b: b, kind="vectorized")

    def body(ins, outs):
        ib = te.IRBuilder()
        ib.call(f, ins[0])
        return ib.get()

    with pytest.raises(lw.ExpressionError, match="f writes A, neither an output nor allocated here"):
        te.extern((8,), [te.placeholder((8,), name="A")], body, name="B")


def test_a_function_without_reference_is_not_interpreted():
    B = calling(te.extern_function("f", ["update float32"]), lambda b: b)
    with pytest.raises(lw.InterpretError, match="f is a function of C without a reference in Python"):
        lw.interpret(lw.lower(lw.create_schedule(B), [B]))(np.zeros(8, np.float32))


def test_a_symbol_that_nobody_knows_is_told_when_the_kernel_is_loaded():
    B = calling(te.extern_function("never_registered", ["update float32"]), lambda b: b)
    with pytest.raises(lw.TargetError, match=r"calls never_registered, of which no address is known.*register_symbol"):
        lw.build(lw.create_schedule(B), [B], name="lost")


def test_a_symbol_that_is_registered_as_another_function():
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int32)
    lw.register_symbol(te.extern_function("of_int", ["int32"]), kind(lambda n: None), override=True)
    B = calling(te.extern_function("of_int", ["update float32"]), lambda b: b)
    with pytest.raises(lw.TargetError, match=r"calls `void of_int\(float \*\)`, but .* `void of_int\(int32_t\)`"):
        lw.build(lw.create_schedule(B), [B])


def test_one_symbol_declared_in_two_ways():
    one, two = te.extern_function("g", ["int32"]), te.extern_function("g", ["int64"])

    def body(ins, outs):
        ib = te.IRBuilder()
        ib.call(one, 1)
        ib.call(two, 1)
        return ib.get()

    B = te.extern((8,), [], body, name="B", dtype="float32")
    with pytest.raises(lw.ExpressionError, match=r"declared in two ways: `void g\(int32_t\)` and `void g\(int64_t\)`"):
        lw.build(lw.create_schedule(B), [B])


def test_a_symbol_of_the_runtime():
    B = calling(te.extern_function("free", ["update float32"]), lambda b: b)
    with pytest.raises(lw.ExpressionError, match="free is a function that compiled code uses itself"):
        lw.build(lw.create_schedule(B), [B])


def test_registrations():
    f = te.extern_function("registered_twice", ["int32"])
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int32)(lambda n: None)
    with pytest.raises(lw.LoopwrightError, match=r"takes what te\.extern_function gives, found 'registered_twice'"):
        lw.register_symbol("registered_twice", callback)
    with pytest.raises(lw.LoopwrightError, match="is a number or a function of ctypes, found 'sgemm'"):
        lw.register_symbol(f, "sgemm")
    lw.register_symbol(f, callback)
    with pytest.raises(lw.LoopwrightError, match="registered_twice is registered already; say override=True"):
        lw.register_symbol(f, callback)
    lw.register_symbol(f, callback, override=True)
