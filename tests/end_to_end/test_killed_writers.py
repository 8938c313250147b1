"""A process that is killed while it saves, exports or caches leaves nothing broken: what is there is whole."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw

SCRIPT = Path(__file__).with_name("kill_writers.py")
ROUNDS = 10


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    x = lw.var("x", (2, 512))
    w = lw.const(np.random.default_rng(3).normal(size=(512, 1024)).astype(np.float32))
    path = tmp_path_factory.mktemp("model") / "model.lwlib"
    lw.compile(lw.Function([x], lw.nn.matmul(x, w)), jobs=1).save(path)
    return path


@pytest.mark.parametrize("what", ["save", "cache", "export"])
def test_what_a_killed_process_leaves_is_whole(library, tmp_path, what):
    run = subprocess.run(
        [sys.executable, str(SCRIPT), what, str(library), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{ROUNDS}\n"
