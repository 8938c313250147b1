"""The search of a page, its wrapped lines and its colours, in a real browser."""

import functools

import pytest

import loopwright as lw
from loopwright import te
from loopwright.explorer.explore import document
from loopwright.explorer.page import page

SAID = "document.querySelector('#search output').textContent"
COUNTS = "explorer.columns.map((column) => column.found.textContent)"
CURRENT = "[...document.querySelectorAll('mark.current')].map((mark) => mark.textContent).join('')"


@pytest.fixture(scope="module")
def scaled_page(tmp_path_factory):
    """Two stages, each of some loops, unrolled so far that texts are longer than panes."""
    X = te.placeholder((64, 96), name="X")
    Y = te.compute((64, 96), lambda i, j: X[i, j] * 3.0 + X[i, j] * X[i, j], name="Y")
    last = Y
    for name in ("W0", "W1", "W2", "W3"):
        last = te.compute((64, 96), functools.partial(lambda of, i, j: of[i, j] + 1.0, last), name=name)
    Z = te.compute((64, 96), lambda i, j: last[i, j] - X[i, j], name="Z")
    s = lw.create_schedule(Z)
    _, inner = s[Z].split(Z.op.axis[1], 8)
    s[Z].vectorize(inner)
    outer, few = s[Y].split(Y.op.axis[0], 16)
    s[Y].unroll(few)
    s[Y].reorder(outer, Y.op.axis[1], few)
    shown = document(
        {"plain": lw.create_schedule(Z), "unrolled": s}, lw.resolve_target("x86-64-v3"), "scaled", measure=False
    )
    path = tmp_path_factory.mktemp("page") / "scaled.html"
    path.write_text(page(shown), encoding="utf-8")
    return path


@pytest.fixture
def tab(scaled_page, open_page):
    made = open_page(scaled_page)
    yield made
    made.evaluate("localStorage.clear()")
    assert made.complaints() == []


def search(tab, text):
    tab.press("/")
    tab.evaluate(f"explorer.search.field.value = {text!r}")
    tab.evaluate("explorer.search.field.dispatchEvent(new Event('input'))")
    tab.settle()


def lines_with(tab, text):
    """How many times a text stands in what each view of the page shows, whether it is in sight or not."""
    shown = """(view) => view.rows.map((row) =>
        display(row.line ? view.pane.lines[row.line - 1] : row.text, view.pane.role))"""
    texts = tab.evaluate(f"explorer.columns.map((column) => column.views.filter((v) => v.pane).flatMap({shown}))")
    return ["\n".join(lines).count(text) for lines in texts]


def test_the_search_counts_matches_of_all_panes_out_of_sight_too(tab):
    search(tab, "vmulss")
    counts = lines_with(tab, "vmulss")
    assert tab.evaluate(COUNTS) == [f"{count} found" if count else "" for count in counts]
    assert counts[4] > 0
    assert tab.evaluate(SAID) == f"1 of {sum(counts)}"
    search(tab, "i_outer")
    assert sum(count > 0 for count in lines_with(tab, "i_outer")) >= 3


def test_matches_are_gone_to_in_order_from_pane_to_pane_and_around(tab):
    search(tab, "vectorized")
    total = sum(lines_with(tab, "vectorized"))
    views = []
    for number in range(total + 1):
        assert tab.evaluate(SAID).endswith(f" of {total}")
        views.append(tab.evaluate("explorer.views.indexOf(explorer.search.at.view)"))
        assert tab.evaluate(CURRENT) == "vectorized", number
        assert tab.evaluate("explorer.views.filter((view) => view.at).length") == 1, "one line is outlined"
        tab.press("Enter")
    start = views.index(min(views))
    assert views[start:-1] + views[:start] == sorted(views[:-1])
    assert views[0] == views[-1], "after the last comes the first"


