"""examples/custom_operator.py: one file of less than 90 lines; right, and chosen by condition and by records."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom_operator.py"
USE = """
def expected(x):
    half = x.shape[2] // 2
    angle = np.arange(x.shape[1])[:, None] * 10000.0 ** (-np.arange(half) / half)
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag], -1)


def compiled(heads, *names):
    q = lw.var("q", (heads, 5, 12))
    call = ROPE(q)
    known = [lw.TuningRecord.of(call, "native", n, [1e-3 * (k + 1)]) for k, n in enumerate(names)]
    return lw.compile(lw.Function([q], lw.nn.negative(call)), records=lw.TuningRecords(known))


def check(library, heads, *wanted):
    assert [c.implementation for f in library.functions for c in f.choices if c.op == "rope"] == list(wanted), wanted
    x = np.random.default_rng(1).standard_normal((heads, 5, 12)).astype("float32")
    np.testing.assert_allclose(lw.Engine(library)([x])[0], -expected(x), rtol=1e-5, atol=1e-5)


check(compiled(6), 6, "rope.tables")
check(compiled(2), 2, "rope.direct")
check(compiled(6, "rope.direct", "rope.tables"), 6, "rope.direct")
check(compiled(6, "rope.tables", "rope.direct"), 6, "rope.tables")
open_heads = compiled(te.var("heads"))
for heads in (2, 6):
    check(open_heads, heads, "rope.tables", "rope.direct")
try:
    ROPE(lw.var("q", (4, 4)))
except lw.TypeInferenceError as error:
    assert str(error).startswith("rope(x: ") and "must be [heads, positions, width]" in str(error)
else:
    raise AssertionError
"""


def test_it_is_one_short_file():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 90


def test_the_operator_is_right_and_chosen_by_condition_and_by_records(tmp_path):
    operator, _ = EXAMPLE.read_text(encoding="utf-8").split('q = lw.var("q"')
    script = tmp_path / "script.py"
    script.write_text(operator + USE, encoding="utf-8")
    run = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
