"""Timings of compilations: a tree of stages, whose counts and seconds hold those of their parts."""

import json
import threading

import pytest

from loopwright.base.timing import CURRENT, CompileTiming, TimedStage, add_part, merged, timed
from loopwright.ir.expr import Var
from loopwright.ir.facts import NO_FACTS
from loopwright.ir.simplify import simplify


def test_a_stage_counts_nodes_and_simplifications_of_its_parts():
    i = Var("i")
    with TimedStage("outer") as outer:
        with TimedStage("inner") as inner:
            made = i * 12_345 + 54_321 - 54_321
        simpler = simplify(made, NO_FACTS)
    assert simpler is i * 12_345
    assert inner.timing.nodes == 5, "two constants, a product, a sum, a difference"
    assert inner.timing.simplifications == 0
    assert outer.timing.simplifications == 1
    assert outer.timing.visits > 0
    assert outer.timing.nodes >= 5
    assert outer.timing.parts == (inner.timing,)
    assert outer.timing.seconds >= inner.timing.seconds


def test_a_stage_ends_with_an_error_in_it():
    with pytest.raises(ValueError, match="no"), TimedStage("outer") as outer:
        raise ValueError("no")
    assert outer.timing.name == "outer"
    assert CURRENT.get() is None


def test_stages_of_other_threads_are_not_parts():
    def work():
        with TimedStage("elsewhere"):
            pass

    with TimedStage("here") as here:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert here.timing.parts == ()


def test_timings_of_other_processes_become_parts():
    far = CompileTiming("far", "function", 2.0, nodes=7, parts=(CompileTiming("lower", "stage", 1.0, nodes=7),))
    with TimedStage("here") as here:
        add_part(far)
    add_part(far)  # nobody counts here
    assert here.timing.nodes == 7
    assert here.timing.functions == (far,)


def test_a_function_can_be_a_stage():
    def doubled(x, times=2):
        return times * x

    with TimedStage("outer") as outer:
        assert timed(doubled, 4, times=3) == 12
    assert [part.name for part in outer.timing.parts] == ["doubled"]


def test_merged_timings_have_the_sums_of_those_of_a_name():
    parts = [
        CompileTiming("lower", "stage", 1.0, 3, 2, 1, 5, (CompileTiming("unroll", "stage", 0.5, 3),)),
        CompileTiming("llvm", "stage", 4.0),
        CompileTiming("lower", "stage", 2.0, 30, 20, 10, 50, (CompileTiming("unroll", "stage", 1.0, 4),)),
    ]
    lower, llvm = merged(parts)
    assert (lower.seconds, *(getattr(lower, count) for count in CompileTiming.COUNTS)) == (3.0, 33, 22, 11, 55)
    assert lower.parts == (CompileTiming("unroll", "stage", 1.5, 7),)
    assert llvm == parts[1]


def test_the_text_has_stages_of_all_functions_summed_and_functions_apart():
    lower = [CompileTiming("lower", "stage", seconds, nodes=1000) for seconds in (1.0, 2.0)]
    functions = tuple(CompileTiming(f"fused_{k}", "function", 1.0 + k, parts=(part,)) for k, part in enumerate(lower))
    parts = CompileTiming("tiny", "stage", 1e-6), CompileTiming("all", "stage", 3.0, parts=functions)
    whole = CompileTiming("compile", "stage", 4.0, parts=parts)
    stages, slowest = str(whole).split("\n\n")
    assert "tiny" not in stages
    assert [line.split()[0] for line in stages.splitlines()[2:]] == ["compile", "all", "lower"]
    assert "75.0%" in stages.splitlines()[-1]
    assert "2,000" in str(CompileTiming("compile", "stage", 4.0, 2000))
    assert [line.split()[0] for line in slowest.splitlines()[2:]] == ["fused_1", "fused_0"]
    assert json.loads(json.dumps(whole.to_json()))["parts"][1]["parts"][0]["parts"][0]["nodes"] == 1000