def test_a_match_is_scrolled_to_in_both_directions(tab):
    search(tab, "retq")
    beyond = """(() => {
        const mark = document.querySelector('mark.current').getBoundingClientRect();
        const view = explorer.search.at.view.scroller.getBoundingClientRect();
        return Math.max(view.top - mark.top, mark.bottom - view.bottom, view.left - mark.left, mark.right - view.right);
    })()"""
    assert tab.evaluate(beyond) < 1
    search(tab, "X[")
    for number in range(8):
        assert tab.evaluate(beyond) < 1, number
        tab.evaluate("explorer.search.move(-1)")


def test_upper_case_letters_expressions_and_spaces_mean_what_they_say(tab):
    search(tab, "VMULSS")
    assert tab.evaluate(SAID) == "nothing found"
    search(tab, "vmulss %xmm")
    assert tab.evaluate("explorer.search.at !== null"), "the columns of assembly are padded by spaces"
    search(tab, r"v(sub|mul)[ps]s")
    assert tab.evaluate(SAID) == "nothing found"
    tab.evaluate("document.querySelector('#expression-button').click()")
    assert sum(lines_with(tab, "vmulss")) < int(tab.evaluate(SAID).split(" of ")[1])
    search(tab, "v(add")
    assert tab.evaluate(SAID) == "no regular expression"
    assert tab.evaluate("explorer.search.field.ariaInvalid") == "true"
    search(tab, "x*")
    assert tab.evaluate("explorer.views.every((view) => view.matches.every((match) => match.end > match.start))")


def test_escape_ends_the_search_at_the_match_and_enter_pins_it(tab):
    search(tab, "vmulss")
    line = tab.evaluate("explorer.search.at.view.at")
    tab.press("Escape")
    assert tab.evaluate("document.querySelector('#search').hidden")
    assert tab.evaluate("document.querySelectorAll('mark').length") == 0
    assert tab.evaluate("document.activeElement === explorer.columns[4].views.at(-1).scroller")
    tab.press("Enter")
    assert tab.evaluate("explorer.pinned") == {"id": tab.evaluate("explorer.schedule.assembly"), "line": line}


def test_control_f_opens_the_search_and_letters_in_it_are_no_keys(tab):
    theme = tab.evaluate("explorer.state.theme")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="f", code="KeyF", modifiers=2)
    assert tab.evaluate("document.activeElement === explorer.search.field")
    tab.press("t", "o")
    assert tab.evaluate("explorer.search.field.value") == "to"
    assert tab.evaluate("explorer.state.theme") == theme


def test_the_search_goes_on_in_panes_that_come_and_in_folded_lines(tab):
    vectorize = "explorer.schedule.passes.findIndex((entry) => entry.name === 'vectorize')"
    tab.evaluate(f"explorer.set({{ pass: {vectorize}, diff: 1 }})")
    folded = "explorer.columns[2].views[0].rows.filter((row) => row.sign === '⋯').length"
    assert tab.evaluate(folded) > 0
    search(tab, "def scaled")
    assert tab.evaluate("explorer.columns[2].views[0].matches.length") == 1
    search(tab, "W2[i")
    assert tab.evaluate("explorer.columns[2].views[0].matches.length") == lines_with(tab, "W2[i")[2] > 0
    tab.evaluate("explorer.press('i')")
    assert tab.evaluate(SAID).endswith(f" of {sum(lines_with(tab, 'W2[i'))}")
    assert tab.evaluate("explorer.columns[2].found.textContent").endswith("found")


def test_a_narrow_window_says_on_its_tabs_where_matches_are_and_goes_there(scaled_page, open_page):
    tab = open_page(scaled_page, width=600, height=900)
    search(tab, "vmulss")
    found = tab.evaluate("[...document.querySelectorAll('#tabs button')].map((tab) => tab.dataset.found)")
    assert found == [str(count or "") for count in lines_with(tab, "vmulss")]
    assert tab.evaluate("explorer.columns[4].root.classList.contains('front')")


