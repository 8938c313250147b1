"""Run as a script: compiles programs with every operator, cast, intrinsic and kind of access for one target, and prints
as JSON, for each, a digest of its LLVM IR (``text``) or the symbols that its object leaves undefined (``symbols``).

A script, because LLVM ends the process where it cannot select an instruction.
"""

import hashlib
import json
import struct
import sys

from loopwright.artifact.options import CodegenOptions
from loopwright.base.dtype import dtype
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import resolve_target
from loopwright.codegen.module import emit_module
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Binary, Broadcast, Cast, Compare, Load, Ramp, Select, Unary
from loopwright.ir.intrinsics import INTRINSICS, call
from loopwright.ir.stmt import Allocate, Assert, For, IRModule, PrimFunc, Store, seq

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
ONE = const(1, "index")


def undefined_symbols(data: bytes) -> list[str]:
    """Names of the undefined symbols of a 64-bit little-endian ELF object."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (sections_at,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + size * n) for n in range(count)]
    names = []
    for _, kind, _, _, at, length, link, _, _, entry in sections:
        if kind != 2:  # the symbol table
            continue
        strings = sections[link][4]
        for where in range(at, at + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", data, where)
            if name and section == 0:
                names.append(data[strings + name : data.index(b"\0", strings + name)].decode())
    return sorted(names)


def elementwise(name, kind, lanes, makers):
    A, B = make_buffer("A", [64], kind), make_buffer("B", [64], kind)
    i = index_var("i")
    at = Ramp(i * lanes, ONE, lanes) if lanes > 1 else i
    values = [make(Load(A, (at,)), Load(B, (at,))) for make in makers]
    outs = [make_buffer(f"O{n}", [64], v.dtype.element) for n, v in enumerate(values)]
    stores = [Store(out, (at,), value) for out, value in zip(outs, values, strict=True)]
    body = For(i, const(0, "index"), const(64 // lanes, "index"), "serial", seq(*stores))
    return PrimFunc(name, (A, B, *outs), body, tuple(outs))


def makers_of(kind, lanes):
    ints = kind in INTS
    names = ("//", "%", "&", "|", "^", "<<", ">>") if ints else ("/",)
    makers = [lambda a, b, op=op: Binary(op, a, b) for op in ("+", "-", "*", "min", "max", *names)]
    makers += [lambda a, b: a * b + a, lambda a, b: Unary("-", a), lambda a, b: Select(Compare("<", a, b), a, b)]
    makers += [lambda a, b, to=to: Cast(dtype(to).with_lanes(lanes), a) for to in (*INTS, *FLOATS, "bool")]
    for intrinsic in INTRINSICS.values():
        if intrinsic.domain in ("number", "int" if ints else "float"):
            makers.append(lambda a, b, i=intrinsic: call(i.name, *(a, b, a)[: i.arity]))
    return makers


def accesses(kind, lanes):
    A, B, P = make_buffer("A", [256], kind), make_buffer("B", [256], kind), make_buffer("P", [256], "int64")
    T, U = make_buffer("T", [256], kind, "local"), make_buffer("U", [256], kind, "global")
    i = index_var("i")
    lane = Ramp(i * lanes, ONE, lanes)
    where = Cast(dtype("index").with_lanes(lanes), Load(P, (lane,)))
    mask = Compare("<", where, Broadcast(const(99, "index"), lanes))
    strides = [
        Store(B, (lane,), Load(A, (Ramp(i + (12 if n < 0 else 0), const(n, "index"), lanes),))) for n in (-1, 2, 3, 5)
    ]
    body = seq(
        Store(T, (lane,), Load(A, (lane,), mask), mask),
        Store(U, (lane,), Load(T, (where,), mask)),
        Store(B, (where,), Load(U, (lane,)), mask),
        *strides,
        Assert(Compare("<", Load(P, (i,)), const(256, "int64")), "in range"),
    )
    loop = For(i, const(0, "index"), const(256 // lanes, "index"), "serial", body)
    return PrimFunc("accesses", (A, B, P), Allocate(T, Allocate(U, loop)), (B,))


def programs():
    for kind in (*INTS, *FLOATS):
        yield elementwise(f"operators_{kind}", kind, 8, makers_of(kind, 8))
    for kind in ("int32", "float16", "float64"):
        yield elementwise(f"scalars_{kind}", kind, 1, makers_of(kind, 1))
    for kind in ("bool", "int8", "float16", "float32", "float64"):
        yield accesses(kind, 8)


def main(spec, wanted):
    target = resolve_target(spec)
    found = {}
    for func in programs():
        module, options = IRModule((func,)), CodegenOptions(opt_level=1, cache=False)
        name = f"{func.name} {func.buffers[0].dtype}"
        if wanted == "text":
            found[name] = hashlib.sha256(emit_module(module, target, options).text.encode()).hexdigest()
        else:
            found[name] = undefined_symbols(compile_module(module, target, options).object)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
