"""docs/add-an-operator.md, followed to the letter in a copy of the package: the operator works and its tests pass."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "add-an-operator.md").read_text(encoding="utf-8")
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]


def code(text):
    return "\n\n".join(re.findall(r"(?s)```python\n(.*?)```", text))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder with the package as ``loopwright``, the page's file in it, and the page's tests."""
    root = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        parts = package.split(".")[1:]
        target = root / "loopwright" / Path(*parts)
        target.mkdir(parents=True)
        for pattern in ("*.py", "*.pyi", "*.ll"):
            for source in ROOT.joinpath(*parts).glob(pattern):
                shutil.copy(source, target)
    operator, test = PAGE.split("## 9. The tests")
    folder = root / "loopwright" / "ops"
    (folder / "families" / "cdist.py").write_text(code(operator), encoding="utf-8")
    for name, line in {
        "families/__init__.py": "from . import cdist",
        "nn.py": "from .families.cdist import cdist",
    }.items():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n__all__ += ['cdist']\n")
    tests = root / "tests" / "ops"
    tests.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "ops" / "conftest.py", tests)
    (tests / "test_cdist.py").write_text(code(test), encoding="utf-8")
    return root


def run(copy, *arguments):
    command = [sys.executable, *arguments]
    environment = os.environ | {"PYTHONPATH": str(copy), "LOOPWRIGHT_CACHE_DIR": str(copy / "cache")}
    done = subprocess.run(command, cwd=copy, env=environment, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_page_pass_on_the_operator_of_the_page(copy):
    assert f"{copy}/loopwright/__init__.py" in run(copy, "-c", "import loopwright; print(loopwright.__file__)")
    out = run(copy, "-m", "pytest", "-q", "--import-mode=importlib", "-W", "error", "-p", "no:cacheprovider", "tests")
    assert re.search(r"\d\d passed", out)
    assert "skipped" not in out


def test_the_operator_is_documented(copy):
    page = run(copy, "-m", "loopwright", "ops", "--markdown")
    assert "### `cdist(a, b)`" in page
    assert "`cdist.direct` (10), `cdist.by_columns` (15)" in page
