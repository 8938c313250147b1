"""Views hold what they are given, as text, and stay small."""

import pytest
from html_reader import Reader

from loopwright.base.html import code as code_module
from loopwright.base.html.code import code, inline_code
from loopwright.base.html.markup import element, fold
from loopwright.base.html.style import STYLE
from loopwright.base.html.table import Column, facts, share_bar, table
from loopwright.base.html.view import MOST_BYTES, view

HOSTILE = "</pre></style><script>broken = 1</script><img src=x onerror='broken=1'> & \" \ud800"


def everything(text):
    """A view of all parts that there are, each of which says the text."""
    rows = [[text, inline_code(text)], ["1", share_bar(0.25)]]
    return view(
        text,
        code(text, "loops", text),
        *(code(text, language, text) for language in ("graph", "python", "llvm", "assembly")),
        table([Column(text), Column(text, numeric=True)], rows, text),
        facts({text: text}),
        fold(text, element("p", text)),
    )


def test_text_is_never_markup():
    page = Reader(everything(HOSTILE))
    assert {"script", "img"}.isdisjoint(page.names)
    assert "onerror" not in page.attributes
    assert page.text.count("<script>broken = 1</script>") == 14, "each part says it"
    assert page.text.encode()


def test_attributes_are_escaped():
    assert element("p", title='a" onclick="b', class_="c") == '<p title="a&quot; onclick=&quot;b" class="c"></p>'
    assert element("p", title=element("b", id="c")) == '<p title="&lt;b id=&quot;c&quot;&gt;&lt;/b&gt;"></p>'


@pytest.mark.parametrize("language", ["loops", "graph", "python", "llvm", "assembly"])
def test_coloured_code_says_what_the_text_says(language):
    text = (
        "def f(%x: float32[4]):\n    for i in vectorized(8):  # note\n\tvaddps\t$4, %ymm0\n  %r = load <4 x float> ; c"
    )
    assert Reader(code(text, language, "")).text == text


def test_kinds_of_loops_stand_out():
    shown = code("for i in parallel(4):", "loops", "")
    assert '<span class="lw-kind">parallel</span>' in shown
    assert '<span class="lw-number">4</span>' in shown


def test_a_long_text_is_folded_and_a_very_long_one_is_cut():
    short = Reader(code("x = 1\n" * 10, "loops", ""))
    assert "details" not in short.names
    folded = Reader(code("x = 1\n" * 100, "loops", ""))
    assert folded.text.count("x = 1") == 100
    assert f"{100 - code_module.OPEN_LINES} more lines" in folded.text
    endless = code("x = 1\n" * 100_000, "loops", "print(s)")
    shown = Reader(endless).text
    assert len(endless) < code_module.MOST_BYTES + 10_000
    assert f"… {100_000 - shown.count('x = 1')} more lines, in print(s)" in shown


def test_a_long_line_is_cut():
    assert Reader(code("y" * 10_000, "llvm", "")).text == "y" * code_module.LONGEST_LINE + "…"


def test_a_long_table_says_how_many_rows_it_leaves_out():
    shown = Reader(table([Column("name"), Column("size", numeric=True)], [["a" * 50, "1"]] * 10_000, "library.x"))
    assert f"… {10_000 - shown.names.count('tr') + 1} more rows, in library.x" in shown.text


def test_columns_without_a_text_are_left_out():
    shown = Reader(table([Column("a"), Column("b"), Column("c", numeric=True)], [["1", "", "3"], ["4", "", ""]], ""))
    assert shown.text == "ac134"


def test_a_view_is_never_too_long():
    part = code("z = 2\n" * 100_000, "loops", "print(z)")
    page = view("t", *[part] * 20)
    assert len(page.encode()) <= MOST_BYTES
    assert "the rest is left out" in Reader(page).text
    assert "left out" not in Reader(view("t", part, part)).text


def test_facts_without_a_text_are_left_out():
    assert Reader(facts({"inputs": "x", "dims": ""})).text == "inputsx"


def test_every_rule_of_the_style_is_about_the_inside_of_a_view():
    selectors = [rule.split("}")[-1].strip() for rule in STYLE.split("{")[:-1]]
    parts = [part for selector in selectors for part in selector.replace("\n", " ").split(", ")]
    assert len(parts) > 20
    assert all(".loopwright-view" in part for part in parts)
    assert "@" not in STYLE
    assert "url(" not in STYLE
