"""Each operation, cast and intrinsic on each dtype: MLIR computes what the interpreter says, also at the borders of a
dtype, where operations of MLIR by themselves are undefined."""

import sys
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright.ir.dtype import dtype

sys.path.insert(0, str(Path(__file__).parent))
import programs

import tools

emit = programs.load(programs.TESTS / "codegen" / "emit_programs.py")
BORDERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e9, -1e9, 0.5, 300.5, -300.5, 1.5, 2.5]


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


def close(found, wanted):
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
    else:
        rounding = {"float16": 4e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}[wanted.dtype.name]
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=rounding, atol=1e-6)


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
    results = tools.run_all(modules, arguments, tmp_path)
    for title, (func, arrays) in expected.items():
        with np.errstate(all="ignore"):
            lw.interpret(func)(*arrays)
        for buffer, found, wanted in zip(func.buffers, results[title], arrays, strict=True):
            try:
                close(found, wanted)
            except AssertionError as error:
                raise AssertionError(f"{title}, {buffer.name}: {error}\n{func}") from None
