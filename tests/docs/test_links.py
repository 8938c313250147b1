"""Links between the pages of the project lead to files and headings that there are."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("benchmarks/*.md")]
)
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
PAGE, PICTURE = (
    f"{URLS['Source']}/blob/main/",
    f"{URLS['Source'].replace('github.com', 'raw.githubusercontent.com')}/main/",
)
"""What the absolute links to files of the project begin with."""


def prose(page):
    """A page without its code."""
    return re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))


def anchors(page):
    """What the headings of a page are linked by: as GitHub makes it, of small letters, digits and dashes."""
    made = set()
    for heading in re.findall(r"(?m)^#+ (.+)$", prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = sum(re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other) is not None for other in made)
        made.add(f"{anchor}-{number}" if number else anchor)
    return made


def links(page):
    """Each link to a file of the project: the file, and the heading in it, if any."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        if link.startswith((PAGE, PICTURE)):
            yield link, ROOT / path.removeprefix(PAGE).removeprefix(PICTURE), anchor
        elif "://" not in link:
            yield link, page.parent / path if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link, target, anchor in links(page):
        assert target.exists(), f"{link}: there is no {target.relative_to(ROOT)}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: no heading of {target.name} is called so"


def test_the_addresses_of_the_project_begin_alike():
    assert all(url.startswith(URLS["Source"]) for url in URLS.values())
    assert (ROOT / URLS["Documentation"].removeprefix(PAGE)).exists()


def test_the_index_lists_all_pages():
    index = ROOT / "docs" / "README.md"
    listed = {target.resolve() for _, target, _ in links(index)}
    assert {page for page in PAGES if page.parent == index.parent and page != index} <= listed


def test_the_table_of_examples_lists_all_of_them():
    index = ROOT / "examples" / "README.md"
    listed = {target.resolve() for _, target, _ in links(index)}
    assert {*index.parent.glob("*.py"), *index.parent.glob("*.ipynb")} <= listed
