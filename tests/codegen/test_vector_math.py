"""Intrinsics as machine code, on the plainest and the newest targets, against numpy in a wider format.

Everything is compiled in forks of a child (``benchmarks/elementwise.py``): LLVM aborts on what it cannot select.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import math
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.host import resolve_target
from loopwright.ir.intrinsics import INTRINSICS

# Overflow, division by 0 and NaN are what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
_spec = importlib.util.spec_from_file_location("ulps", BENCHMARKS / "ulps.py")
ulps = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ulps)

TARGETS = ["x86-64", "x86-64-v3", "native"]
KINDS = {"float32": np.float32, "float64": np.float64}
# What docs/accuracy.md promises, in ulp.
LIMITS = {"float32": {"sigmoid": 4.0}, "float64": {"sigmoid": 3.0}}
ROUNDING = {"abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
PREDICATES = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30]


@pytest.fixture(scope="module")
def child(tmp_path_factory) -> Iterator[Callable[[Path, str, list[str]], None]]:
    """``child(folder, target, jobs)`` has a fork of one process do some jobs, which asserts that it ended well."""
    told = tmp_path_factory.mktemp("child") / "stderr"
    command = [sys.executable, str(BENCHMARKS / "elementwise.py")]
    pipe = subprocess.PIPE
    with (
        told.open("w") as errors,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):

        def run(folder: Path, target: str, jobs: list[str]) -> None:
            process.stdin.write(f"{json.dumps([str(folder), target, jobs])}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "0\n", f"{target}: {told.read_text()[-3000:]}"

        yield run


@pytest.fixture(params=TARGETS)
def compute(request, child, tmp_path) -> Callable[..., dict[str, np.ndarray]]:
    """``compute({"exp:float32x8": (x,), …})`` → the results by job, from one fork."""
    if request.param == "x86-64-v3" and not resolve_target("native").has("avx2", "fma"):
        pytest.skip("this machine cannot run x86-64-v3")

    def run(jobs: dict[str, tuple[np.ndarray, ...]]) -> dict[str, np.ndarray]:
        for job, arrays in jobs.items():
            np.savez(tmp_path / f"{job}.npz", *arrays)
        child(tmp_path, request.param, list(jobs))
        return {job: np.load(tmp_path / f"{job}.npy") for job in jobs}

    return run


def whole_blocks(x: np.ndarray, lanes: int = 16) -> np.ndarray:
    return np.resize(x, -(-x.size // lanes) * lanes)


def pairs(kind: type) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of binary functions: all pairs of specials, whole numbers and halves, and a shuffled sample."""
    random = np.random.default_rng(7)
    special = np.array(SPECIAL, kind)
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    x = ulps.sample(kind)
    base = np.exp(random.uniform(-3, 3, 20000)).astype(kind)
    exponent = random.uniform(-30, 30, 20000).astype(kind)
    negative, whole = -base[:4096], np.rint(exponent[:4096])
    return (
        whole_blocks(np.concatenate([a, random.permutation(x), base, negative])),
        whole_blocks(np.concatenate([b, random.permutation(x), exponent, whole])),
    )


def exact_values(name: str, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    return ulps.EXACT[name](*(a.astype(np.longdouble) for a in arrays))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no format wider than float64 to compare with")
@pytest.mark.parametrize("kind", KINDS)
def test_functions_stay_within_their_stated_error(compute, kind):
    x = whole_blocks(ulps.sample(KINDS[kind]))
    lanes = "x16" if kind == "float32" else "x8"
    jobs = {f"{name}:{kind}{lanes}": pairs(KINDS[kind]) if name == "pow" else (x,) for name in ulps.EXACT}
    results = compute(jobs)
    for job, arrays in jobs.items():
        name = job.split(":")[0]
        distance = ulps.errors(results[job], exact_values(name, arrays))
        worst = int(np.argmax(distance))
        at = [a[worst] for a in arrays]
        limit = LIMITS[kind].get(name, 2.0)
        assert distance[worst] <= limit, f"{job}{at} = {results[job][worst]}, off by {distance[worst]} ulp"


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_and_classification_are_exact(compute, kind):
    halves = (np.arange(-40, 40) / 4).astype(KINDS[kind])
    near_whole = (np.ldexp(1.0, np.finfo(KINDS[kind]).nmant) + np.arange(-8, 8) / 2).astype(KINDS[kind])
    x = whole_blocks(np.concatenate([ulps.sample(KINDS[kind]), halves, near_whole, -near_whole]))
    results = compute({f"{name}:{kind}x8": (x,) for name in (*ROUNDING, *PREDICATES)})
    for name, function in ROUNDING.items():
        got, expected = results[f"{name}:{kind}x8"], function(x)
        np.testing.assert_array_equal(got, expected, err_msg=name)
        number = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number], err_msg=f"sign of {name}")
    for name, function in PREDICATES.items():
        np.testing.assert_array_equal(results[f"{name}:{kind}x8"].astype(bool), function(x), err_msg=name)


