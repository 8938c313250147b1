"""The intrinsic dot4: exact on every target, scalar and vector; the instruction where the target has it."""

import re
import subprocess
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import INT32
from loopwright.ir.intrinsics import evaluate

COUNT = 192
HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v4", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
# Most extreme bytes of either sign at every place, and any.
EDGES = [0x00000000, 0x80808080, 0x7F7F7F7F, 0xFFFFFFFF, 0x000000FF, 0xFF000000, 0x80FF007F, 0x01010101]
PAIRS = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
WORDS = np.concatenate([PAIRS, np.random.default_rng(0).integers(0, 1 << 32, (2, 128))], axis=1).astype(np.uint32)


def by_bytes(total, a, b):
    """The oracle, in int64."""
    a, b = a.view("u1").reshape(-1, 4).astype(np.int64), b.view("i1").reshape(-1, 4).astype(np.int64)
    return (total + (a * b).sum(axis=1)).astype(np.int32)


def sum_of_products(lanes, target):
    """A kernel of a dot4 that is added to something, and of one that is not."""
    a, b, total = (te.placeholder((COUNT,), "int32", name=n) for n in ("a", "b", "total"))
    out = te.compute((COUNT,), lambda i: total[i] + te.dot4(a[i], b[i]), name="out")
    plain = te.compute((COUNT,), lambda i: te.dot4(a[i], b[i]), name="plain")
    schedule = lw.create_schedule([out, plain])
    for tensor in (out, plain):
        if lanes > 1:
            _, lane = schedule[tensor].split(tensor.op.axis[0], factor=lanes)
            schedule[tensor].vectorize(lane)
    return lw.build(schedule, [a, b, total, out, plain], target=target, name="dots")


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 8, 16, 32])
@pytest.mark.parametrize("target", RUNNABLE)
def test_native_code_is_exact(target, lanes):
    a, b = (w.copy().view(np.int32) for w in WORDS)
    total = np.arange(COUNT, dtype=np.int32) * 0x01234567
    out, plain = np.empty(COUNT, np.int32), np.empty(COUNT, np.int32)
    sum_of_products(lanes, target)(a, b, total, out, plain)
    np.testing.assert_array_equal(out, by_bytes(total.astype(np.int64), a, b))
    np.testing.assert_array_equal(plain, by_bytes(0, a, b))


def test_the_interpreter_is_exact():
    a, b = (w.copy().view(np.int32) for w in WORDS)
    np.testing.assert_array_equal(evaluate("dot4", INT32, a, b), by_bytes(0, a, b))
    np.testing.assert_array_equal(evaluate("dot4", INT32, a[3], b[3]), by_bytes(0, a[3:4], b[3:4])[0])


COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
from test_dot4 import sum_of_products
for target in sys.argv[2:]:
    for lanes in (1, 3, 4, 8, 16, 32):
        print(f"of {target}; {lanes}; ", sum_of_products(lanes, target).assembly, flush=True)
"""

LANES_WITH_INSTRUCTION = {
    "x86-64": (), "x86-64-v3": (), "x86-64-v4": (), "cascadelake": (4, 8, 16), "alderlake": (4, 8),
    "llvm -mcpu=x86-64-v4 -mattr=+avx512vnni,-avx512vl": (16,), "llvm -mtriple=aarch64-unknown-linux-gnu": (),
}  # fmt: skip


@pytest.fixture(scope="module")
def assemblies(request):
    """By target and lanes. From a child, since LLVM ends the process where it cannot select an instruction."""
    command = [sys.executable, "-c", COMPILE, str(request.path.parent), *LANES_WITH_INSTRUCTION]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    parts = (part.split("; ", 2) for part in re.split("^of ", done.stdout, flags=re.MULTILINE)[1:])
    return {(target, int(lanes)): assembly for target, lanes, assembly in parts}


@pytest.mark.parametrize("target", LANES_WITH_INSTRUCTION)
@pytest.mark.parametrize("lanes", [1, 3, 4, 8, 16, 32])
def test_the_instruction_is_taken_where_the_target_has_it(target, lanes, assemblies):
    assembly = assemblies[target, lanes]
    assert ("vpdpbusd" in assembly) == (lanes in LANES_WITH_INSTRUCTION[target])
    if target.startswith("x86-64") and lanes in (4, 8, 16):
        assert re.search(r"\bv?pmaddwd", assembly)
