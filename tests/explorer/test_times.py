"""What a page says of times: of schedules and peers that can be compared, and what it refuses."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.explorer.explore import document

TARGET = lw.resolve_target("native")


def product(kind="float32"):
    """Its inputs come in the order B, A: that in which the definition reads them."""
    A, B = te.placeholder((6, 8), kind, name="A"), te.placeholder((8, 4), kind, name="B")
    r = te.reduce_axis((0, 8), name="r")
    return te.compute((6, 4), lambda i, j: te.sum(B[r, j] * A[i, r], axis=r), name="C")


def test_schedules_of_another_compute_than_the_first_have_no_times():
    X = te.placeholder((16, 8), name="X")
    Y = te.compute((16, 8), lambda i, j: X[i, j] + 1.0, name="Y")
    Z = te.compute((8,), lambda i: Y[0, i], name="Z")
    given = {"y": lw.create_schedule(Y), "z": lw.create_schedule(Z), "again": lw.create_schedule(Y)}
    shown = document(given, TARGET, "f")
    assert [entry.seconds is None for entry in shown.schedules] == [False, True, False]
    assert shown.work.operations == 128


def test_names_that_are_no_texts_become_texts():
    shown = document({16: lw.create_schedule(product())}, TARGET, "f", peers={7: lambda b, a: a @ b})
    assert [entry.name for entry in shown.schedules] == ["16"]
    assert [peer.name for peer in shown.peers] == ["7"]


def test_a_peer_that_fails_is_named_with_what_it_was_given():
    said = r"the peer 'numpy' fails on \[B: float32\[8, 4\], A: float32\[6, 8\]\]: ValueError: matmul"
    with pytest.raises(lw.RuntimeArgumentError, match=said):
        document({"plain": lw.create_schedule(product())}, TARGET, "f", peers={"numpy": np.matmul})


@pytest.mark.parametrize("schedules", [[], {}, {"a": 7}])
def test_what_is_no_dict_of_schedules_is_refused(schedules, tmp_path):
    with pytest.raises(lw.RuntimeArgumentError, match="expected schedules by their names, found "):
        lw.explore(schedules, tmp_path / "page.html")
    with pytest.raises(lw.RuntimeArgumentError, match="expected schedules by their names, found "):
        lw.explore([lw.create_schedule(product())], tmp_path / "page.html")


@pytest.mark.parametrize(("kind", "known"), [("float32", True), ("int8", False), ("int32", False)])
def test_the_roofline_is_that_of_floats(kind, known):
    shown = document({"plain": lw.create_schedule(product(kind))}, TARGET, "f")
    assert shown.schedules[0].seconds > 0
    assert (shown.machine is not None) is known
    assert shown.work.rate_unit == ("GFLOP/s" if known else "Gop/s")


def test_the_interpreter_is_not_timed(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_INTERPRET", "1")
    shown = document({"plain": lw.create_schedule(product())}, TARGET, "f")
    assert shown.schedules[0].seconds is None
    assert shown.subtitle.endswith(
        "no times: f runs in the interpreter (LOOPWRIGHT_INTERPRET), whose time says nothing"
    )


def test_a_page_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(lw.RuntimeArgumentError, match=r"the page cannot be written to .*page\.html: No such file or"):
        lw.explore(lw.create_schedule(product()), tmp_path / "no" / "page.html", measure=False)
