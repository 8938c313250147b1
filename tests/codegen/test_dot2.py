"""The intrinsics pair and dot2: products of two bfloat16, on every target; the instruction where the target has it."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import BFLOAT16, INT32
from loopwright.ir.intrinsics import evaluate

COUNT = 96
HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("x86-64-v4", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]


def operands():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((COUNT, 2), dtype="float32").astype(ml_dtypes.bfloat16) for _ in "ab")
    a[:4], b[:4] = [[0, -0.0], [np.inf, 1], [np.nan, 1], [1, 3e38]], [[5, 5], [1, 1], [1, 1], [1, 1]]
    return a, b, rng.standard_normal(COUNT, dtype="float32")


def words_of(x):
    return te.compute((COUNT,), lambda i: te.pair(x[i, 0], x[i, 1]), name="words")


def sum_of_products(lanes, target, precision="standard"):
    """A kernel of a dot2 that is added to something, and of one that is not; operands lie as pairs of bfloat16."""
    a, b = (te.placeholder((COUNT, 2), "bfloat16", name=n) for n in "ab")
    total = te.placeholder((COUNT,), "float32", name="total")
    words = [words_of(a), words_of(b)]
    out = te.compute((COUNT,), lambda i: total[i] + te.dot2(words[0][i], words[1][i]), name="out")
    plain = te.compute((COUNT,), lambda i: te.dot2(words[0][i], words[1][i]), name="plain")
    schedule = lw.create_schedule([out, plain])
    for tensor in (*words, out, plain):
        if lanes > 1:
            _, lane = schedule[tensor].split(tensor.op.axis[0], factor=lanes)
            schedule[tensor].vectorize(lane)
    return lw.build(schedule, [a, b, total, out, plain], target=target, name="dots", precision=precision)


def exact(a, b, total):
    wide = (a.astype(np.float64) * b.astype(np.float64)).sum(axis=1)
    return total + wide


@pytest.mark.parametrize("lanes", [1, 3, 4, 16])
@pytest.mark.parametrize("precision", ["standard", "strict"])
@pytest.mark.parametrize("target", RUNNABLE)
def test_native_code_multiplies_pairs(target, precision, lanes):
    a, b, total = operands()
    out, plain = np.empty(COUNT, "float32"), np.empty(COUNT, "float32")
    sum_of_products(lanes, target, precision)(a, b, total, out, plain)
    np.testing.assert_allclose(out, exact(a, b, total), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(plain, exact(a, b, 0), rtol=1e-6, atol=1e-6)


def test_the_interpreter_multiplies_pairs():
    a, b, _ = operands()
    words = [evaluate("pair", BFLOAT16, x[:, 0], x[:, 1]) for x in (a, b)]
    for word, x in zip(words, (a, b), strict=True):
        np.testing.assert_array_equal(word, np.ascontiguousarray(x).view(np.int32)[:, 0])
    np.testing.assert_allclose(evaluate("dot2", INT32, *words), exact(a, b, 0), rtol=1e-6, atol=1e-6)
    assert evaluate("dot2", INT32, words[0][7], words[1][7]).shape == ()


def test_pairs_are_of_bfloat16_and_dot2_of_words():
    with pytest.raises(lw.LoopwrightError, match="pair takes bfloat16 values"):
        te.pair(te.const(1.0, "float32"), te.const(1.0, "float32"))
    with pytest.raises(lw.LoopwrightError, match="dot2 takes int32 values"):
        te.dot2(te.const(1.0, "bfloat16"), te.const(1.0, "bfloat16"))


COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
from test_dot2 import sum_of_products
for target in sys.argv[2:]:
    for precision in ("standard", "strict"):
        for lanes in (1, 3, 4, 8, 16):
            taken = "vdpbf16ps" in sum_of_products(lanes, target, precision).assembly
            print(target, precision, lanes, taken, sep="; ", flush=True)
"""

LANES_WITH_INSTRUCTION = {
    "x86-64": (), "x86-64-v4": (), "cooperlake": (4, 8, 16), "znver4": (4, 8, 16),
    "llvm -mtriple=aarch64-unknown-linux-gnu": (),
}  # fmt: skip


def test_the_instruction_is_taken_where_the_target_has_it_but_not_in_strict_precision(request):
    """In a child, since LLVM ends the process where it cannot select an instruction: one for all targets."""
    command = [sys.executable, "-c", COMPILE, str(request.path.parent), *LANES_WITH_INSTRUCTION]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = [tuple(line.split("; ")) for line in done.stdout.splitlines()]
    assert found == [
        (target, precision, str(lanes), str(lanes in taken and precision == "standard"))
        for target, taken in LANES_WITH_INSTRUCTION.items()
        for precision in ("standard", "strict")
        for lanes in (1, 3, 4, 8, 16)
    ]
