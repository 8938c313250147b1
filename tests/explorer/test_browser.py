"""The page in a real browser: what it shows, what it marks, how fast it opens, and that it asks nobody for anything."""

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.machine_rates import MachineRates
from loopwright.explorer.document import Work
from loopwright.explorer.explore import document
from loopwright.explorer.page import page

TARGET = "x86-64-v3"
SHOWN = "[...document.querySelectorAll('.column')].filter((column) => column.offsetWidth).map((c) => c.ariaLabel)"
COLUMN = {"Schedule": 0, "Loop nest": 1, "Passes": 2, "LLVM IR": 3, "Assembly": 4}


def product_schedules():
    A = te.placeholder((32, 24), name="A")
    B = te.placeholder((24, 32), name="B")
    r = te.reduce_axis((0, 24), name="r")
    C = te.compute((32, 32), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    naive, tiled = lw.create_schedule(C), lw.create_schedule(C)
    io, jo, ii, ji = tiled[C].tile(*C.op.axis, 4, 16)
    tiled[C].reorder(io, jo, r, ii, ji)
    tiled[C].unroll(ii)
    tiled[C].vectorize(ji)
    return {"naive": naive, "register tile": tiled}


@pytest.fixture(scope="module")
def product():
    """The document of two schedules of a product, measured where the machine can run them."""
    return document(product_schedules(), lw.resolve_target(TARGET), "product", peers={"numpy": lambda a, b: a @ b})


@pytest.fixture(scope="module")
def product_page(product, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "product.html"
    path.write_text(page(product), encoding="utf-8")
    return path


@pytest.fixture
def tab(product_page, open_page):
    made = open_page(product_page)
    yield made
    assert made.complaints() == []
    assert made.requests() == [product_page.as_uri()]


def column(title):
    return f"document.querySelectorAll('.column')[{COLUMN[title]}]"


def row(title, text):
    """A script that gives the row of a column whose code has this text in it; of the last text of the column."""
    rows = f"[...[...{column(title)}.querySelectorAll('.sheet')].at(-1).children]"
    return f"{rows}.find((row) => row.querySelector('code').textContent.includes({text!r}))"


def marked(tab, title, kind="own"):
    """The lines of code in a column that are marked."""
    return tab.evaluate(f"[...{column(title)}.querySelectorAll('.row.{kind} code')].map((code) => code.textContent)")


def all_marked(tab, title, kind):
    """The marked lines of a column, those that are out of sight too."""
    view = f"explorer.columns[{COLUMN[title]}].views.at(-1)"
    return tab.evaluate(f"[...{view}.marks.{kind}].map((line) => {view}.pane.lines[line - 1])")


def test_the_page_shows_all_stages_of_the_last_schedule(tab):
    titles = tab.evaluate(
        "[...document.querySelectorAll('.column')].map((column) => column.querySelector('h2').innerText)"
    )
    assert titles == list(COLUMN)
    assert tab.evaluate("document.querySelector('h1').textContent") == "product"
    for title, text in [
        ("Schedule", 's["C"].vectorize(j_inner)'),
        ("Loop nest", "for j_inner in vectorized(16):"),
        ("Passes", "def product("),
        ("LLVM IR", "define"),
        ("Assembly", "product.body:"),
    ]:
        assert tab.evaluate(f"{row(title, text)} !== undefined"), title


def test_clicking_a_loop_marks_what_it_came_from_and_what_it_became(tab):
    tab.click(row("Loop nest", "for r in range(24)"))
    assert [line.strip() for line in marked(tab, "Loop nest")] == ["for r in range(24):"]
    assert len(marked(tab, "Loop nest", "inner")) == 3
    assert [line for line in marked(tab, "Schedule") if "r" in line] == marked(tab, "Schedule") != []
    assert any("for r in range(24)" in line for line in marked(tab, "Passes"))
    assert sum(re.match(r" *C_reg\[\d\] = C_reg", line) is not None for line in marked(tab, "Passes", "inner")) == 4
    assert any("phi" in line for line in marked(tab, "LLVM IR"))
    assert sum("llvm.fma" in line for line in all_marked(tab, "LLVM IR", "inner")) == 4
    assert any(re.match(r"\t(j|cmp|inc|add)", line) for line in all_marked(tab, "Assembly", "own"))
    assert any("vfmadd231ps" in line for line in marked(tab, "Assembly", "inner"))
    assert sum("vfmadd231ps" in line for line in all_marked(tab, "Assembly", "inner")) == 8
    tab.press("Escape")
    assert marked(tab, "Assembly") == []


def test_an_instruction_leads_back_to_its_statement(tab):
    tab.evaluate(f"{row('Assembly', 'vfmadd231ps')}.scrollIntoView({{ block: 'center' }})")
    tab.settle()
    tab.point(row("Assembly", "vfmadd231ps"))
    assert [line.strip()[:4] for line in marked(tab, "Loop nest")] == ["C[i_"]
    assert all("C_reg" in line for line in marked(tab, "Passes"))
    assert any("C = compute" in line for line in marked(tab, "Schedule"))
    tab.point("document.querySelector('h1')")
    assert marked(tab, "Loop nest") == [], "only what is pinned stays"


def test_a_step_shows_what_it_changed(tab):
    tab.click(row("Schedule", ".vectorize(j_inner)"))
    removed = tab.evaluate("[...document.querySelectorAll('.row.removed code')].map((code) => code.textContent.trim())")
    added = tab.evaluate("[...document.querySelectorAll('.row.added code')].map((code) => code.textContent.trim())")
    assert removed == ["for j_inner_init in range(16):", "for j_inner in range(16):"]
    assert added == ["for j_inner_init in vectorized(16):", "for j_inner in vectorized(16):"]
    assert "step=6" in tab.evaluate("location.hash")
    tab.press("S")
    added = tab.evaluate("[...document.querySelectorAll('.row.added code')].map((code) => code.textContent.trim())")
    assert added == ["for i_inner_init in unrolled(4):", "for i_inner in unrolled(4):"]


def test_a_pass_shows_what_it_changed_and_equal_lines_fold(tab):
    tab.evaluate("[...document.querySelectorAll('.choices button')].find((b) => b.textContent === 'unroll').click()")
    assert tab.evaluate(f"{column('Passes')}.querySelectorAll('.row.added').length") >= 8
    assert "for i_inner" not in str(tab.evaluate(f"{column('Passes')}.querySelector('.row.added').innerText"))
    unchanged = tab.evaluate(
        "[...document.querySelectorAll('.choices .dim')].map((button) => [button.innerText, button.title])"
    )
    assert re.fullmatch(r"\d unchanged", unchanged[0][0])
    assert "loop_partition" in unchanged[0][1]


def test_a_button_keeps_the_focus_when_what_it_chooses_is_shown(tab):
    tab.evaluate("[...document.querySelectorAll('.choices button')].find((b) => b.textContent === 'unroll').focus()")
    tab.evaluate("document.activeElement.click()")
    assert tab.evaluate("document.activeElement.textContent") == "unroll"
    tab.evaluate("document.querySelector('.times button').focus()")
    tab.evaluate("document.activeElement.click()")
    assert tab.evaluate("document.activeElement.textContent") == "naive"


def test_verdicts_stand_beside_their_loops(tab):
    note = f"{row('Loop nest', 'for j_inner in')}.querySelector('.note')"
    assert tab.evaluate(f"{note}.textContent") == "2 ymm, fma"
    tab.press("[")
    assert tab.evaluate("explorer.schedule.name") == "naive"
    note = f"{row('Loop nest', 'for r in')}.querySelector('.note')"
    assert "scalar" in tab.evaluate(f"{note}.textContent")
    assert "costly" in tab.evaluate(f"{note}.className")
    tab.click(row("Loop nest", "for r in"))
    assert "rfactor it, or vectorize a loop around" in tab.evaluate(
        f"{column('Loop nest')}.querySelector('.detail').innerText"
    )


def test_keys_move_through_lines_panes_and_marks(tab):
    tab.press("ArrowDown", "ArrowDown")
    assert tab.evaluate("explorer.state.line") == 2
    assert tab.evaluate("explorer.panes.get(explorer.state.id).role") == "nest"
    tab.press("ArrowRight")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "lowered"
    tab.press("ArrowDown")
    assert tab.evaluate("explorer.panes.get(explorer.state.id).title") == "lowered"
    tab.press("o", "t")
    assert tab.evaluate("document.documentElement.dataset.theme") in ("dark", "light")
    assert tab.evaluate("document.querySelector('#overview').hidden")


def test_arrow_keys_move_the_marks_while_the_pointer_stays(tab):
    tab.click(row("Loop nest", "for r in range(24)"))
    before = tab.evaluate("explorer.state.line")
    tab.press("ArrowDown")
    assert tab.evaluate("explorer.state.line") == before + 1
    assert [line.strip() for line in marked(tab, "Loop nest")] != ["for r in range(24):"]
    assert marked(tab, "Loop nest") == tab.evaluate(
        f"[...{column('Loop nest')}.querySelectorAll('.row.pinned code')].map((code) => code.textContent)"
    )


def test_n_and_p_go_from_mark_to_mark(tab):
    tab.click(row("Loop nest", "for r in range(24)"))
    pinned = tab.evaluate("explorer.state.line")
    at = "explorer.columns[1].views[0].at"
    visited = []
    for key in "nnp":
        tab.press(key)
        visited.append(tab.evaluate(at))
    assert visited == [pinned + 1, pinned + 2, pinned + 1], "each goes on from the last, not from what is pinned"
    outlined = f"[...{column('Loop nest')}.querySelectorAll('.row.at')].map((row) => row.line)"
    assert tab.evaluate(outlined) == [pinned + 1]
    tab.press("ArrowRight", "n", "n")
    passes = "explorer.columns[2].views[0]"
    assert tab.evaluate(f"[...{passes}.marks.own, ...{passes}.marks.inner].includes({passes}.at)")
    tab.press("Escape")
    assert tab.evaluate(at) == 0


def test_the_machine_model_stands_above_the_assembly_and_is_linked(tab):
    model = f"{column('Assembly')}.querySelectorAll('.sheet')[0]"
    first = f"{model}.querySelector('.row')"
    assert tab.evaluate(f"{first}.querySelector('code').textContent") == "loop r: fma, latency, 4.0 cycles an iteration"
    tab.click(first)
    assert [line.strip() for line in marked(tab, "Loop nest")] == ["for r in range(24):"]
    assert tab.evaluate("location.hash") == "#model-1"
    tab.press("c")
    tab.evaluate("[...document.querySelectorAll('#tabs button')].find((b) => b.innerText === 'Machine model').click()")
    heads = tab.evaluate("[...document.querySelectorAll('.column .row:first-child code')].map((c) => c.textContent)")
    assert heads == ["loop r: latency, 4.0 cycles an iteration", "loop r: fma, latency, 4.0 cycles an iteration"]


def test_keys_choose_step_pass_difference_and_llvm(tab):
    label = "{}.querySelector('.scroller').ariaLabel"
    added = f"{column('Passes')}.querySelectorAll('.row.added').length"
    tab.press("s")
    assert tab.evaluate("explorer.state.step") == 1
    assert tab.evaluate("explorer.columns[1].views[0].pane.id === explorer.schedule.nests[1]")
    tab.press("f")
    chosen = tab.evaluate("explorer.state.pass")
    assert chosen >= 0
    assert tab.evaluate("explorer.columns[2].views[0].pane.id === explorer.schedule.passes[explorer.state.pass].pane")
    tab.press("f")
    assert tab.evaluate("explorer.state.pass") > chosen
    assert tab.evaluate(added) > 0
    tab.press("d")
    assert tab.evaluate(added) == 0
    before = tab.evaluate(label.format(column("LLVM IR")))
    tab.press("i")
    assert tab.evaluate(label.format(column("LLVM IR"))) != before


def test_the_foot_of_a_page_names_the_keys_that_do_something_there(tab, product, open_page, tmp_path):
    keys = "[...document.querySelectorAll('#keys span')].map((entry) => entry.innerText)"
    (tmp_path / "one.html").write_text(page(replace(product, schedules=product.schedules[-1:])), encoding="utf-8")
    one = open_page(tmp_path / "one.html")
    assert [text for text in tab.evaluate(keys) if text not in one.evaluate(keys)] == ["[] schedule", "c side by side"]
    one.press("c", "[", "]")
    assert one.evaluate("explorer.schedule.name") == "register tile"
    assert one.evaluate(SHOWN) == list(COLUMN)


def test_the_address_keeps_what_is_chosen(tab, product_page, open_page):
    tab.press("[")
    tab.click(row("Loop nest", "for r in"))
    address = tab.evaluate("location.hash")
    again = open_page(product_page, fragment=address)
    assert again.evaluate("explorer.schedule.name") == "naive"
    assert [line.strip() for line in marked(again, "Loop nest")] == ["for r in range(24):"]
    broken = open_page(product_page, fragment="#schedule=99&id=nowhere&line=-4&pass=77&step=1e9&llvm=x&stage=?")
    assert broken.evaluate("explorer.schedule.name") == "register tile"
    assert broken.complaints() == []
    inherited = open_page(product_page, fragment="#stage=toString&pane=9", width=600, height=900)
    assert inherited.evaluate(SHOWN) == ["Loop nest"]
    assert inherited.complaints() == []


def test_a_fragment_opens_the_page_at_a_line_with_what_it_marks(product_page, open_page):
    fma = "explorer.panes.get(explorer.schedule.assembly).lines.findIndex((text) => text.includes('vfmadd')) + 1"
    first = open_page(product_page)
    line = first.evaluate(fma)
    linked = open_page(product_page, fragment=f"#asm-{line}")
    assert linked.evaluate("explorer.pinned") == {"id": "1/assembly", "line": line}
    assert [text.strip()[:4] for text in marked(linked, "Loop nest")] == ["C[i_"]
    assert linked.evaluate("location.hash") == f"#asm-{line}"
    other = open_page(product_page, fragment="#nest-3&schedule=0", width=600, height=900)
    assert other.evaluate("explorer.pinned.id") == other.evaluate("explorer.schedule.nests.at(-1)")
    assert other.evaluate("explorer.schedule.name") == "naive"
    narrow = open_page(product_page, fragment=f"#asm-{line}", width=600, height=900)
    assert narrow.evaluate(SHOWN) == ["Assembly"], "a narrow window shows the pane of the line"
    for wrong in ("#asm-0", "#asm-99999", "#nowhere-1", "#asm-x", "#toString-1", "#%E0-1"):
        tab = open_page(product_page, fragment=wrong)
        assert tab.evaluate("explorer.pinned") is None, wrong
        assert tab.complaints() == []


def test_every_pinned_line_has_an_address_that_leads_back_to_it(tab, product_page, open_page):
    for ident in tab.evaluate("[...explorer.panes.keys()]"):
        pinned = {"id": ident, "line": 1}
        tab.evaluate(f"explorer.set({{ id: {ident!r}, line: 1 }})")
        fragment = tab.evaluate("location.hash")
        assert tab.evaluate(f"readAddress(explorer.data, explorer.panes, {fragment[1:]!r}).id") == ident
        assert tab.evaluate("explorer.pinned") == pinned


def test_a_link_to_the_pinned_line_is_copied_by_a_key_and_by_a_button(tab, product_page):
    tab.evaluate("navigator.clipboard.writeText = async (text) => { globalThis.copied = text }")
    tab.press("y")
    assert tab.evaluate("globalThis.copied === undefined"), "there is no line to link to"
    tab.click(row("Loop nest", "for r in range(24)"))
    line = tab.evaluate("explorer.state.line")
    tab.press("y")
    assert tab.evaluate("copied") == f"{product_page.as_uri()}#nest-{line}"
    tab.evaluate("globalThis.copied = ''")
    tab.click("document.querySelector('.link-button')")
    assert tab.evaluate("copied").endswith(f"#nest-{line}")
    assert tab.evaluate("explorer.state.line") == line, "the line stays pinned"
    assert tab.evaluate("document.querySelector('.link-button').textContent") == "copied"


def test_a_page_that_cannot_be_shown_says_so(product_page, open_page, tmp_path):
    text = product_page.read_text(encoding="utf-8")
    (tmp_path / "broken.html").write_text(text.replace('id="document">', 'id="document">broken'), encoding="utf-8")
    tab = open_page(product_page, width=600, height=900)
    tab.call("Page.navigate", url=(tmp_path / "broken.html").as_uri())
    tab.wait("document.querySelector('#subtitle')?.innerText.includes('cannot be shown')")


def test_schedules_stand_side_by_side_with_their_times(tab):
    tab.press("c")
    heads = tab.evaluate("[...document.querySelectorAll('.column h2')].map((title) => title.textContent)")
    assert heads == ["naive", "register tile"]
    tab.click(row("Loop nest", "for r in"))  # of the second column, which is the second schedule's here
    assert any(
        "for r in" in line
        for line in tab.evaluate(
            "[...document.querySelectorAll('.column')[0].querySelectorAll('.row.own')].map((row) => row.innerText)"
        )
    ), "the same axis is marked in the other schedule"
    tab.evaluate(
        "[...document.querySelectorAll('#tabs button')].find((button) => button.innerText === 'Assembly').click()"
    )
    assert "vfmadd231ps" in tab.evaluate("document.querySelectorAll('.column')[1].innerText")
    assert "vfmadd231ps" not in tab.evaluate("document.querySelectorAll('.column')[0].innerText")


def test_texts_side_by_side_begin_at_one_height_whatever_their_names(product, open_page, tmp_path):
    names = ("short", "a name that is far too long for the head of one of several columns " * 2)
    entries = [replace(entry, name=name, seconds=None) for entry, name in zip(product.schedules, names, strict=True)]
    untimed = replace(product, schedules=tuple(entries), peers=(), work=Work(0, 9216, "GFLOP/s"), machine=None)
    (tmp_path / "names.html").write_text(page(untimed), encoding="utf-8")
    tab = open_page(tmp_path / "names.html", width=700)
    tab.press("c")
    heights = tab.evaluate("[...document.querySelectorAll('.head')].slice(0, 2).map((head) => head.offsetHeight)")
    assert heights[0] == heights[1] > 0
    assert tab.evaluate("document.querySelector('.times').innerText").strip().startswith("short")


def test_times_and_roofline_are_shown_where_they_were_measured(tab, product):
    names = tab.evaluate("[...document.querySelectorAll('.times .who')].map((cell) => cell.innerText.trim())")
    assert names[:2] == ["naive", "register tile"]
    if product.machine is None:
        pytest.skip("this machine cannot run the kernels")
    assert names[2:] == ["numpy"]
    times = tab.evaluate("[...document.querySelectorAll('.times tr')].slice(1).map((row) => row.cells[1].innerText)")
    assert all(re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", text) for text in times)
    dots = tab.evaluate(
        "[...document.querySelectorAll('.roofline circle')].map((dot) => Number(dot.getAttribute('cy')))"
    )
    assert dots[1] < dots[0], "the tile is faster, so its dot stands higher"
    assert tab.evaluate("document.querySelectorAll('.roofline .peer').length") == 1


def test_the_roofline_stays_in_its_picture(product, open_page, tmp_path):
    fast, slow = 400e9, 2e9  # a kernel above what the machine was thought to do, and a machine of little arithmetic
    machine = MachineRates(19e9, ((1 << 19, 57e9), (1 << 27, 12e9)))
    times = [49152 / slow, 49152 / fast]
    entries = [replace(entry, seconds=time) for entry, time in zip(product.schedules, times, strict=True)]
    drawn = replace(product, work=Work(49152, 9216, "GFLOP/s"), machine=machine, schedules=tuple(entries), peers=())
    (tmp_path / "roofline.html").write_text(page(drawn), encoding="utf-8")
    tab = open_page(tmp_path / "roofline.html")
    places = tab.evaluate(
        """[...document.querySelectorAll('.roofline :is(.roof, circle)')].map((shape) => {
            const at = (name) => Number(shape.getAttribute(name));
            return shape.localName === 'circle' ? [at('cx'), at('cy')] : [at('x1'), at('y1'), at('x2'), at('y2')];
        })"""
    )
    assert "19 GFLOP/s, float32 arithmetic" in tab.evaluate("document.querySelector('.roofline').textContent")
    assert len(places) == 5
    for place in places:
        assert all(40 - 0.01 <= x <= 472 + 0.01 for x in place[::2]), place
        assert all(24 - 0.01 <= y <= 186 + 0.01 for y in place[1::2]), place
    assert all(place[0] < place[2] for place in places if len(place) == 4), "roofs run to the right"


@pytest.mark.parametrize("span", [19, 21, 4000])
def test_times_far_apart_are_on_a_logarithmic_scale_that_says_so(product, open_page, tmp_path, span):
    times = (1e-3 * span, 1e-3)
    entries = [replace(entry, seconds=time) for entry, time in zip(product.schedules, times, strict=True)]
    (tmp_path / "times.html").write_text(page(replace(product, schedules=tuple(entries), peers=(), machine=None)))
    tab = open_page(tmp_path / "times.html")
    table = tab.evaluate("document.querySelector('.times thead').innerText")
    widths = tab.evaluate("[...document.querySelectorAll('.times .bar i')].map((bar) => parseFloat(bar.style.width))")
    ticks = tab.evaluate(
        "[...document.querySelectorAll('.axis .tick')].map((tick) => [tick.innerText, parseFloat(tick.style.left)])"
    )
    assert widths[0] == 100
    if span < 20:
        assert "logarithmic" not in table
        assert ticks == []
        assert widths[1] == pytest.approx(100 / span)
        return
    assert "logarithmic scale" in table
    assert [text for text, _ in ticks] == {21: ["1 ms", "10 ms"], 4000: ["1 ms", "10 ms", "100 ms", "1 s"]}[span]
    assert ticks[0][1] == pytest.approx(widths[1]), "a bar ends at the tick of its time"


def test_rates_of_integers_are_no_flops(product, open_page, tmp_path):
    entries = [replace(entry, seconds=1e-5) for entry in product.schedules]
    counted = replace(product, work=Work(49152, 9216, "Gop/s"), machine=None, schedules=tuple(entries))
    (tmp_path / "integers.html").write_text(page(counted), encoding="utf-8")
    tab = open_page(tmp_path / "integers.html")
    heads = "[...document.querySelectorAll('.times th')].map((head) => head.textContent)"
    assert tab.evaluate(heads) == ["", "time", "Gop/s", "", ""]
    uncounted = replace(counted, work=Work(0, 9216, "GFLOP/s"))
    (tmp_path / "scan.html").write_text(page(uncounted), encoding="utf-8")
    assert open_page(tmp_path / "scan.html").evaluate(heads) == ["", "time", "", "", ""]


def test_narrow_windows_show_one_pane_at_a_time(product_page, open_page):
    tab = open_page(product_page, width=600, height=900)
    assert tab.evaluate(SHOWN) == ["Loop nest"]
    for title in ("Passes", "LLVM IR"):
        tab.press("ArrowRight")
        assert tab.evaluate(SHOWN) == [title]
        assert tab.evaluate(f"{column(title)}.contains(document.activeElement)"), "keys go to what is shown"
    tab.evaluate("[...document.querySelectorAll('#tabs button')].at(-1).click()")
    assert tab.evaluate(SHOWN) == ["Assembly"]
    assert tab.evaluate("document.querySelector('.column.front .row') !== null")
    assert tab.evaluate("document.documentElement.scrollWidth <= 600")


def test_notes_leave_the_code_of_narrow_columns_alone(tab):
    note = f"{row('Loop nest', 'for j_inner in')}.querySelector('.note')"
    assert tab.evaluate(f"{note} !== null")
    tab.evaluate(f"{column('Loop nest')}.style.flex = '0 0 200px'")
    tab.settle()
    assert tab.evaluate(f"{note} === null"), "there is no room beside the line"
    tab.press("[")
    costly = f"[...{column('Loop nest')}.querySelectorAll('.note')].map((note) => note.textContent)"
    assert tab.evaluate(costly) == ["!"]


def test_dark_and_light_differ_and_can_be_forced(tab):
    background = "getComputedStyle(document.body).backgroundColor"
    tab.dark(False)
    light = tab.evaluate(background)
    tab.dark()
    dark = tab.evaluate(background)
    assert light != dark
    tab.press("t")
    assert tab.evaluate(background) == light


def test_a_printed_page_has_all_lines(tab):
    assert tab.printed().startswith(b"%PDF")
    tab.evaluate("explorer.set({ theme: 'dark' })")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(background)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.evaluate(background) == "rgb(246, 246, 244)" != dark
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    cut = "[...document.querySelectorAll('.row')].filter((row) => row.scrollHeight > row.clientHeight + 1)"
    assert tab.evaluate(f"{cut}.map((row) => row.innerText)") == []
    tab.evaluate("explorer.press('w'), dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(f"{cut}.map((row) => row.innerText)") == []
    tab.evaluate("localStorage.clear()")
    tab.evaluate("explorer.views.forEach((view) => view.resize())")  # the paper is not as wide as the window
    text = tab.evaluate("document.body.innerText")
    assert "retq" in text
    assert "ret void" in text or "ret i32" in text


def test_names_of_a_document_stay_text(product, open_page, tmp_path):
    hostile = "<img src=x onerror='globalThis.broken=1'></script><script>globalThis.broken=1</script>"
    panes = [replace(p, title=hostile, lines=(hostile, *p.lines[1:])) for p in product.panes]
    entries = [replace(entry, name=hostile) for entry in product.schedules]
    (tmp_path / "hostile.html").write_text(
        page(replace(product, title=hostile, subtitle=hostile, panes=tuple(panes), schedules=tuple(entries)))
    )
    tab = open_page(tmp_path / "hostile.html")
    tab.press("c", "c", "s", "f", "d")
    assert tab.evaluate("globalThis.broken === undefined && document.querySelector('img') === null")
    assert tab.evaluate("document.querySelector('h1').textContent") == hostile
    assert tab.complaints() == []


def test_twenty_thousand_lines_of_assembly_open_at_once(product, open_page, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(page(enlarged(product, 20_000)), encoding="utf-8")
    assert path.stat().st_size < 5 << 20
    tab = open_page(path)
    assert tab.evaluate("explorer.panes.get(explorer.schedule.assembly).lines.length") >= 20_000
    assert tab.evaluate("performance.getEntriesByName('shown').length") == 1
    assert tab.evaluate("document.querySelectorAll('.row').length") < 1000
    assembly = "explorer.columns[4].views.at(-1)"
    tab.evaluate(f"{assembly}.scroller.scrollTop = 19000 * ROW_HEIGHT")
    tab.settle()
    tab.point(f"{assembly}.sheet.children[20]")
    assert tab.evaluate("explorer.hovered.line") > 18_000
    slowest = tab.evaluate(
        "(() => { const start = performance.now(); explorer.mark(); return performance.now() - start })()"
    )
    assert slowest < 200, "marking must keep up with the pointer"


def enlarged(document, lines):
    """The document with the code of its last schedule again and again, lowered and below, until it is that long; with
    other registers and constants each time, as equal text would be packed into almost nothing."""
    entry = document.schedules[-1]
    by_id = {pane.id: pane for pane in document.panes}
    times = -(-lines // len(by_id[entry.assembly].lines))
    shift = len(by_id[entry.passes[-1].pane].lines)
    for pane in [by_id[entry.passes[-1].pane], *(by_id[name] for name in (*entry.llvm, entry.assembly))]:
        step = shift if pane.role != "pass" else 0
        origins = tuple(tuple(o + k * step for o in line) for k in range(times) for line in pane.origins)
        copies = tuple(line for k in range(times) for line in varied(pane.lines, Random(k)))
        by_id[pane.id] = replace(pane, lines=copies, origins=origins)
    return replace(document, panes=tuple(by_id.values()))


def varied(lines, random):
    """The lines with other numbers: of vector registers, and those that do not belong to a name."""
    renamed = (re.sub(r"(?<=[xyz]mm)\d+", lambda _: str(random.randrange(16)), line) for line in lines)
    return [re.sub(r"(?<![\w.])\d+\b", lambda _: str(random.randrange(4096)), line) for line in renamed]


def test_no_file_of_the_page_reaches_for_the_network():
    assets = Path(lw.__file__).parent / "explorer" / "assets"
    for asset in assets.iterdir():
        found = re.findall(
            r"\b(?:https?:|fetch\(|XMLHttpRequest|WebSocket|import\(|innerHTML|eval\().*", asset.read_text()
        )
        assert all("www.w3.org/2000/svg" in text for text in found), (asset.name, found)