def _round_once(value: Fraction, kind: type) -> float:
    """A fraction rounded to nearest even, by trying the neighbours of an approximation."""
    guess = kind(float(value))
    near = [np.nextafter(guess, kind(-np.inf)), guess, np.nextafter(guess, kind(np.inf))]
    pattern = np.uint32 if kind is np.float32 else np.uint64
    return min(
        (v for v in near if np.isfinite(v)), key=lambda v: (abs(Fraction(float(v)) - value), v.view(pattern) & 1)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once(compute, kind):
    dtype = KINDS[kind]
    random = np.random.default_rng(11)
    count = 800
    bits = np.finfo(dtype).nmant
    a, b = (np.ldexp(1 + random.integers(0, 1 << bits, count) / 2.0**bits, 0).astype(dtype) for _ in range(2))
    # Addends that nearly cancel the product, that are half an ulp of it or a trifle more, and any.
    cancel = -(a * b)
    tie = np.ldexp(dtype(1), random.integers(-bits - 4, -bits + 2, count)).astype(dtype)
    trifle = tie * (1 + np.finfo(dtype).eps)
    tiny = (a * dtype(np.finfo(dtype).tiny)).astype(dtype)
    free = random.normal(size=count).astype(dtype)
    addend = np.concatenate([cancel, tie, trifle, -tie, free, tiny]).astype(dtype)
    first = np.concatenate([np.tile(a, 5), a * dtype(np.finfo(dtype).tiny)]).astype(dtype)
    second = np.concatenate([np.tile(b, 5), b * dtype(0.25)]).astype(dtype)
    (got,) = compute({f"fma:{kind}x8": (first, second, addend)}).values()
    for x, y, z, result in zip(first, second, addend, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert result == _round_once(exact, dtype), (x, y, z)


def test_fma_of_infinities_and_nan(compute):
    a, b, c = (whole_blocks(g.ravel()) for g in np.meshgrid(*[np.array(SPECIAL[:14], np.float32)] * 3))
    (got,) = compute({"fma:float32x8": (a, b, c)}).values()
    expected = (a.astype(np.float64) * b + c).astype(np.float32)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(got[special], expected[special])


def test_integers(compute):
    jobs = {}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        info = np.iinfo(name)
        x = np.array([info.min, info.max, 0, 1, info.max // 3, info.max // 5, info.min // 7, info.max - 1], name)
        jobs |= {f"abs:{name}x8": (x,), f"popcount:{name}x8": (x,)}
    results = compute(jobs)
    for job, (x,) in jobs.items():
        ones = [(int(v) % (1 << 8 * x.itemsize)).bit_count() for v in x]
        expected = np.abs(x) if job.startswith("abs") else np.array(ones, x.dtype)
        np.testing.assert_array_equal(results[job], expected, err_msg=job)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_formats_are_rounded_once_from_float32(compute, kind):
    dtype = np.dtype(np.float16) if kind == "float16" else np.dtype(ml_dtypes.bfloat16)
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(dtype).astype(np.float64)
    names = ["exp", "log", "tanh", "erf", "sqrt", "sin", "floor"]
    jobs = {f"{name}:{kind}x8": (bits,) for name in names} | {f"isnan:{kind}x8": (bits,)}
    results = compute(jobs)
    np.testing.assert_array_equal(results.pop(f"isnan:{kind}x8").astype(bool), np.isnan(x))
    for name in names:
        got = results[f"{name}:{kind}x8"].view(dtype)
        exact = np.floor(x) if name == "floor" else ulps.EXACT[name](x)
        expected = exact.astype(np.float32).astype(dtype)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        # float32 is off by an ulp or so: it may fall on the other side of a tie between two numbers, rarely.
        assert np.count_nonzero(~same) <= 16, (name, x[~same][:9], got[~same][:9], expected[~same][:9])
        near = (got.view(np.int16) - expected.view(np.int16))[~same]
        assert np.all(np.abs(near) <= 1), name


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_fma_of_half_formats_rounds_once(compute, kind):
    dtype = np.dtype(np.float16) if kind == "float16" else np.dtype(ml_dtypes.bfloat16)
    random = np.random.default_rng(5)
    a, b, c = (random.integers(0, 1 << 16, 1 << 14, dtype=np.uint16) for _ in range(3))
    # Every other addend lies near half an ulp of the product.
    product = a.view(dtype).astype(np.float32) * b.view(dtype).astype(np.float32)
    c[::2] = (product * np.float32(2.0 ** -(9 if kind == "bfloat16" else 12))).astype(dtype).view(np.uint16)[::2]
    (got,) = compute({f"fma:{kind}x8": (a, b, c)}).values()
    x, y, z = (v.view(dtype).astype(np.longdouble) for v in (a, b, c))
    total = x * y + z
    exact = (total - x * y == z) & (total - z == x * y) & np.isfinite(total)
    assert np.count_nonzero(exact) > 1000
    for value, result in zip(total[exact], got.view(dtype)[exact], strict=True):
        assert result == _nearest_half(float(value), dtype), value


def _nearest_half(value: float, dtype: np.dtype) -> np.generic:
    """A float64 rounded once: to a multiple of the format's spacing at its size."""
    info = ml_dtypes.finfo(dtype)
    spacing = 2.0 ** (max(np.frexp(value)[1] - 1, info.minexp) - info.nmant)
    return dtype.type(np.rint(value / spacing) * spacing)


@pytest.mark.parametrize("lanes", ["", "x2", "x3", "x5"])
def test_scalars_and_odd_vectors_give_the_same_as_wide_ones(compute, lanes):
    x = np.resize(ulps.sample(np.float64), 240)
    names = ("exp", "sin", "pow", "fma", "round", "log1p")
    jobs = {f"{n}:float64{k}": (x,) * INTRINSICS[n].arity for n in names for k in {lanes, "x8"}}
    results = compute(jobs)
    for name in names:
        np.testing.assert_array_equal(results[f"{name}:float64{lanes}"], results[f"{name}:float64x8"], err_msg=name)


UNDERFLOW = 0x10
"""The flag of the processor's arithmetic, as C's fenv.h has it on x86-64."""


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="flags are read as on x86-64")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid"])
def test_a_result_that_is_0_comes_without_an_underflow(name, kind, target):
    """Some cores take a hundred cycles for a product that underflows, and masked scores of attention are so small."""
    resolved = resolve_target(target)
    if not resolve_target("native").features >= resolved.features:
        pytest.skip(f"this machine cannot run {target}")
    zero, denormal = (-1076.0, -1060.3) if kind == "float64" else (-151.0, -140.3)
    if name != "exp2":
        denormal *= math.log(2)
    x = te.placeholder((32,), kind, name="x")
    y = te.compute(x.shape, lambda i: getattr(te, name)(x[i]), name="y")
    kernel = lw.build(lw.default_schedule([y], resolved), [x, y], target=resolved)
    flags = ctypes.CDLL("libm.so.6")
    for value, raised in ((zero, 0), (-1e30, 0), (-np.inf, 0), (denormal, UNDERFLOW)):
        given, found = np.full(32, value, kind), np.ones(32, kind)
        flags.feclearexcept(UNDERFLOW)
        kernel(given, found)
        assert flags.fetestexcept(UNDERFLOW) == raised, f"{name}({value})"
        assert (found == 0).all() == (not raised)


def undefined_symbols(image: bytes) -> set[str]:
    """Names in the symbol table of a 64-bit little-endian ELF object that belong to no section."""
    table_at, entry_size, count = (*struct.unpack_from("<Q", image, 40), *struct.unpack_from("<HH", image, 58))
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table_at + i * entry_size) for i in range(count)]
    symbols = next(s for s in sections if s[1] == 2)
    strings = sections[symbols[6]][4]
    names = set()
    for at in range(symbols[4] + 24, symbols[4] + symbols[5], 24):
        name, _, _, section = struct.unpack_from("<IBBH", image, at)
        if section == 0:
            names.add(image[strings + name : image.index(b"\0", strings + name)].decode())
    return names


@pytest.mark.parametrize(
    "target",
    [
        "x86-64",
        pytest.param("x86-64-v2", marks=pytest.mark.slow),
        "x86-64-v3",
        pytest.param("x86-64-v4", marks=pytest.mark.slow),
        "sapphirerapids",
        "llvm -mtriple=aarch64-unknown-linux-gnu",
    ],
)
def test_no_target_needs_a_library(child, target, tmp_path):
    floats = ["float32x8", "float64x4", "float16x8", "bfloat16"]
    jobs = [f"{n}:{k}" for n, i in INTRINSICS.items() if i.domain in ("float", "number") for k in floats]
    jobs += [f"{n}:{k}" for n in ("abs", "popcount") for k in ("int32x8", "int64x4", "uint8x16", "int64")]
    child(tmp_path, target, jobs)
    for job in jobs:
        # The only exception: float64 fma, where the hardware has none.
        allowed = {"fma"} if job == "fma:float64x4" and target in ("x86-64", "x86-64-v2") else set()
        assert undefined_symbols((tmp_path / f"{job}.o").read_bytes()) == allowed, job


@pytest.mark.parametrize(("kind", "functions"), [("float32", 2), ("float64", 1)])
def test_rare_angles_are_reduced_by_functions_that_a_module_has_once(kind, functions):
    """Float32 ones have one that computes in float64, which calls the other; the rest of the loop has a tile too."""
    x = te.placeholder((1000,), kind, name="x")
    y = te.compute(x.shape, lambda i: te.cos(x[i]), name="y")
    target = lw.resolve_target("x86-64-v4")
    kernel = lw.build(lw.default_schedule([y], target), [x, y], target=target)
    assert kernel.llvm_ir.count(" cold noinline ") == functions
    assert kernel.llvm_ir.count("\n") < 1200
