"""The programs that the documentation shows: tests run them, and check their types."""

import doctest
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIVEN = "import numpy as np\nx = np.ones((1, 3, 224, 224), np.float32)\n"
"""What programs of the README take as given: an array for a model."""
WITH_PROGRAMS = {"README": ROOT / "README.md", "models": ROOT / "docs" / "models.md"}
PROGRAMS = [
    (name, program)
    for name, page in WITH_PROGRAMS.items()
    for program in re.findall(r"(?s)```python\n(.*?)```", page.read_text(encoding="utf-8"))
]
"""Each with the name of its page."""
PAGES = sorted(p for p in (ROOT / "docs").glob("*.md") if "```pycon" in p.read_text(encoding="utf-8"))
"""The pages with examples of an interactive session, one a page, from top to bottom."""
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def session(page):
    """The examples without the text between them, each at the line where the page has it."""
    text = page.read_text(encoding="utf-8")
    inside = [range(m.start(1), m.end(1)) for m in re.finditer(r"(?s)```pycon\n(.*?)```", text)]
    lines, at = [], 0
    for line in text.splitlines(keepends=True):
        lines.append(line if any(at in part for part in inside) else "\n")
        at += len(line)
    return doctest.DocTestParser().get_doctest("".join(lines), {}, page.name, str(page), 0)


def session_program(page):
    """What is typed in the session, each example at the line where the page has it."""
    lines = [""] * len(page.read_text(encoding="utf-8").splitlines())
    for example in session(page).examples:
        typed = example.source.splitlines()
        lines[example.lineno : example.lineno + len(typed)] = typed
    return "\n".join(lines) + "\n"


def notebook_program(notebook):
    """The code of a notebook's cells, without its magic commands."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "\n".join(line for line in code.splitlines() if not line.startswith("%")) + "\n"
