"""The import table is kept where its rows allow an import, and broken with the culprit's place where they don't."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
[tool.importlinter]
root_packages = ["sample"]
contract_types = ["import_table: tests.packaging.import_table.ImportTable"]
[[tool.importlinter.contracts]]
name = "sample"
type = "import_table"
[tool.importlinter.contracts.may_import]
low = []
high = ["low"]
top = ["*"]
"""


@pytest.fixture
def lint(tmp_path):
    """A function that writes the modules of a package `sample`, and returns what lint-imports says of them."""

    def lint(modules: dict[str, str]) -> tuple[int, str]:
        (tmp_path / "pyproject.toml").write_text(CONFIG)
        for folder in ("", *(str(Path(name).parent) for name in modules)):
            (tmp_path / "sample" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "sample" / folder / "__init__.py").touch()
        for name, text in modules.items():
            (tmp_path / "sample" / name).write_text(text)
        command = [str(Path(sysconfig.get_path("scripts")) / "lint-imports")]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=600
        )
        return run.returncode, run.stdout

    return lint


def test_imports_in_the_table_pass(lint):
    code, _ = lint(
        {
            "low/a.py": "from . import b",
            "low/b.py": "import os",
            "high/c.py": "from ..low import a",
            "top/d.py": "from .. import high, __name__",
        }
    )
    assert code == 0


@pytest.mark.parametrize(
    ("statement", "imported"), [("from ..high import c", "sample.high.c"), ("from .. import thing", "sample")]
)
def test_an_import_outside_the_table_is_shown_with_its_line(lint, statement, imported):
    code, text = lint({"low/a.py": f"\n{statement}", "high/c.py": ""})
    assert code == 1
    assert f"sample.low.a:2: {statement}" in text
    assert f"imports {imported}, which the row of 'low' does not allow" in text


def test_an_init_is_checked_too(lint):
    code, text = lint({"low/__init__.py": "from ..high import c", "high/c.py": ""})
    assert code == 1
    assert "sample.low:1: from ..high import c" in text


def test_a_folder_without_a_row_is_an_error(lint):
    code, text = lint({"other/a.py": ""})
    assert code == 1
    assert "sample.other has no row in the table" in text
