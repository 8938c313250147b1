"""The page of a search: what it says of candidates, and what a click shows, in a real browser."""

from dataclasses import dataclass

import pytest

import loopwright as lw
from loopwright import te

A = te.placeholder((64, 96), name="A")
B = te.compute((64, 96), lambda i, j: A[i, j] * 2.0, name="B")


@dataclass
class Candidate:
    schedule: lw.Schedule
    predicted: float
    gain: float
    outcome: str


def candidates():
    vectors = lw.create_schedule(B)
    _, lane = vectors[B].split("j", factor=8)
    vectors[B].vectorize(lane)
    return [
        Candidate(lw.default_schedule(B), 2000.0, 1.0, "measured"),
        Candidate(vectors, 1000.0, 2.5, "measured"),
        Candidate(lw.create_schedule(B), 0.0, 0.0, "crashed: its process died of SIGSEGV"),
    ]


def test_a_click_on_a_dot_shows_the_trace_and_the_nest(tmp_path, open_page):
    tab = open_page(lw.explore_search(candidates(), tmp_path / "search.html", "doubled"))
    text = "document.querySelector('{}').textContent".format
    assert tab.evaluate(text("h1")) == "doubled"
    assert tab.evaluate(text("#subtitle")) == "3 candidates; the fastest is 2.50× as fast as the first"
    assert tab.evaluate("explorer.dots.length") == 3
    assert tab.evaluate(text("#told h2")) == "1: 2.50× as fast, predicted 1,000 cycles", "the fastest is shown first"
    assert "vectorize" in tab.evaluate(text("#trace"))
    assert "in vectorized(8)" in tab.evaluate(text("#nest"))
    tab.evaluate("explorer.dots[2].dispatchEvent(new Event('click'))")
    assert tab.evaluate(text("#told h2")) == "2: crashed: its process died of SIGSEGV"
    assert tab.evaluate(text("#trace")) == ""
    across, down = (tab.evaluate(f"explorer.dots.map((dot) => Number(dot.getAttribute('{c}')))") for c in ("cx", "cy"))
    assert across[1] < across[0]
    assert down[1] > down[0] > down[2], "the fastest is lowest, and what has no time is at the top"
    assert tab.complaints() == []


def test_what_cannot_be_shown_is_told(tmp_path):
    with pytest.raises(lw.RuntimeArgumentError, match="there are no candidates to show"):
        lw.explore_search([], tmp_path / "search.html")
    with pytest.raises(lw.RuntimeArgumentError, match="the page cannot be written"):
        lw.explore_search(candidates(), tmp_path / "none" / "search.html")
