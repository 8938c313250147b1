"""Selection: which implementation serves a call, what the report says, and that the others are left alone."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.model.lower_function import lower_call
from loopwright.compiler.selection import select as selection
from loopwright.compiler.selection.select import get_valid_implementations, select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.strategy import OpStrategy, schedule_default

TARGET = lw.resolve_target("x86-64-v3")


def double(attrs, inputs, result):
    return te.compute(result.shape, lambda *i: inputs[0][i] * 2.0, name="double")


def never(*arguments):
    raise AssertionError("this implementation was not chosen")


def call_of(extent=8):
    return lw.nn.relu(lw.var("x", (extent,)))


@pytest.fixture
def offer(monkeypatch):
    """``offer(("name", plevel, clauses…), …)`` is what the strategy of every operator gives from here on."""

    def set_offers(*offers, compute=never, schedule=never):
        strategy = OpStrategy()
        for name, plevel, *clauses in offers:
            with strategy.specialized(*clauses):
                strategy.add_implementation(compute, schedule, name, plevel)
        monkeypatch.setattr(selection, "strategy_of", lambda *_: strategy)

    return set_offers


def test_the_highest_priority_wins(offer):
    offer(("low", 10), ("high", 20), ("middle", 15))
    found = select_implementation(call_of(), CompileSettings(TARGET))
    assert found.chosen.name == "high"
    assert found.reason == "highest priority 20 of 3"
    assert [c.implementation.name for c in found.candidates] == ["low", "high", "middle"]


def test_the_first_registered_of_equals_wins_and_the_report_says_so(offer):
    offer(("first", 10), ("second", 10), ("third", 5))
    found = select_implementation(call_of(), CompileSettings(TARGET))
    assert found.chosen.name == "first"
    assert found.reason == "highest priority 10 of 3, the first registered of 2 (a tie with second)"


def test_the_least_cost_of_equal_priority_wins_and_an_unknown_one_comes_last(monkeypatch):
    strategy = OpStrategy()
    for name, plevel, cost in (("low", 5, 1.0), ("unknown", 10, None), ("dear", 10, 9.0), ("cheap", 10, 3.0)):
        strategy.add_implementation(never, never, name, plevel, cost=cost)
    strategy.add_implementation(never, never, "as cheap", cost=3.0)
    monkeypatch.setattr(selection, "strategy_of", lambda *_: strategy)
    found = select_implementation(call_of(), CompileSettings(TARGET))
    assert found.chosen.name == "cheap"
    assert found.reason == (
        "highest priority 10 of 5, the least cost of 4, the first registered of 2 (a tie with as cheap)"
    )


def test_a_clause_that_fails_rejects_and_is_named(offer):
    extent = te.const(8, "index")
    offer(("wide", 20, extent >= 16), ("plain", 10))
    found = select_implementation(call_of(), CompileSettings(TARGET))
    wide, plain = found.candidates
    assert found.chosen.name == "plain"
    assert found.reason == "the only one"
    assert (wide.valid, wide.guarded, wide.rejected) == (False, False, f"needs {wide.failed[0]}")
    assert (plain.valid, plain.guarded, plain.rejected) == (True, False, None)
    assert [c.implementation.name for c in get_valid_implementations(call_of(), CompileSettings(TARGET))] == ["plain"]


def test_a_clause_that_is_open_makes_a_guarded_candidate_which_is_not_chosen(offer):
    n = te.var("n")
    offer(("wide", 20, n >= 16), ("plain", 10))
    wide, _ = select_implementation(call_of(n), CompileSettings(TARGET)).candidates
    assert (wide.valid, wide.guarded, wide.rejected) == (False, True, None)
    assert wide.guards == ("n >= 16",)
    assert select_implementation(call_of(n), CompileSettings(TARGET)).chosen.name == "plain"


def test_where_none_is_valid_the_error_says_why_for_each(offer):
    n = te.var("n")
    offer(("wide", 20, n >= 16), ("never", 10, te.const(8, "index") >= 16))
    with pytest.raises(
        lw.SelectionError, match=r"serves relu\(float32\[n\]\): wide: holds only where n >= 16; never: "
    ):
        select_implementation(call_of(n), CompileSettings(TARGET))


def test_computes_and_schedules_of_losers_are_never_called(monkeypatch):
    strategy = OpStrategy()
    strategy.add_implementation(never, never, "loser", 10)
    strategy.add_implementation(double, schedule_default, "winner", 20)
    strategy.add_implementation(never, never, "equal", 20)
    monkeypatch.setattr(selection, "strategy_of", lambda *_: strategy)
    made = lower_call(call_of(), (te.placeholder((8,), "float32", name="x"),), CompileSettings(TARGET))
    assert made.implementation.name == "winner"
    assert made.outputs[0].name == "double"


def test_strict_precision_refuses_what_sums_in_an_order_of_its_own(monkeypatch):
    strategy = OpStrategy()
    strategy.add_implementation(never, never, "library", 20, keeps_order=False)
    strategy.add_implementation(never, never, "own", 10)
    monkeypatch.setattr(selection, "strategy_of", lambda *_: strategy)
    assert select_implementation(call_of(), CompileSettings(TARGET)).chosen.name == "library"
    found = select_implementation(call_of(), CompileSettings(TARGET, CodegenOptions("strict")))
    assert found.chosen.name == "own"
    assert found.candidates[0].rejected == "needs sums in the order of the definition (strict precision)"


# By records.


def recorded(name, seconds, extent=8, **more):
    return lw.TuningRecord.of(call_of(extent), more.pop("target", TARGET), name, [seconds], **more)


def select(*records, extent=8):
    return select_implementation(call_of(extent), CompileSettings(TARGET, records=lw.TuningRecords(records)))


def test_the_cheapest_recorded_implementation_wins_whatever_its_priority(offer):
    offer(("low", 10), ("high", 20), ("middle", 15))
    found = select(recorded("middle", 2e-3), recorded("low", 1e-3))
    assert found.chosen.name == "low"
    assert found.reason == "recorded on this target: 1.00 ms, the cheapest of 2 records"
    costs = [c.recorded.record.cost if c.recorded else None for c in found.candidates]
    assert costs == [1e-3, None, 2e-3]


def test_records_of_other_workloads_and_targets_do_not_count(offer):
    offer(("low", 10), ("high", 20))
    far = lw.resolve_target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    assert select(recorded("low", 1e-3, extent=9), recorded("low", 1e-3, target=far)).chosen.name == "high"


def test_the_reason_says_how_close_the_recorded_target_is(offer):
    offer(("low", 10), ("high", 20))
    other = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake")
    found = select(recorded("low", 1e-6, target=other))
    assert found.chosen.name == "low"
    assert found.reason == "recorded on another cpu of these keys: 1.00 µs"
    closer = select(recorded("low", 1e-6, target=other), recorded("high", 1.0))
    assert closer.reason == "recorded on this target: 1.00 s"


def test_equal_costs_are_told_as_a_tie(offer):
    offer(("low", 10), ("high", 20))
    found = select(recorded("low", 1e-3), recorded("high", 1e-3))
    assert found.chosen.name == "low"
    assert found.reason.endswith("the cheapest of 2 records, the first recorded of 2 that cost the same")


def test_an_implementation_without_a_record_never_beats_a_higher_priority(offer):
    offer(("low", 10), ("high", 20), ("higher", 30))
    assert select(recorded("unknown", 1e-9)).chosen.name == "higher"


def test_records_that_do_not_fit_are_passed_over_with_the_reason(offer):
    offer(("wide", 20, te.const(8, "index") >= 16), ("plain", 10), compute=double, schedule=schedule_default)
    trace = lw.Trace.from_json('{"version": 1, "steps": [{"primitive": "unroll", "stage": "none", "loop": "none#0"}]}')
    given = [recorded("gone", 1e-6), recorded("wide", 2e-6), recorded("plain", 3e-6, decisions={"rows": 4})]
    found = select(*given, recorded("plain", 1, trace=trace))
    assert found.chosen.name == "plain"
    assert found.record is None
    assert found.reason == "the only one"
    unknown, invalid, decided, traced = found.notes
    assert unknown == "passed over the record of gone, 1.00 µs on this target: relu has no such implementation here"
    assert "needs" in invalid
    assert "plain has no decision 'rows': it decides nothing" in decided
    assert "plain by a trace" in traced
    assert "step 1 of 1" in traced


def test_a_symbolic_shape_goes_by_priority(offer):
    offer(("low", 10), ("high", 20))
    assert select(recorded("low", 1e-3), extent=te.var("n")).chosen.name == "high"
