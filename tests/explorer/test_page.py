"""Pages hold all of a document, and nothing that a document says becomes markup or script."""

import base64
import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.explorer.document import Document, Pane, PassEntry, ScheduleEntry, changed_lines
from loopwright.explorer.page import packed_json, page

HOSTILE = "</script><script>globalThis.broken = true</script><img src=x onerror='broken=1'> & \" \u2028 \u2029 \ud800"


def small_document(text):
    """A document in which every name and line is the text."""
    panes = (
        Pane("compute", "compute", text, (text,)),
        Pane("nest", "nest", text, (text, f"    {text}"), "compute", ((1,), ())),
        Pane("steps", "steps", text, (text,), "nest", ((1, 2),)),
        *(Pane(name, "pass", text, (text,), "nest", ((1,),)) for name in ("pass", "lowered")),
        Pane("llvm", "llvm", text, (text,), "lowered", ((1,),)),
        Pane("assembly", "assembly", text, (text,), "lowered", ((1,),)),
    )
    passes = (PassEntry(text, text, "pass"), PassEntry(text, text, "lowered"))
    entry = ScheduleEntry(text, "compute", "steps", (0,), ("nest",), passes, ("llvm", "llvm"), "assembly")
    return Document(text, text, panes, (entry,))


def test_what_a_document_says_cannot_leave_its_script():
    found = page(small_document(HOSTILE))
    assert found.count("<script") == found.count("</script") == 2
    assert "<img" not in found
    data = re.search(r'<script type="text/plain" id="document">([A-Za-z0-9+/=]*)</script>', found)[1]
    assert json.loads(zlib.decompress(base64.b64decode(data)))["schedules"][0]["name"] == HOSTILE
    found.encode()


def test_the_policy_of_a_page_lets_nothing_in_but_its_own_script_and_style():
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page(small_document("x")))[1]
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'", policy)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page(small_document("x")))


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="Out of range float values"):
        packed_json({"seconds": float("nan")})


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_the_changes_of_a_text_make_it_from_the_one_before(before, after):
    made, at = [], 0
    for old_start, old_end, new_start, new_end in changed_lines(before, after):
        made += before[at:old_start] + after[new_start:new_end]
        at = old_end
    assert made + before[at:] == after


def test_the_changes_of_long_texts_are_found_at_once():
    before = [str(k % 7) for k in range(30_000)]
    after = ["x", *before[1:15_000], "y", *before[15_000:]]
    assert changed_lines(before, [*before, "z"]) == [(30_000, 30_000, 30_000, 30_001)]
    assert changed_lines(before, after) == [(0, 15_000, 0, 15_001)]
