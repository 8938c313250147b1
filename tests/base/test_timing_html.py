"""The flame graph of a compilation: boxes as wide as their share of what they are part of, the names as text."""

import re
from html.parser import HTMLParser

import loopwright as lw
from loopwright.base.timing import CompileTiming


class Boxes(HTMLParser):
    """Mutable: ``found`` has (depth, name, width in percent) of each box, in order."""

    def __init__(self, html):
        super().__init__()
        self.found, self._open, self._named = [], [], False
        self.feed(html)
        assert not self._open, "all boxes are closed"

    def handle_starttag(self, tag, attrs):
        if tag != "div":
            return
        given = dict(attrs)
        self._open.append(given)
        if given.get("class") == "lw-flame":
            width = float(re.fullmatch(r"width: ([\d.]+)%", given["style"])[1])
            depth = sum(each.get("class") == "lw-flame" for each in self._open)
            self.found.append([depth, "", width])

    def handle_endtag(self, tag):
        if tag == "div":
            self._open.pop()

    def handle_data(self, data):
        if self._open and self._open[-1].get("class") == "lw-flame-name":
            self.found[-1][1] += data


def stage(name, seconds, *parts, kind="stage"):
    return CompileTiming(name, kind, seconds, nodes=5, parts=parts)


def test_parts_are_as_wide_as_their_seconds_and_stages_of_functions_are_summed():
    first = stage("f", 3.0, stage("lower", 2.0), stage("llvm", 1.0), kind="function")
    second = stage("g", 5.0, stage("lower", 1.0), stage("llvm", 4.0), kind="function")
    whole = stage("compile", 10.0, stage("plan", 1.0), first, second, stage("next_to_nothing", 0.001))
    boxes = Boxes(whole.html).found
    assert boxes == [
        [1, "compile", 100.0],
        [2, "plan", 10.0],
        [2, "lower", 30.0],
        [2, "llvm", 50.0],
        [1, "functions", 100.0],
        [2, "g", 62.5],
        [3, "lower", 20.0],
        [3, "llvm", 80.0],
        [2, "f", 37.5],
        [3, "lower", 66.667],
        [3, "llvm", 33.333],
    ]
    assert "lower: 3.00 s, 30.0%, 10 nodes" in whole.html


def test_parts_that_ran_at_once_share_the_width():
    boxes = Boxes(stage("compile", 1.0, stage("a", 1.5), stage("b", 1.5)).html).found
    assert [width for _, _, width in boxes] == [100.0, 50.0, 50.0]


def test_names_are_text_and_nothing_is_asked_of_a_network():
    html = stage("<b>&", 1.0).html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert not re.search(r"https?:|<script|<link", html)


def test_a_compilation_shows_itself_in_notebooks():
    x = lw.var("x", (5, 23), "float32")
    timings = lw.compile(lw.Function([x], lw.nn.softmax(x)), "x86-64-v3").timings
    names = [name for _, name, _ in Boxes(timings._repr_html_()).found]
    assert names[0] == "compile"
    assert "functions" in names


def test_no_time_at_all_is_shown():
    assert Boxes(stage("compile", 0.0, stage("a", 0.0)).html).found[0] == [1, "compile", 100.0]
