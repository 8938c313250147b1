"""Run as a script, ``example_kernels.py <target> <modules to import first>``: compiles the kernels of the examples, in
small, and prints as JSON, for each, digests of its texts and its object, and the symbols that the object lacks.

A script, because LLVM ends the process where it cannot select an instruction.
"""

import hashlib
import importlib
import importlib.util
import json
import sys
from pathlib import Path

first = sys.argv[2:]
for module in first:
    importlib.import_module(module)

import loopwright as lw  # noqa: E402  the order of imports is what is tested
from loopwright import te  # noqa: E402
from loopwright.artifact.options import CodegenOptions  # noqa: E402
from loopwright.compiler.build import compile_schedule  # noqa: E402


def undefined_symbols(data):
    """By the ELF reader of the code generator's tests."""
    path = Path(__file__).parents[1] / "codegen" / "emit_programs.py"
    spec = importlib.util.spec_from_file_location("emit_programs", path)
    programs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(programs)
    return programs.undefined_symbols(data)


def matmul(width):
    n, k, m = 37, 24, 45
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    panels = te.compute(
        (-(-m // width), k, width),
        lambda p, q, j: te.if_then_else(p * width + j < m, B[q, p * width + j], 0.0),
        name="panels",
    )
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * panels[j // width, r, j % width], axis=r), name="C")
    s = lw.create_schedule(C)
    copy = s.cache_read(A, "local", [C])
    io, jo, ii, ji = s[C].tile(*C.op.axis, 6, width)
    ro, ri = s[C].split(r, factor=8)
    s[C].reorder(ro, io, jo, ri, ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[C].parallel(io)
    s[copy].compute_at(s[C], io)
    return s, [A, B, C]


def chain(width):
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    T = te.compute((n,), lambda i: te.tanh(X[i] * 0.5 + 1.0), name="T")
    Y = te.compute((n,), lambda i: te.maximum(T[i], 0.25) * X[i], name="Y")
    s = lw.create_schedule(Y)
    s[T].compute_inline()
    outer, inner = s[Y].split(Y.op.axis[0], factor=width)
    s[Y].vectorize(inner)
    s[Y].parallel(outer)
    return s, [X, Y]


def softmax(width):
    n, m = 9, 70
    X = te.placeholder((n, m), name="X")
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="q")
    peak = te.compute((n,), lambda i: te.max(X[i, k], axis=k), name="peak")
    E = te.compute((n, m), lambda i, j: te.exp(X[i, j] - peak[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(E[i, q], axis=q), name="total")
    Y = te.compute((n, m), lambda i, j: E[i, j] / total[i], name="Y")
    s = lw.create_schedule(Y)
    i, j = Y.op.axis
    _, inner = s[Y].split(j, factor=width)
    s[Y].vectorize(inner)
    s[Y].parallel(i)
    for stage in (total, E, peak):
        s[stage].compute_at(s[Y], i)
    _, lanes = s[E].split(E.op.axis[1], factor=width)
    s[E].vectorize(lanes)
    return s, [X, Y]


def conv2d(width):
    channels, filters, h, w = 3, 8, 11, 13
    X, W = te.placeholder((channels, h, w), name="X"), te.placeholder((filters, channels, 3, 3), name="W")
    P = te.compute(
        (channels, h + 2, w + 2),
        lambda c, y, x: te.if_then_else(te.all(y >= 1, y < h + 1, x >= 1, x < w + 1), X[c, y - 1, x - 1], 0.0),
        name="P",
    )
    c, u, v = (te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "c"), (3, "u"), (3, "v")))
    Y = te.compute(
        (filters, h, w), lambda f, y, x: te.sum(P[c, y + u, x + v] * W[f, c, u, v], axis=(c, u, v)), name="Y"
    )
    s = lw.create_schedule(Y)
    f, y, x = Y.op.axis
    fo, fi = s[Y].split(f, factor=4)
    xo, xi = s[Y].split(x, factor=width)
    s[Y].reorder(fo, y, xo, c, u, v, fi, xi)
    s[Y].vectorize(xi)
    s[Y].unroll(fi)
    s[Y].parallel(fo)
    return s, [X, W, Y]


def digits(width):
    n, features = 29, 10
    X = te.placeholder((n, features), name="X")
    f, c = te.reduce_axis((0, features), name="f"), te.reduce_axis((0, n), name="c")
    D = te.compute((n, n), lambda i, q: te.sum((X[i, f] - X[q, f]) * (X[i, f] - X[q, f]), axis=f), name="D")
    value, where = te.compute(
        (n,), lambda q: te.argmin(te.select(c == q, float("inf"), D[c, q]), axis=c, index_dtype="int32"), name="near"
    )
    s = lw.create_schedule([value, where])
    outer, inner = s[value].split(value.op.axis[0], factor=width)
    co, ci = s[value].split(c, factor=4)
    s[value].reorder(outer, co, ci, inner)
    s[value].vectorize(inner)
    s[value].unroll(ci)
    s[value].parallel(outer)
    s[D].compute_at(s[value], co)
    return s, [X, value, where]


def default(width):
    """All kinds of stages, by the default schedule; small floats, integers and library-prone operations among them."""
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n, m), "float16", name="A"), te.placeholder((m,), "int8", name="B")
    C = te.compute((n, m), lambda i, j: te.exp(A[i, j]) * te.cast(B[j] // 3, "float16"), name="C")
    D = te.compute((n, m), lambda i, j: te.cast(te.floor(te.cast(C[i, j], "float64")), "bfloat16"), name="D")
    r = te.reduce_axis((0, m), name="r")
    E = te.compute((n,), lambda i: te.prod(te.cast(D[i, r], "float32"), axis=r), name="E")
    return lw.default_schedule([D, E]), [A, B, D, E]


def digest(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def main(spec):
    target = lw.resolve_target(spec)
    found = {}
    for make in (matmul, chain, softmax, conv2d, digits, default):
        s, args = make(target.lanes("float32") * (2 if make is matmul else 1))
        made = compile_schedule(s, args, target, make.__name__, CodegenOptions())
        uncached = compile_schedule(s, args, target, make.__name__, CodegenOptions(cache=False))
        found[make.__name__] = {
            "undefined": undefined_symbols(made.code.object),
            "schedule": digest(str(s)),
            "loop_ir": digest(str(made.func)),
            "llvm_ir": digest(made.code.llvm_ir),
            "llvm_ir_optimized": digest(made.code.llvm_ir_optimized),
            "object": digest(made.code.object),
            "object_uncached": digest(uncached.code.object),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
