"""What ``lw.explore`` gives shows in notebooks, and stands for the file that it was written to."""

import os
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from html_reader import Reader

import loopwright as lw
from loopwright import te

PATIENCE = 60.0


def double():
    A = te.placeholder((64,), "float32", name="A")
    return lw.create_schedule(te.compute((64,), lambda i: A[i] * 2.0, name="B"))


@pytest.fixture(scope="module")
def shown():
    return lw.explore({"plain": double()}, target="x86-64-v3", name="double", measure=False)


class Frames(HTMLParser):
    """Mutable: the attributes of the frames of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "iframe":
            self.found.append(dict(attrs))


def test_a_page_without_a_path_is_in_no_file(shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown.path is None
    assert repr(shown) == str(shown) == "<ExplorerPage of plain, in no file>"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(lw.RuntimeArgumentError, match=r"in no file yet: write it by page\.save"):
        os.fspath(shown)


def test_a_saved_page_stands_for_its_file(shown, tmp_path):
    saved = shown.save(tmp_path / "page.html")
    assert str(saved) == os.fspath(saved) == str(saved.path) == str(tmp_path / "page.html")
    assert Path(saved).read_text(encoding="utf-8") == shown.html
    with pytest.raises(lw.RuntimeArgumentError, match="cannot be written"):
        shown.save(tmp_path)


def test_a_notebook_gets_the_page_in_a_frame_that_reaches_nothing_outside(shown):
    page = shown._repr_html_()
    assert set(Reader(page).names) == {"div", "style", "iframe"}
    (frame,) = Frames(page).found
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"].replace('\n<base href="about:srcdoc">', "") == shown.html


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_works_in_the_frame_of_a_notebook_and_takes_its_theme(shown, browser, tmp_path, theme):
    is_light = str(theme == "light").lower()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f'<!doctype html><body data-jp-theme-light="{is_light}">{shown._repr_html_()}</body>')
    target = browser.call("Target.createTarget", url=notebook.as_uri())["targetId"]
    session = framed_page(browser)

    def evaluate(script):
        return browser.call("Runtime.evaluate", session, expression=script, returnByValue=True)["result"].get("value")

    deadline = time.monotonic() + PATIENCE
    while not evaluate("globalThis.explorer !== undefined && document.readyState === 'complete'"):
        assert time.monotonic() < deadline, evaluate("document.body.innerText")
        time.sleep(0.02)
    assert evaluate("document.querySelector('h1').textContent") == "double"
    assert evaluate("document.querySelector('#subtitle').className") != "error"
    while not evaluate(f"matchMedia('(prefers-color-scheme: {theme})').matches"):  # the browser tells its process later
        assert time.monotonic() < deadline, "the frame has not got the theme"
        time.sleep(0.02)
    evaluate("explorer.press('ArrowDown')")
    assert re.search(r"#nest-\d+$", evaluate("location.href")), "its address keeps what is chosen"
    assert evaluate("explorer.press('w') && explorer.wraps"), "without a store to remember that"
    browser.call("Target.closeTarget", targetId=target)


def framed_page(browser):
    """A session with the frame, which the browser keeps in a process of its own."""
    deadline = time.monotonic() + PATIENCE
    while True:
        targets = browser.call("Target.getTargets", filter=[{"type": "iframe"}])["targetInfos"]
        if targets:
            (frame,) = targets
            return browser.call("Target.attachToTarget", targetId=frame["targetId"], flatten=True)["sessionId"]
        assert time.monotonic() < deadline, "there is no frame"
        time.sleep(0.02)


def test_a_function_is_told_how_far_the_page_is():
    told = []
    schedules = {"plain": double(), "again": double()}
    lw.explore(schedules, target="x86-64-v3", measure=False, progress=lambda *part: told.append(part))
    assert told == [(1, 2, "plain"), (2, 2, "again")]
