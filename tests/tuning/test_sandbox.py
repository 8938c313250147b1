"""Whatever candidates do to the process that they are in, each has an outcome, and the job goes on."""

import random
import threading

import pytest
from tuning_children import COMMAND

from loopwright.tuning.sandbox import Interrupted, in_children


def answers(*items, start="fine", seconds=300.0, **more):
    job = {"items": list(items), "seconds": seconds, "start": start}
    return in_children(COMMAND, job, {}, **more)["answers"]


def kinds(*items, **more):
    return [answer["kind"] for answer in answers(*items, **more)]


def test_all_is_answered_in_order():
    found = answers("a", "b", "c")
    assert [answer["detail"] for answer in found] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("item", "kind", "detail"),
    [
        ("abort", "crashed", "its process died of SIGABRT: LLVM ERROR: out of patience"),
        ("crash", "crashed", "its process died of SIGSEGV"),
        ("exit", "crashed", "its process died of exit code 3"),
        ("hang", "hung", "it gave no answer in time"),
    ],
)
def test_what_ends_a_child_is_an_outcome_and_the_others_are_answered(item, kind, detail):
    seconds = 3.0 if item == "hang" else 300.0
    found = answers("a", item, "b", item, seconds=seconds)
    assert [answer["kind"] for answer in found] == ["measured", kind, "measured", kind]
    assert found[1]["detail"] == found[3]["detail"] == detail


def test_an_answer_that_is_none_counts_as_a_crash():
    assert kinds("a", "babble", "b") == ["measured", "crashed", "measured"]


def test_a_child_that_does_not_get_ready_answers_for_all():
    found = answers("a", "b", start="abort")
    assert [answer["kind"] for answer in found] == ["crashed", "crashed"]
    assert "before it tried anything" in found[0]["detail"]
    assert kinds("a", "b", start="hang", start_seconds=0.3) == ["hung", "hung"]


def test_many_bad_candidates_neither_end_nor_falsify_a_job():
    rng = random.Random(5)
    items = [rng.choice(["fine", "fine", "abort", "crash", "exit"]) for _ in range(40)]
    expected = ["measured" if item == "fine" else "crashed" for item in items]
    assert kinds(*items) == expected


def test_a_job_that_is_called_off_is_no_outcome_but_an_error():
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(Interrupted):
        answers("hang", seconds=300.0, stop=stop)


def test_large_jobs_and_answers_pass():
    item = "x" * 1_000_000
    assert [answer["detail"] for answer in answers(item, item)] == [item, item]
