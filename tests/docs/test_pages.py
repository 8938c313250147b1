"""The examples of the pages run, and print what they say. A page is one session, from top to bottom."""

import doctest
import logging

import pytest
from documented_programs import PAGES, session


@pytest.fixture
def folder_of_its_own(tmp_path, monkeypatch):
    """What a page writes goes here."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def levels_of_loggers():
    """A page may set levels: other tests read the log too."""
    loggers = [logging.getLogger(f"loopwright.{name}") for name in ("cache", "compile_engine", "records")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("levels_of_loggers", "folder_of_its_own")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_examples_of_a_page_print_what_it_says(page):
    result = doctest.DocTestRunner().run(session(page))
    assert result.attempted > 0
    assert result.failed == 0, "see the report above"


def test_there_are_pages_with_examples():
    assert "schedules" in {page.stem for page in PAGES}
