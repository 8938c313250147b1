"""Named decisions: which values a schedule takes, and what becomes of values from elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te
from loopwright.lowering.decisions import Outputs

A = te.placeholder((24, 10), name="A")


def decided(wanted=None, extent=24):
    """A schedule whose second decision depends on its first."""
    X = te.placeholder((extent, 10), name="X")
    B = te.compute((extent, 10), lambda i, j: X[i, j] * 2.0, name="B")
    s = lw.create_schedule(B, wanted)
    rows = s.decide("rows", [size for size in (1, 2, 4, 8, 16) if extent % size == 0], 4)
    unrolled = s.decide("unrolled", [size for size in (1, 2, 4) if rows % size == 0], 1)
    order = s.decide("order", ("rows", "columns"), "rows")
    if s.decide("vectors", [False, True], True):
        s[B].vectorize("j")
    if order == "columns":
        s[B].reorder("j", "i")
    _, inner = s[B].split("i", factor=rows)
    if unrolled > 1:
        s[B].unroll(s[B].split(inner, factor=unrolled)[1])
    return s, X, B


def values(s):
    return {decision.name: decision.value for decision in s.decisions}


def test_without_values_a_schedule_takes_its_defaults_and_the_trace_has_them_as_steps():
    s, _, _ = decided()
    assert values(s) == {"rows": 4, "unrolled": 1, "order": "rows", "vectors": True}
    assert [str(step) for step in s.trace[:2]] == [
        's.decide("rows", [1, 2, 4, 8], 4)',
        's.decide("unrolled", [1, 2, 4], 1)',
    ]
    assert not s.departures


def test_values_by_name_are_taken_and_later_legal_values_follow():
    s, _, B = decided({"rows": 2, "order": "columns", "vectors": False})
    assert values(s) == {"rows": 2, "unrolled": 1, "order": "columns", "vectors": False}
    assert s.decisions[1].legal == (1, 2)
    assert [loop.name for loop in s[B].loops] == ["j", "i_outer", "i_inner"]
    assert 's.decide("rows", [1, 2, 4, 8], 4, value=2)' in str(s.trace)


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        ({"rows": 16}, {"rows": 8}),
        ({"rows": 3}, {"rows": 2}),  # the smaller of two as near
        ({"rows": -5}, {"rows": 1}),
        ({"rows": 2, "unrolled": 4}, {"rows": 2, "unrolled": 2}),
        ({"order": "tiles"}, {"order": "rows"}),
    ],
)
def test_an_illegal_value_becomes_the_nearest_number_or_else_the_default(wanted, taken):
    s, _, _ = decided(wanted)
    assert {name: value for name, value in values(s).items() if name in wanted} == taken
    moved = [name for name in wanted if wanted[name] != taken[name]]
    assert [text.split()[0] for text in s.departures] == moved
    for name, text in zip(moved, s.departures, strict=True):
        assert text.startswith(f"{name} is {taken[name]!r} here, as {wanted[name]!r} is none of ")


@pytest.mark.parametrize("wanted", [{"rows": True}, {"rows": "4"}, {"rows": 4.0}, {"vectors": 1}, {"order": 2}])
def test_a_value_of_a_type_that_no_legal_value_has_is_an_error(wanted):
    (name,) = wanted
    with pytest.raises(lw.ScheduleError, match=f"the decision '{name}' should be one of .*, found {wanted[name]!r}"):
        decided(wanted)


@given(st.integers(1, 64), st.dictionaries(st.sampled_from(["rows", "unrolled"]), st.integers(-3, 40)))
def test_a_trace_replays_to_the_same_nest_and_values_whatever_was_decided(extent, wanted):
    if extent % 4:
        extent *= 4
    s, X, B = decided(wanted, extent)
    again = lw.create_schedule(B)
    again.replay(lw.Trace.from_json(s.trace.to_json()))
    assert (str(again), again.decisions) == (str(s), s.decisions)
    python = lw.create_schedule(B)
    exec(s.trace.python(), {"s": python})
    assert python.trace == s.trace
    x, found = np.random.default_rng(extent).random((extent, 10), np.float32), np.empty((extent, 10), np.float32)
    lw.interpret(lw.lower(again, [X, B]))(x, found)
    np.testing.assert_array_equal(found, x * 2)


def test_a_decision_changes_nothing_of_the_nest():
    B = te.compute((24, 10), lambda i, j: A[i, j] * 2.0, name="B")
    s = lw.create_schedule(B)
    before = str(s)
    assert s.decide("steps", range(1, 5), 2) == 2
    assert (str(s), s.diff()) == (before, "")


def test_outputs_bring_the_values_that_were_chosen_for_their_schedule():
    B = te.compute((24, 10), lambda i, j: A[i, j] * 2.0, name="B")
    outputs = Outputs.of([B], {"rows": 8})
    assert outputs == (B,)
    assert lw.create_schedule(outputs).decide("rows", [2, 4, 8], 2) == 8
    assert lw.create_schedule(outputs, {"rows": 4}).decide("rows", [2, 4, 8], 2) == 4


def test_copies_know_the_values_and_integers_of_numpy_are_plain():
    B = te.compute((24, 10), lambda i, j: A[i, j] * 2.0, name="B")
    s = lw.create_schedule(B, {"rows": np.int64(4)}).copy()
    assert s.decide("rows", list(np.arange(1, 9)), np.int32(2)) == 4
    assert s.trace.to_json().count("4") == 2  # among the legal ones, and taken
    assert [type(value) for value in s.decisions[0].legal] == [int] * 8


def test_strict_builds_refuse_what_changes_the_order_of_a_sum_by_a_decision():
    def folded(wanted):
        r = te.reduce_axis((0, 10), name="r")
        C = te.compute((24,), lambda i: te.sum(A[i, r], axis=r), name="C")
        s = lw.create_schedule(C, wanted)
        lanes = s.decide("lanes", [1, 2], 1, reorders_sum=True)
        s[C].split(r, factor=lanes)
        return s, C

    for wanted, marked in (({}, False), ({"lanes": 1}, False), ({"lanes": 2}, True)):
        s, C = folded(wanted)
        lw.build(s, [A, C])
        assert s.trace.python().endswith(f"r, factor={wanted.get('lanes', 1)})")
        if not marked:
            lw.build(s, [A, C], precision="strict")
            continue
        with pytest.raises(lw.ScheduleError, match="the decision 'lanes' changes it where it is 2"):
            lw.build(s, [A, C], precision="strict")
        again = lw.create_schedule(C)
        again.replay(lw.Trace.from_json(s.trace.to_json()))
        with pytest.raises(lw.ScheduleError, match="the decision 'lanes' changes it where it is 2"):
            lw.build(again, [A, C], precision="strict")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", [1], 1), "a decision has a name, found ''"),
        (("rows", [], 1), "the legal values of decision 'rows' are numbers, bools or texts, found none"),
        (("rows", [1, 2.5], 1), "are numbers, bools or texts, found 2.5"),
        (("rows", [1, 2], 3), "the default of decision 'rows' should be one of 1, 2, found 3"),
        (("rows", [0, 1], True), "the default of decision 'rows' should be one of 0, 1, found True"),
        (("rows", "12", "1"), "the legal values of decision 'rows' are a sequence, found '12'"),
        (("rows", 4, 4), "the legal values of decision 'rows' are a sequence, found 4"),
        (("taken", [1], 1), "the schedule decides 'taken' already; give each decision a name of its own"),
    ],
)
def test_what_is_no_decision_is_refused_and_leaves_the_schedule_as_it_was(arguments, message):
    B = te.compute((24, 10), lambda i, j: A[i, j] * 2.0, name="B")
    s = lw.create_schedule(B)
    s.decide("taken", [1, 2], 2)
    with pytest.raises(lw.ScheduleError) as error:
        s.decide(*arguments)
    assert message in str(error.value)
    assert len(s.trace) == len(s.decisions) == 1


def test_a_value_that_is_given_with_the_call_has_to_be_legal():
    B = te.compute((24, 10), lambda i, j: A[i, j] * 2.0, name="B")
    with pytest.raises(lw.ScheduleError, match="the value of decision 'rows' should be one of 1, 2, found 3"):
        lw.create_schedule(B).decide("rows", [1, 2], 1, value=3)


def test_a_trace_whose_decision_is_forged_names_the_step():
    B = te.compute((24, 10), lambda i, j: A[i, j] * 2.0, name="B")
    step = '{"primitive": "decide", "name": "rows", "legal": [1, 2], "default": 1, "value": 7}'
    trace = lw.Trace.from_json(f'{{"version": 2, "steps": [{step}]}}')
    with pytest.raises(lw.TraceError, match=r"step 1 of 1, s\.decide\(.*value=7\), is not legal for this schedule"):
        lw.create_schedule(B).replay(trace)
