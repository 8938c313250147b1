"""Damaged files are refused by errors of ours: ONNX models and saved libraries, read in child processes.

``LOOPWRIGHT_FUZZ_SEED`` draws other cases. A failure names seed and case: ``check_files.py`` repeats it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import check_files
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import loopwright as lw
from loopwright import te
from loopwright.frontend.stored_weights import parse_without_weights

SCRIPT = Path(__file__).with_name("check_files.py")
SEED = os.environ.get("LOOPWRIGHT_FUZZ_SEED", "0")
BATCH = 500
SECONDS = 600
"""For a batch, which takes a small part of it, on a loaded machine too: then it hangs."""
HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
MODELS = {
    "convolution": """net (float[1, 3, 8, 8] x) => (float[1, 5] y)
        <float[4, 3, 3, 3] w, float[4] b, float[4] s, float[5, 64] v> {
            c = Conv <pads = [1, 1, 1, 1], strides = [2, 2], group = 1> (x, w, b)
            n = BatchNormalization <epsilon = 0.001> (c, s, b, s, s)
            r = Clip (n)
            p = MaxPool <kernel_shape = [2, 2], strides = [1, 1], auto_pad = "SAME_UPPER"> (r)
            f = Flatten <axis = 1> (p)
            y = Gemm <transB = 1, alpha = 0.5> (f, v)
        }""",
    "shapes": """net (float[N, 4, 6] x) => (float[N, 6, 2] y, float[N, 4, 6] z)
        <int64[3] shape = {0, 6, 4}, int64[1] from = {1}, int64[1] to = {3}, int64[1] axes = {2}, int64[1] one = {1}> {
            t = Transpose <perm = [0, 2, 1]> (x)
            r = Reshape (t, shape)
            y = Slice (r, from, to, axes, one)
            own = Shape (x)
            z = Reshape (t, own)
        }""",
    "attention": """net (float[2, 5, 8] x) => (float[2, 5, 8] y) <float[8, 8] w, float scale = {0.35}, float[8] g> {
            q = MatMul (x, w)
            k = Transpose <perm = [0, 2, 1]> (x)
            s = MatMul (q, k)
            m = Mul (s, scale)
            p = Softmax <axis = -1> (m)
            a = MatMul (p, x)
            h = Add (a, x)
            y = LayerNormalization <axis = -1> (h, g)
        }""",
    "stored": """net (float[4, 160] x) => (float[4, 128] y) <float[160, 128] w, float[128] b> {
            m = MatMul (x, w)
            y = Add (m, b)
        }""",
    "integers": """net (float[3, 16] x, int64[2] i) => (int8[2, 16] y, bool[3, 16] b)
        <float step = {0.1}, int8 zero = {3}, float limit = {0.0}> {
            q = QuantizeLinear (x, step, zero)
            y = Gather <axis = 0> (q, i)
            b = Greater (x, limit)
        }""",
}


def parsed(text):
    """A model; values that it declares and does not compute become weights."""
    model = onnx.parser.parse_model(HEAD + text)
    rng = np.random.default_rng(1)
    for value in model.graph.value_info:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(rng.uniform(0.5, 1, shape).astype("f4"), value.name)
        )
    del model.graph.value_info[:]
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Whole files: all are read without an error."""
    found = tmp_path_factory.mktemp("files")
    for name, text in MODELS.items():
        model = parsed(text)
        (found / f"{name}.onnx").write_bytes(model.SerializeToString())
        assert check_files.problem(found / f"{name}.onnx", model.SerializeToString(), compiles=True) is None
    assert parse_without_weights(found / "stored.onnx") is not None
    x = lw.var("x", (te.var("n"), 4))
    library = lw.compile(lw.Function([x], lw.nn.softmax(lw.nn.matmul(x, lw.const(np.ones((4, 3), "f4"))))), jobs=1)
    library.save(found / "product.lwlib")
    lw.load(found / "product.lwlib")
    return found


def check(folder, begin, end):
    """The failures of these cases; a process that dies or hangs fails in the case that it names last."""
    try:
        run = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder), SEED, str(begin), str(end)],
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        output, died = run.stdout, f"ended with code {run.returncode}: {run.stderr[-2000:]}" if run.returncode else None
    except subprocess.TimeoutExpired as late:
        output, died = (late.stdout or b"").decode(), f"was not done after {SECONDS} s"
    lines = [json.loads(line) for line in output.splitlines()]
    failures = [f"case {line['case']}, {line['file']}: {line['error']}" for line in lines if isinstance(line, dict)]
    cases = [line for line in lines if isinstance(line, int)]
    if died is not None:
        failures.append(f"case {cases[-1] if cases else begin}: the process {died}")
    return cases, failures


@pytest.mark.parametrize(
    ("begin", "end"),
    [(0, 300), *(pytest.param(n, n + BATCH, marks=pytest.mark.slow) for n in range(300, 5300, BATCH))],
)
def test_damaged_files_are_refused_by_errors_of_ours(folder, begin, end):
    cases, failures = check(folder, begin, end)
    assert not failures, f"seed {SEED}: " + "\n\n".join(failures[:5])
    assert cases == list(range(begin, end))
