"""Object code for targets near and far: it compiles, needs no library but a few C functions, and is reproducible."""

import json
import os
import subprocess
import sys
from pathlib import Path

import described_host
import llvmlite.binding as llvm
import needed_tools
import pytest

from loopwright.base.errors import TargetError
from loopwright.base.target import Target
from loopwright.codegen.abi import EXTERNAL_SYMBOLS
from loopwright.codegen.cpuid import vector_path_bits
from loopwright.codegen.features import LEVELS, implied_features, probed_features
from loopwright.codegen.host import fma_per_cycle, host_target, process_triple, resolve_target
from loopwright.codegen.machine import feature_string

LINUX_ARM = "llvm -mtriple=aarch64-unknown-linux-gnu"


def emit(spec, wanted, **environment):
    script = Path(__file__).with_name("emit_programs.py")
    run = subprocess.run(
        [sys.executable, str(script), spec, wanted],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, f"{spec}: {run.stderr[-3000:]}"
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    "spec",
    [
        "x86-64",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("x86-64-v3", "skylake-avx512")),
        pytest.param(LINUX_ARM, marks=pytest.mark.slow),
        f"{LINUX_ARM} -mcpu=neoverse-v1",
        pytest.param("llvm -mtriple=riscv64-unknown-linux-gnu", marks=pytest.mark.slow),
    ],
)
def test_objects_need_no_library(spec):
    missing = {name: sorted(set(symbols) - set(EXTERNAL_SYMBOLS)) for name, symbols in emit(spec, "symbols").items()}
    assert {name: symbols for name, symbols in missing.items() if symbols} == {}


