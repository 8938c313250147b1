"""Progress: nothing for what is short, a bar where somebody sees it, lines where they are asked for."""

import io
import re

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.model import progress
from loopwright.compiler.model.progress import LateDisplay, lines, progress_shown
from loopwright.compiler.model.progress_display import NotebookDisplay, in_notebook


class Recorder:
    """Mutable: a display that keeps what it is told."""

    def __init__(self):
        self.told = []

    def begin(self):
        self.told.append("begin")

    def advance(self, done, total):
        self.told.append((done, total))

    def end(self):
        self.told.append("end")


@pytest.fixture
def recorder(monkeypatch):
    """A display whose time never comes by itself."""
    monkeypatch.setattr(progress, "UNSEEN_SECONDS", 3600.0)
    return Recorder()


def small_model():
    x = lw.var("x", (4, 8))
    return lw.Function([x], lw.nn.matmul(lw.nn.softmax(x), lw.const(np.ones((8, 8), np.float32))), "small")


def test_lines_say_how_far_a_task_is_once_a_second_and_that_it_is_done():
    now, out = [0.0], io.StringIO()
    advance = lines("compiling", out, lambda: now[0])
    for part, seconds in enumerate([0.3, 0.9, 1.1, 1.2, 1.3, 2.2, 2.3], start=1):
        now[0] = seconds
        advance(part, 7, f"part{part}")
    assert out.getvalue().splitlines() == [
        "compiling",
        "compiling: 3 of 7, part3",
        "compiling: 6 of 7, part6",
        "compiling: 7 of 7, part7",
    ]


def test_work_that_ends_soon_shows_nothing(recorder):
    late = LateDisplay(recorder)
    late.advance(1, 2, "a")
    late.end()
    late.begin()
    assert recorder.told == []


def test_a_late_display_begins_with_what_is_done_and_ends_once(recorder):
    late = LateDisplay(recorder)
    late.advance(1, 3, "a")
    late.begin()
    late.begin()
    late.advance(2, 3, "b")
    late.end()
    late.advance(3, 3, "c")
    assert recorder.told == ["begin", (1, 3), (2, 3), "end"]


def test_a_display_begins_by_itself_when_the_time_has_come(monkeypatch):
    monkeypatch.setattr(progress, "UNSEEN_SECONDS", 0.0)
    shown = Recorder()
    late = LateDisplay(shown)
    late._timer.join(600)
    late.end()
    assert shown.told == ["begin", (0, 0), "end"]


def test_a_display_ends_where_the_work_fails(recorder, monkeypatch):
    monkeypatch.setattr(progress, "_display", lambda title: recorder)
    shown = progress_shown("work", None)
    shown.__enter__().__self__.begin()
    assert not shown.__exit__(ValueError, ValueError("no"), None)
    assert recorder.told[-1] == "end"


def test_compiling_says_nothing_in_a_pipe_unless_it_is_asked_to(capfd):
    lw.compile(small_model())
    lw.compile(small_model(), progress=False)
    assert capfd.readouterr().err == ""
    lw.compile(small_model(), progress=True)
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "compiling small"
    assert re.fullmatch(r"compiling small: 2 of 2, fused_\w+", said[-1])


def test_a_function_is_told_of_each_part():
    told = []
    library = lw.compile(small_model(), progress=lambda *part: told.append(part))
    assert [(done, total) for done, total, _ in told] == [(1, 2), (2, 2)]
    assert {name for _, _, name in told} == {function.name for function in library.functions}


def test_what_is_no_progress_is_refused():
    with pytest.raises(lw.RuntimeArgumentError, match=r"progress should be a function of .*, or True, .* found 'yes'"):
        lw.compile(small_model(), progress="yes")


def test_a_notebook_keeps_one_line(monkeypatch):
    display = needed_tools.module("IPython.display")
    shown, now = [], [0.0]

    class Handle:
        def update(self, value):
            shown.append(value.data)

    def show(value, display_id):
        shown.append(value.data)
        return Handle()

    monkeypatch.setattr(display, "display", show)
    bar = NotebookDisplay("compiling <b>", lambda: now[0])
    bar.begin()
    bar.advance(0, 0)
    for done, seconds in enumerate([1.0, 1.1, 1.3], start=1):
        now[0] = seconds
        bar.advance(done, 3)
    now[0] = 2.25
    bar.end()
    texts = [re.sub(r"<style>.*?</style>|<[^>]*>", "", page, flags=re.DOTALL) for page in shown]
    assert texts == [
        "compiling &lt;b&gt; ",
        "compiling &lt;b&gt;  1 of 3",
        "compiling &lt;b&gt;  3 of 3",
        "compiling &lt;b&gt;: 3 of 3, 2.25 s",
    ]
    assert [("<progress" in page) for page in shown] == [True, True, True, False]


def test_a_test_is_no_notebook():
    assert not in_notebook()
