"""Forged entries of the cache: whatever is in the place of one, a model is compiled anew, and no process ends."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("compile_forged.py")


def test_forged_entries_lead_to_a_fresh_compilation(tmp_path):
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "cache")], check=False, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["kinds"] == ["function", "object"]
    assert told["cases"] > 50
    assert told["found"] == {}
