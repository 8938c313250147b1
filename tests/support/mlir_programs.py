"""Programs that together have every kind of node of the loop IR: kernels of schedules, and some written by hand."""

import ctypes
import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import FLOAT32, INDEX
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
from loopwright.ir.stmt import (
    Allocate,
    Assert,
    Evaluate,
    For,
    If,
    IRModule,
    LetStmt,
    PrefetchStmt,
    PrimFunc,
    Store,
    seq,
)
from loopwright.lowering.passes.outline_parallel import outline_parallel

TESTS = Path(__file__).parents[1]
ONE = const(1, "index")


class Program(NamedTuple):
    func: PrimFunc
    arrays: list[np.ndarray]
    launched: bool = False

    @property
    def emitted(self):
        """What MLIR is made of: the function, or with its parallel loops as functions of their own."""
        return outline_parallel(self.func) if self.launched else self.func

    @property
    def module(self):
        return self.emitted if isinstance(self.emitted, IRModule) else IRModule((self.emitted,))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", sys.argv[:1])  # scripts look at their arguments
        spec.loader.exec_module(module)
    return module


def arrays_of(func, sizes):
    """Random arguments: numbers for the inputs, and outputs that must be overwritten."""
    rng = np.random.default_rng(0)
    written = {b.data for b in func.outputs}
    made = []
    for buffer in func.buffers:
        shape = [sizes.get(getattr(e, "name", None), None) or int(e) for e in buffer.shape]
        kind = buffer.dtype.to_numpy()
        numbers = rng.uniform(-2, 2, shape) if buffer.dtype.is_float else rng.integers(0, 9, shape)
        made.append(np.full(shape, 77).astype(kind) if buffer.data in written else numbers.astype(kind))
    return made


def example(make, width, **sizes):
    schedule, args = make(width)
    func = lw.lower(schedule, args, name=make.__name__)
    return Program(func, arrays_of(func, sizes))


def default(output, inputs, name, launched=False, **sizes):
    func = lw.lower(lw.default_schedule(output), [*inputs, output], name=name)
    return Program(func, arrays_of(func, sizes), launched)


def launched_matmul():
    n = te.var("n")
    A, B = te.placeholder((n, 24), name="A"), te.placeholder((24, 19), name="B")
    r = te.reduce_axis((0, 24), name="r")
    C = te.compute((n, 19), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return default(C, [A, B], "launched_matmul", launched=True, n=13)


def collatz():
    """Steps to 1: a loop that carries a register, with a condition in it that gives one."""

    def steps(ins, outs):
        ib = te.IRBuilder()
        A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 9, name="i") as i:
            x, count = ib.allocate("int32", (), "x"), ib.allocate("int32", (), "count")
            x[()] = A[i] + 1
            count[()] = 0
            with ib.while_loop(x[()] > 1):
                half = ib.let("half", x[()] // 2)
                with ib.if_scope(x[()] % 2 == 0):
                    x[()] = half
                with ib.else_scope():
                    x[()] = x[()] * 3 + 1
                count[()] = count[()] + 1
            B[i] = count[()]
        return ib.get()

    A = te.placeholder((9,), "int32", name="A")
    B = te.extern((9,), [A], steps, name="B")
    func = lw.lower(lw.create_schedule(B), [A, B], name="collatz")
    return Program(func, arrays_of(func, {}))


def copied():
    """Calls of functions of the C library: of regions, in a parallel loop, and of a scalar by reference."""
    copy = te.extern_function("bcopy", ["read float32", "write float32", "int64"])
    swap = te.extern_function("swab", ["reference uint16", "write uint8", "int64"])
    for function in (copy, swap):
        lw.register_symbol(function, getattr(ctypes.CDLL(None), function.symbol), override=True)

    def body(ins, outs):
        ib = te.IRBuilder()
        A, B, C = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, 4, name="i", kind="parallel") as i:
            row = ib.allocate("float32", (6,), "row")
            ib.call(copy, A.region((i, 2), (1, 6)), row, 24)
            with ib.for_range(0, 6, name="j") as j:
                B[i, j] = row[5 - j]
        with ib.for_range(0, 3, name="k") as k:
            ib.call(swap, te.cast(k * 300, "uint16"), C.region((2 * k,), (2,)), 2)
        return ib.get()

    A = te.placeholder((4, 8), name="A")
    B, C = te.extern([(4, 6), (6,)], [A], body, name="B", dtype=["float32", "uint8"])
    func = lw.lower(lw.create_schedule([B, C]), [A, B, C], name="copied")
    return Program(func, arrays_of(func, {}))


