"""What pages say of the code is there: the files that they name. Boxes that are drawn have straight sides."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
TO_BE_MADE = {"ops/families/cdist.py", "tests/ops/test_cdist.py"}
"""What a reader of docs/add-an-operator.md writes."""


@pytest.fixture(scope="module")
def files():
    """All files of the project, each as /folder/name."""
    skipped = {"build", "dist", "__pycache__"}
    found, folders = [], [ROOT]
    while folders:
        for path in folders.pop().iterdir():
            if path.is_dir() and not path.is_symlink() and path.name not in skipped and not path.name.startswith("."):
                folders.append(path)
            elif path.is_file():
                found.append(f"/{path.relative_to(ROOT)}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_are_there(page, files):
    for name in re.findall(r"`([\w./]+\.(?:py|pyi|ll|toml))`", page.read_text(encoding="utf-8")):
        own = name.removeprefix(".src/loopwright/")
        assert own in TO_BE_MADE or any(file.endswith(f"/{own}") for file in files), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_boxes_have_straight_sides(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        for top in re.finditer("┌─+┐", line):
            left, right = top.start(), top.end() - 1
            inside = [row.ljust(right + 1) for row in lines[number + 1 :]]
            height = next(k for k, row in enumerate(inside) if row[left] in "└ ")
            assert re.fullmatch("└─+┘", inside[height][left : right + 1]), f"{page.name}, line {number + height + 2}"
            for k, row in enumerate(inside[:height]):
                assert row[left] + row[right] == "││", f"{page.name}, line {number + k + 2}"