def test_wrapped_lines_show_all_of_their_text_in_the_room_that_is_kept_for_them(tab):
    tab.press("w")
    overfull = """[...document.querySelectorAll('.row')].filter((row) => {
        const code = row.querySelector('code');
        return code.scrollHeight > row.clientHeight + 1 || code.scrollWidth > code.clientWidth + 1;
    }).map((row) => row.innerText)"""
    assert tab.evaluate("[...document.querySelectorAll('.row')].some((row) => row.clientHeight >= 2 * ROW_HEIGHT)")
    assert tab.evaluate(overfull) == []
    gaps = """explorer.views.every((view) => [...view.sheet.children].every((row, index, rows) =>
        index === 0 || Math.abs(rows[index - 1].offsetTop + rows[index - 1].offsetHeight - row.offsetTop) < 1))"""
    assert tab.evaluate(gaps)
    assert tab.evaluate("explorer.views.every((view) => view.scroller.scrollWidth <= view.scroller.clientWidth)")
    tab.evaluate("explorer.columns[4].views.at(-1).scroller.scrollTop = 1e6")
    tab.settle()
    assert "retq" in tab.evaluate("explorer.columns[4].views.at(-1).sheet.textContent")


def test_a_wrapped_line_is_what_the_pointer_is_on(tab):
    tab.press("w")
    tall = "[...document.querySelectorAll('.column')[1].querySelectorAll('.row')].findLast((r) => r.clientHeight > 30)"
    line = tab.evaluate(f"{tall}.line")
    tab.click(tall)
    assert tab.evaluate("explorer.state.line") == line


def test_whether_lines_are_wrapped_is_remembered(tab, scaled_page, open_page):
    for wanted in (True, False):
        tab.press("w")
        assert tab.evaluate("explorer.wraps") is wanted
        tab.load(scaled_page, 1600, 1000, f"?{wanted}")
        assert tab.evaluate("explorer.wraps") is wanted


def test_lines_of_a_loop_share_its_colour_before_anything_is_chosen(tab):
    colours = """explorer.columns.flatMap((column) => column.views).filter((view) => view.pane).map((view) =>
        [view.pane.role, Object.fromEntries(view.rows.map((row, k) => [view.texts[k].trim(), view.loopAt(k)]))])"""
    shown = dict(tab.evaluate(colours))
    nest = shown["nest"]
    stores = {name: next(loop for text, loop in nest.items() if text.startswith(f"{name}[")) for name in "YZ"}
    assert stores["Y"] != stores["Z"]
    vectorized = next(loop for text, loop in nest.items() if "vectorized(" in text)
    assert vectorized == stores["Z"], "what is no loop in machine code belongs to the loop around it"
    assert {loop for text, loop in shown["assembly"].items() if text.startswith("vsubps")} == {stores["Z"]}
    assert set(shown["compute"].values()) == {-1}
    letter = "[...document.querySelectorAll('.column')[4].querySelectorAll('.link')].map((link) => link.textContent)"
    assert "".join(tab.evaluate(letter)), "letters say the same without colour"
    titles = """[...document.querySelectorAll('.column')[4].querySelectorAll('.row')].filter((row) =>
        row.textContent.includes('vmulss')).map((row) => row.querySelector('.link').title)"""
    assert set(tab.evaluate(titles)) == {"for j in range(96)"}, "and which loop it is"


def test_the_marks_of_a_chosen_line_take_the_place_of_the_tints(tab):
    tab.point("document.querySelector('h1')")
    backs = "[0, 1].map((k) => getComputedStyle(document.querySelector(`.column .row.l${k}`)).backgroundColor)"
    tints = tab.evaluate(backs)
    assert len({*tints}) == 2, "loops have different ones"
    tab.click("document.querySelectorAll('.column')[0].querySelector('.row')")
    assert not set(tab.evaluate(backs)) & set(tints)
