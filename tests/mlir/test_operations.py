"""Each operation, cast and intrinsic on each dtype: MLIR computes what the interpreter says, also at the borders of a
dtype, where operations of MLIR by themselves are undefined."""

import mlir_programs as programs
import mlir_tools as tools
import numpy as np

import loopwright as lw
from loopwright.base.dtype import dtype
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Cast, Load, Ramp
from loopwright.ir.intrinsics import call
from loopwright.ir.stmt import For, PrimFunc, Store, seq

emit = programs.load(programs.TESTS / "codegen" / "emit_programs.py")
BORDERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-8, -1e-8, 1e9, -1e9, 0.5, 300.5, -300.5, 1.5, 2.5]


def numbers(kind, rng):
    element = dtype(kind).to_numpy()
    if kind in emit.FLOATS:
        made = np.concatenate([BORDERS, rng.normal(0, 3, 64 - len(BORDERS))])
        with np.errstate(over="ignore"):
            return made.astype(element)
    low, high = np.iinfo(element).min, np.iinfo(element).max
    made = rng.integers(low, high, 64, dtype=element, endpoint=True)
    made[::4] = rng.integers(max(low, -9), 9, 16)
    made[:6] = [low, high, 0, 1, high, low]
    return made


def close(found, wanted, atol=1e-6):
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
    else:
        rounding = {"float16": 4e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}[wanted.dtype.name]
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=rounding, atol=atol)


@tools.needs_mlir
def test_every_operation_on_every_dtype(tmp_path):
    modules, arguments, expected = {}, {}, {}
    rng = np.random.default_rng(0)
    for kind in (*emit.INTS, *emit.FLOATS):
        lanes = 1 if kind in ("uint16", "int64") else 8
        func = emit.elementwise("f", kind, lanes, emit.makers_of(kind, lanes))
        title = f"f:{kind}x{lanes}"
        modules[title] = lw.emit_mlir(func, precision="strict")
        a, b = numbers(kind, rng), rng.permutation(numbers(kind, rng))
        arguments[title] = [a, b, *(np.zeros(64, o.dtype.to_numpy()) for o in func.buffers[2:])]
        expected[title] = func, [x.copy() for x in arguments[title]]
    check(modules, arguments, expected, tmp_path)


def check(modules, arguments, expected, folder, atol=1e-6):
    results = tools.run_all(modules, arguments, folder)
    for title, (func, arrays) in expected.items():
        with np.errstate(all="ignore"):
            lw.interpret(func)(*arrays)
        for buffer, found, wanted in zip(func.buffers, results[title], arrays, strict=True):
            try:
                close(found, wanted, atol)
            except AssertionError as error:
                raise AssertionError(f"{title}, {buffer.name}: {error}\n{func}") from None


def values_of(name, kinds, makers):
    """A function that stores, for each maker, what it makes of vectors of arrays of the given dtypes."""
    i = index_var("i")
    at = Ramp(i * 8, const(1, "index"), 8)
    given = [make_buffer(f"I{k}", [64], kind) for k, kind in enumerate(kinds)]
    values = [make(*(Load(buffer, (at,)) for buffer in given)) for make in makers]
    outs = [make_buffer(f"O{k}", [64], value.dtype.element) for k, value in enumerate(values)]
    stores = [Store(out, (at,), value) for out, value in zip(outs, values, strict=True)]
    body = For(i, const(0, "index"), const(8, "index"), "serial", seq(*stores))
    return PrimFunc(name, (*given, *outs), body, tuple(outs))


@tools.needs_mlir
def test_signed_and_unsigned_integers_in_one_function(tmp_path):
    """They have one type in MLIR, and must not share what tells them apart."""
    to = dtype("bfloat16").with_lanes(8)
    func = values_of("f", ("int32", "uint32"), [lambda a, b: Cast(to, a), lambda a, b: Cast(to, b)])
    rng = np.random.default_rng(0)
    given = [rng.integers(-(2**31), 0, 64).astype("int32"), rng.integers(2**31, 2**32, 64).astype("uint32")]
    arrays = [*given, *(np.zeros(64, o.dtype.to_numpy()) for o in func.outputs)]
    modules = {"f": lw.emit_mlir(func)}
    check(modules, {"f": arrays}, {"f": (func, [a.copy() for a in arrays])}, tmp_path, atol=0)


@tools.needs_mlir
def test_functions_that_are_small_where_their_argument_is(tmp_path):
    """Tolerances are relative: exp(x) - 1 and log(1 + x), which passes of MLIR make, are 0 here."""
    small, modules, arguments, expected = np.geomspace(1e-12, 1e-3, 32), {}, {}, {}
    for kind in ("float32", "float64"):
        title = f"f:{kind}"
        names = ("expm1", "log1p", "sinh", "tanh", "asin")
        func = values_of("f", (kind,), [lambda x, name=name: call(name, x) for name in names])
        modules[title] = lw.emit_mlir(func)
        given = np.concatenate([small, -small]).astype(kind)
        arguments[title] = [given, *(np.zeros(64, kind) for _ in func.outputs)]
        expected[title] = func, [a.copy() for a in arguments[title]]
    check(modules, arguments, expected, tmp_path, atol=0)
