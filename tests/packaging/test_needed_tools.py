"""Tests that lack a tool are skipped, all by one function; where the tool was installed for them, that fails."""

import re
from pathlib import Path
from types import SimpleNamespace

import needed_tools
import pytest

TESTS = Path(__file__).resolve().parents[1]
BY_HAND = re.compile(r"importorskip|\bwhich\(|skipif\(.*find_spec")


@pytest.fixture(
    params=[lambda: needed_tools.program("no-such-tool", package="a"), lambda: needed_tools.module("no_such", "a")]
)
def ask(request):
    return request.param


def test_what_is_not_there_skips_a_test(ask, monkeypatch):
    monkeypatch.setenv(needed_tools.REQUIRED, "b aa")
    with pytest.raises(pytest.skip.Exception, match=r"needs no.such(-tool)? \(a\)"):
        ask()


def test_what_was_installed_and_is_not_there_fails_a_test(ask, monkeypatch):
    monkeypatch.setenv(needed_tools.REQUIRED, "b a")
    with pytest.raises(pytest.fail.Exception, match=r"no.such.* is not there, though a was installed"):
        ask()


def test_what_is_there_is_found(monkeypatch):
    monkeypatch.setenv(needed_tools.REQUIRED, "a")
    assert Path(needed_tools.program("no-such-tool", "sh", package="a")).name == "sh"
    assert needed_tools.module("json.decoder", "a").JSONDecoder


def test_a_mark_skips():
    marks = [needed_tools.needs("sh", package="a").mark, needed_tools.needs("no-such-tool", package="a").mark]
    with pytest.raises(pytest.skip.Exception, match="needs no-such-tool"):
        needed_tools.check(SimpleNamespace(iter_markers=lambda name: marks))


def test_no_test_looks_for_its_tools_by_hand():
    files = [path for path in TESTS.rglob("*.py") if path.name not in ("needed_tools.py", Path(__file__).name)]
    assert not [f"{path}: {line}" for path in files for line in path.read_text().splitlines() if BY_HAND.search(line)]
