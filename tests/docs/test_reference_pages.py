"""The pages that list what there is of something list all of it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = PYPROJECT["tool"]["importlinter"]["contracts"][0]["may_import"]


def listed(page, pattern):
    return set(re.findall(pattern, (ROOT / "docs" / page).read_text(encoding="utf-8")))


def test_all_environment_variables_that_the_package_reads_are_listed():
    sources = (path.read_text(encoding="utf-8") for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    read = {name for source in sources for name in re.findall(r"\"(LOOPWRIGHT_[A-Z_]+)\"", source)}
    assert "LOOPWRIGHT_NUM_THREADS" in read
    assert listed("environment.md", r"LOOPWRIGHT_[A-Z_]+") == read


def test_all_commands_are_listed():
    command = [sys.executable, "-m", "loopwright", "--help"]
    environment = os.environ | {"COLUMNS": "100"}
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, env=environment)
    commands = set(re.findall(r"(?m)^    (\w+)  +\w", run.stdout))
    assert "run" in commands
    assert listed("command-line.md", r"(?m)^loopwright (\w+)") == commands