def accesses():
    """Vectors with all strides, masks, gathers and scatters; arrays of vectors; names for values."""
    A, B, P = make_buffer("A", [64], "float32"), make_buffer("B", [80], "float32"), make_buffer("P", [16], "int32")
    F, T = make_buffer("F", [64], "bool"), make_buffer("T", [16], "float32x4", "local")
    i, k = index_var("i"), index_var("k")
    lane = Ramp(i * 4, ONE, 4)
    where = Cast(INDEX.with_lanes(4), Load(P, (lane,)))
    low, x, y = Compare("<", where, Broadcast(const(9, "index"), 4)), Var("x", FLOAT32), Var("y", FLOAT32.with_lanes(4))
    strided = [Load(A, (Ramp(i + (12 if n < 0 else 0), const(n, "index"), 4),)) for n in (-1, 2, 5)]
    total = Binary("+", Binary("+", strided[0], strided[1]), strided[2])
    kept = Select(Logical("or", low, Load(F, (lane,))), total, Unary("-", total))
    first = IfThenElse(Logical("and", i > 1, Unary("not", Load(F, (i,)))), Load(A, (i + 7,)), const(0.5, "float32"))
    body = seq(
        Assert(i < 4, "the loop has four iterations"),
        PrefetchStmt(A, (i * 4 + 99,)),
        Evaluate(Load(P, (i,))),
        Store(T, (i,), Binary("*", Load(T, (i,)), Broadcast(const(2.0, "float32"), 4))),
        Store(B, (Ramp(i * 4 + 16, ONE, 4),), Let(y, kept, Binary("*", y, y)), low),
        Store(B, (where,), Load(T, (i,))),
        LetStmt(x, first, Store(B, (i + 32,), Binary("max", x, Load(B, (i + 16,), i < 3)))),
        If(i > 2, Store(B, (Ramp(const(43, "index"), const(-1, "index"), 4),), Load(A, (lane,), low))),
        Store(B, (Ramp(i + 44, const(4, "index"), 4),), Load(A, (Broadcast(i, 4),))),
        Store(F, (Ramp(i * 4 + 16, ONE, 4),), Compare(">=", where, Broadcast(i, 4))),
    )
    zero, four = const(0, "index"), const(4, "index")
    filled = For(k, zero, four, "serial", Store(T, (k,), Load(A, (Ramp(k * 4, ONE, 4),))))
    whole = Allocate(T, seq(filled, For(i, zero, four, "serial", body)))
    func = PrimFunc("accesses", (A, B, P, F), whole, (B, F))
    arrays = arrays_of(func, {})
    arrays[2] = np.random.default_rng(1).permutation(16).astype(np.int32)
    arrays[3] = np.arange(64) % 3 == 0
    return Program(func, arrays)


def prefetched():
    A = te.placeholder((64, 24), name="A")
    B = te.compute((64, 24), lambda i, j: te.exp(A[i, j]) * 0.5, name="B")
    s = lw.create_schedule(B)
    s[B].vectorize(s[B].split(B.op.axis[1], factor=8)[1])
    s[B].prefetch(A, B.op.axis[0], 2)
    func = lw.lower(s, [A, B], name="prefetched")
    return Program(func, arrays_of(func, {}))


def programs():
    """By name. Between them they have all nodes: ``test_loops.py`` proves it."""
    kernels = load(TESTS / "end_to_end" / "example_kernels.py")
    made = [
        *(example(make, 8) for make in (kernels.matmul, kernels.softmax, kernels.conv2d, kernels.digits)),
        example(kernels.chain, 8, n=21),
        example(kernels.default, 8, n=5, m=13),
        launched_matmul(),
        collatz(),
        copied(),
        accesses(),
        prefetched(),
    ]
    return {program.func.name: program for program in made}
