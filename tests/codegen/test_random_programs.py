"""Random expressions and accesses, native code against the interpreter."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loopwright.artifact.options import CodegenOptions
from loopwright.base.dtype import dtype
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import resolve_target
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    IfThenElse,
    Let,
    Load,
    Logical,
    Ramp,
    Select,
    Unary,
    Var,
)
from loopwright.ir.interpret import interpret
from loopwright.ir.stmt import For, If, IRModule, LetStmt, PrimFunc, Store, seq

KINDS = ("int8", "int32", "uint16", "uint64", "float32", "float16", "float64")
COUNT = 24


@st.composite
def values(draw, kind, leaves, depth):
    """An expression of dtype ``kind`` over the leaves, which are values of that dtype."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if draw(st.booleans()):
            return draw(st.sampled_from(leaves))
        return const(draw(st.integers(0, 100)), kind)

    def inner():
        return draw(values(kind, leaves, depth - 1))

    form = draw(st.sampled_from(["binary", "binary", "binary", "unary", "select", "cast", "let", "lazy"]))
    match form:
        case "binary":
            ops = ["+", "-", "*", "min", "max"] + (["/"] if kind.is_float else ["//", "%", "&", "|", "^", "<<", ">>"])
            return Binary(draw(st.sampled_from(ops)), inner(), inner())
        case "unary":
            return Unary("-", inner())
        case "select":
            return Select(draw(conditions(kind, leaves, depth - 1)), inner(), inner())
        case "cast":
            other = dtype(draw(st.sampled_from(KINDS))).with_lanes(kind.lanes)
            return Cast(kind, Cast(other, inner()))
        case "let":
            var = Var("v", kind)
            return Let(var, inner(), draw(values(kind, [*leaves, var], depth - 1)))
        case "lazy":
            scalar = draw(st.sampled_from([const(True, "bool"), const(False, "bool")]))
            return IfThenElse(scalar, inner(), inner())


@st.composite
def conditions(draw, kind, leaves, depth):
    ops = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    first = Compare(draw(ops), draw(values(kind, leaves, depth)), draw(values(kind, leaves, depth)))
    if draw(st.booleans()):
        return first
    second = Compare(draw(ops), draw(st.sampled_from(leaves)), draw(st.sampled_from(leaves)))
    return Logical(draw(st.sampled_from(["and", "or"])), first, Unary("not", second))


def compare_with_interpreter(kernel_of, func, arrays):
    expected = [a.copy() for a in arrays]
    assert kernel_of(func)(*arrays) == 0
    interpret(func)(*expected)
    for found, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), err_msg=str(func))


def sample(kind, seed):
    rng = np.random.default_rng(seed)
    if kind.is_float:
        return (rng.normal(0, 50, COUNT)).astype(kind.to_numpy())
    low, high = kind.int_range()
    return rng.integers(low, high, COUNT, kind.to_numpy(), endpoint=True)


@given(st.data())
def test_random_expressions(kernel_of, data):
    lanes = data.draw(st.sampled_from([1, 2, 4, 8]))
    kind = dtype(data.draw(st.sampled_from(KINDS))).with_lanes(lanes)
    buffers = [make_buffer(name, [COUNT], kind.element) for name in "ABC"]
    i = index_var("i")
    at = Ramp(i * lanes, const(1, "index"), lanes) if lanes > 1 else i
    a, b, c = (Load(buffer, (at,)) for buffer in buffers)
    first, second = (data.draw(values(kind, [a, b, c], 4)) for _ in range(2))
    x = Var("x", kind)
    body = LetStmt(x, first, seq(Store(buffers[2], (at,), x), Store(buffers[1], (at,), Binary("+", second, x))))
    if data.draw(st.booleans()):
        body = If(Compare("<", i, const(2, "index")), body, Store(buffers[2], (at,), second))
    loop = For(i, const(0, "index"), const(COUNT // lanes, "index"), "serial", body)
    func = PrimFunc("random", tuple(buffers), loop, tuple(buffers[1:]))
    compare_with_interpreter(kernel_of, func, [sample(kind.element, n) for n in range(3)])


@given(st.data())
def test_random_affine_vector_accesses(kernel_of, data):
    """Indices made of sums, differences and products of ramps and broadcasts, so in all shapes that passes leave."""
    lanes = data.draw(st.sampled_from([2, 3, 4, 8]))
    i = index_var("i")

    def number(low, high):
        return const(data.draw(st.integers(low, high)), "index")

    def index():
        ramp = Ramp(i * number(0, 3) + number(0, 9), number(-2, 3), lanes)
        match data.draw(st.integers(0, 3)):
            case 0:
                return ramp
            case 1:
                return Binary("+", ramp, Broadcast(i * number(0, 3), lanes))
            case 2:
                return Binary("*", Broadcast(number(0, 3), lanes), ramp)
            case _:
                return Binary("-", Broadcast(number(0, 99), lanes), ramp)

    where, to = index(), Ramp(i * lanes, const(1, "index"), lanes)
    inside = Logical(
        "and", *(Compare(op, where, Broadcast(const(n, "index"), lanes)) for op, n in ((">=", 0), ("<", 40)))
    )
    A, B = make_buffer("A", [40], "int32"), make_buffer("B", [40], "int32")
    loop = For(i, const(0, "index"), const(4, "index"), "serial", Store(B, (to,), Load(A, (where,), inside)))
    arrays = [np.arange(1, 41, dtype=np.int32), np.zeros(40, np.int32)]
    compare_with_interpreter(kernel_of, PrimFunc("affine", (A, B), loop, (B,)), arrays)


def test_random_expressions_compile_alike_twice():
    A = make_buffer("A", [8], "float32")
    at = Ramp(const(0, "index"), const(1, "index"), 8)
    func = PrimFunc("twice", (A,), Store(A, (at,), Load(A, (at,)) * 2.0), (A,))
    first, second = (
        compile_module(IRModule((func,)), resolve_target("native"), CodegenOptions(cache=False)) for _ in range(2)
    )
    assert (first.object, first.assembly, first.llvm_ir_optimized) == (
        second.object,
        second.assembly,
        second.llvm_ir_optimized,
    )
