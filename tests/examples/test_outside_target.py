"""A target that another distribution adds: installed, found by name, compiled for; and distributions that fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.base import target_kind

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "outside_target"
PROGRAM = """
import json, sys
import numpy as np
import loopwright as lw
from loopwright.graph.node import Tuple

# As many functions as are compiled in processes of their own.
rng = np.random.default_rng(0)
x = lw.var("x", (2, 24))
weights = [lw.const(rng.standard_normal((24, 24), dtype="float32")) for _ in range(2)]
y = lw.nn.relu(lw.nn.dense(lw.nn.trilu(x), weights[0]))
y = lw.nn.softmax(lw.nn.dense(y, weights[1]))
wide = lw.nn.sum(lw.nn.dense(lw.nn.concatenate([y] * 8, axis=0), weights[0]), 1)
narrow = lw.nn.max(lw.nn.transpose(y), 1)
library = lw.compile(lw.Function([x], Tuple((y, wide, narrow))), target=sys.argv[1], jobs=2)

array = rng.standard_normal((2, 24), dtype="float32")
found = lw.Engine(library)([array])
a, b = (w.value for w in weights)
z = np.maximum(np.triu(array) @ a.T, 0) @ b.T
z = np.exp(z - z.max(1, keepdims=True)); z /= z.sum(1, keepdims=True)
for value, wanted in zip(found, (z, (np.concatenate([z] * 8) @ a.T).sum(1), z.max(0)), strict=True):
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)
target = lw.resolve_target(sys.argv[1])
print(json.dumps({
    "functions": len(library.functions),
    "chosen": sorted(c.implementation for f in library.functions for c in f.choices),
    "target": [str(target), target.provider, target.keys, target.l1_bytes],
    "again": lw.resolve_target(str(target)) == target,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    sources = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "edge9_target.py"):  # a build leaves files beside its sources
        (sources / name).write_bytes((EXAMPLE / name).read_bytes())
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", *options, str(sources)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(folder, tmp_path, target):
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "LOOPWRIGHT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, target]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_model_is_compiled_for_a_target_from_outside(installed, tmp_path):
    for target in ("edge9", "edge9 -threads=1"):
        found = run(installed, tmp_path, target)
        assert found["functions"] >= 6  # enough to be compiled in child processes, which must know the target too
        assert found["chosen"].count("dense.edge9") == 2
        assert "trilu.edge9" in found["chosen"]
        assert "packed_matmul.blocked" in found["chosen"]  # 16 rows: what other targets have
        line, provider, keys, l1_bytes = found["target"]
        assert line.startswith("edge9 -mtriple=")
        assert (provider, keys[0], l1_bytes) == ("edge9-target 1.0", "edge9", 16 * 1024)
        assert found["again"]


def test_other_targets_do_not_meet_its_strategies(installed, tmp_path):
    found = run(installed, tmp_path, "native")
    assert not [name for name in found["chosen"] if "edge9" in name]


# Distributions that fail, made by hand in a folder on the path.


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """``distribution(name, code, kind)`` makes one whose entry point ``kind`` calls ``kind()`` of the code."""
    monkeypatch.setattr(target_kind, "_loaded", {})
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name, code, kind):
        module = f"{name}_{tmp_path.name}".replace("-", "_")
        (tmp_path / f"{module}.py").write_text(f"from loopwright.base.target_kind import TargetKind\n{code}\n")
        info = tmp_path / f"{name}-2.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n")
        (info / "entry_points.txt").write_text(f"[loopwright.targets]\n{kind} = {module}:kind\n")

    return make


def test_a_kind_fills_in_what_a_target_text_leaves_out(distribution):
    distribution(
        "tiny", "def kind(): return TargetKind('tiny', ('tiny', 'small'), 'aarch64-linux-gnu', 'cortex-a55')", "tiny"
    )
    target = lw.resolve_target("tiny")
    assert (target.triple, target.cpu, target.provider) == ("aarch64-linux-gnu", "cortex-a55", "tiny 2.5")
    assert target.keys == ("tiny", "small", "arm", "cpu", "generic")
    assert lw.resolve_target("tiny -mcpu=cortex-a76").cpu == "cortex-a76"
    assert lw.resolve_target(str(target)) == target


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", r"broken 2\.5, which adds the target nine, failed: ZeroDivisionError: division by zero"),
        ("def kind(): raise KeyError('x')", r"broken 2\.5, which adds the target nine, failed: KeyError: 'x'"),
        ("def other(): pass", r"broken 2\.5, which adds the target nine, failed: AttributeError"),
        ("def kind(): return 'nine'", r"broken 2\.5, .*should give a TargetKind, found 'nine'"),
        ("def kind(): return TargetKind('ten', ('ten',))", r"broken 2\.5, .*gives a kind named 'ten'"),
        ("def kind(): return TargetKind('nine', ('nine', 'x86'))", r"broken 2\.5, .*keys of its own, found x86"),
        ("def kind(): return TargetKind('nine', ())", r"broken 2\.5, .*keys of its own, found none"),
        (
            "def kind(): return TargetKind('nine', ('nine',), cpu='z')",
            r"target nine of broken 2\.5: LLVM knows no cpu 'z'",
        ),
    ],
)
def test_a_distribution_that_fails_is_named(distribution, code, message):
    distribution("broken", code, "nine")
    for _ in range(2):
        with pytest.raises(lw.TargetError, match=message):
            lw.resolve_target("nine")


def test_a_distribution_that_fails_does_no_harm_to_other_targets(distribution):
    distribution("broken", "1 / 0", "nine")
    assert lw.resolve_target("x86-64-v3").cpu == "x86-64-v3"


def test_two_distributions_of_one_target_are_named(distribution):
    distribution("first", "", "nine")
    distribution("second", "", "nine")
    with pytest.raises(lw.TargetError, match=r"nine is added by first 2\.5 and by second 2\.5: keep one"):
        lw.resolve_target("nine")


def test_a_target_that_nobody_adds_is_told_with_those_that_are(distribution):
    distribution("tiny", "", "tiny")
    with pytest.raises(lw.TargetError, match=r"'nine -threads=2': options need .*installed distribution adds: tiny"):
        lw.resolve_target("nine -threads=2")
    with pytest.raises(lw.TargetError, match="LLVM knows no cpu 'nine'"):
        lw.resolve_target("nine")


def test_strategies_of_a_target_need_its_distribution():
    lost = lw.Target("x86_64-linux-gnu", "x86-64", keys=("gone", "x86"), kind="gone", provider="gone 1.0")
    with pytest.raises(lw.TargetError, match=r"no installed distribution adds the target gone of gone 1\.0"):
        lw.compile(lw.Function([x := lw.var("x", (4,))], lw.nn.relu(x)), target=lost)