def test_text_does_not_depend_on_the_hash_seed():
    first, second = (emit("x86-64-v3", "text", PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second


@pytest.mark.parametrize(
    ("spec", "has", "lacks"),
    [
        ("x86-64", [], ["sse3", "avx", "fma"]),
        ("x86-64-v2", ["sse4.2", "popcnt"], ["avx"]),
        ("x86-64-v3", ["avx2", "fma", "f16c", "bmi2"], ["avx512f"]),
        ("x86-64-v4", ["avx512f", "avx512bw", "avx512vl"], ["avx512vnni"]),
        ("skylake-avx512", ["avx512dq", "fma"], ["avx512vnni", "avx512bf16"]),
        ("znver4", ["avx512bf16", "avx512vnni"], ["avx512fp16", "amx-tile"]),
        ("sapphirerapids", ["avx512fp16", "amx-tile", "avxvnni"], []),
        ("llvm -mcpu=skylake-avx512 -mattr=-avx512f", ["avx2"], ["avx512f", "avx512bw"]),
        ("llvm -mcpu=x86-64 -mattr=+avx512bw", ["avx2", "avx512f", "fma"], ["avx512vl"]),
        (LINUX_ARM, ["neon"], ["sve", "fullfp16"]),
        (f"{LINUX_ARM} -mcpu=neoverse-v1", ["neon", "sve", "bf16", "i8mm"], ["sve2"]),
        ("llvm -mtriple=riscv64-unknown-linux-gnu", ["m", "d"], ["v"]),
    ],
)
def test_a_cpu_name_implies_its_features(spec, has, lacks):
    target = resolve_target(spec)
    assert target.features >= set(has)
    assert not target.features & set(lacks)


def test_a_target_spelled_out_is_the_same_target():
    by_hand = "llvm -mcpu=x86-64 -mattr=+avx2,+fma -threads=4 -libs=cblas"
    for spec in ("x86-64-v3", f"{LINUX_ARM} -mcpu=neoverse-n1", by_hand):
        target = resolve_target(spec)
        assert resolve_target(str(target)) == target


def test_the_host_target_has_what_the_machine_has():
    host = host_target()
    assert resolve_target(None) == resolve_target("native") == host
    assert host.l1_bytes >= 16 * 1024
    assert host.l2_bytes > host.l1_bytes
    assert host.fma_per_cycle in (1, 2)
    assert resolve_target("llvm -mattr=+sse3").fma_per_cycle == host.fma_per_cycle
    flags = Path("/proc/cpuinfo")
    if flags.exists() and host.arch == "x86_64" and described_host.HOST not in os.environ:
        words = set(flags.read_text().split())
        assert ("avx2" in words) == host.has("avx2")
        assert ("avx512f" in words) == host.has("avx512f")
    assert resolve_target("llvm -threads=3").threads == 3
    assert resolve_target(host) is host


@pytest.mark.parametrize(
    ("name", "path", "rate"),
    [
        ("x86-64-v4", None, 2),  # Intel's say nothing
        ("x86-64-v4", 512, 2),
        ("x86-64-v4", 256, 1),  # Zen 4
        ("x86-64-v3", 256, 2),
        ("x86-64-v3", 128, 1),  # Zen 1
        ("x86-64", 512, 2),
        (f"{LINUX_ARM} -mcpu=neoverse-v1", 64, 2),  # not asked
    ],
)
def test_vectors_wider_than_the_path_take_twice_as_long(name, path, rate):
    assert fma_per_cycle(resolve_target(name), path) == rate


@pytest.mark.skipif(host_target().arch != "x86_64", reason="has no CPUID")
def test_the_processor_says_how_wide_its_path_is_or_nothing():
    maker = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    bits = vector_path_bits()
    assert bits in (None, 128, 256, 512)
    if "GenuineIntel" in maker:
        assert bits is None


def test_features_that_the_cpu_implies_but_the_target_lacks_are_switched_off():
    target = resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -mattr=-avx512bw")
    assert "-avx512bw" in feature_string(target).split(",")
    assert feature_string(resolve_target("skylake-avx512")).endswith(",-prefer-256-bit")
    assert "prefer" not in feature_string(resolve_target("x86-64-v3"))
    masked = resolve_target(
        "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr=-sse4a"
    )  # as virtual machines do
    assert resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4").has("sse4a")
    assert "-sse4a" in feature_string(masked).split(",")
    bare = Target("x86_64-unknown-linux-gnu", "x86-64-v4")
    assert implied_features(bare.triple, "x86-64-v4", feature_string(bare)) == frozenset()


@pytest.mark.parametrize("level", LEVELS)
def test_levels_have_the_features_that_llvm_says(level):
    assert LEVELS[level] == probed_features("x86_64-unknown-linux-gnu", level, "")


def test_the_triple_of_this_process_is_the_one_that_llvm_says():
    assert process_triple() == llvm.get_process_triple()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("skylake-avx51", "no cpu 'skylake-avx51' .* did you mean skylake-avx512"),
        ("llvm -mcpu=x86-64 -mattr=+avx22", r"no feature 'avx22' .* did you mean avx2"),
        ("llvm -mattr=+zzzzzzzzzz", "no feature 'zzzzzzzzzz'"),
        ("llvm -mtriple=z8001-none -mcpu=z8001", "no target of triple 'z8001-none'"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=skylake", "no cpu 'skylake'"),
        (
            "llvm -mtriple=riscv64-linux-gnu -mattr=+zvl256b",
            r"cannot compile for generic-rv64 .* 'zvl\*b' requires 'v'",
        ),
        ("llvm -mcpu=x86-64 -mattr=-64bit", "cannot compile for x86-64 with -mattr=-64bit: 64-bit code requested"),
        ("", "the target is empty"),
    ],
)
def test_unknown_names_are_errors_with_suggestions(spec, message):
    with pytest.raises(TargetError, match=message):
        resolve_target(spec)


def test_a_library_that_is_named_twice_counts_once():
    needed_tools.module("scipy")
    once, twice = (resolve_target(f"llvm -mcpu=x86-64 -libs={libs}") for libs in ("cblas", "cblas,cblas"))
    assert once == twice
    assert str(once) == str(twice)
