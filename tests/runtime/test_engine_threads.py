"""Engines under threads, forks and interrupts, and the memory of many: each scenario in a process of its own, so that a
hang or a crash is one failed test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("engine_scenarios.py")


def run(scenario, *numbers, seconds=600):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(PROGRAM), scenario, *map(str, numbers)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"


@pytest.mark.parametrize(
    "scenario",
    [
        "several_engines_at_once",
        "forked_child_has_executors_that_are_free",
        "keyboard_interrupts_leave_all_executors_free",
        "interrupt_while_waiting_for_an_executor",
        "interrupt_among_threads_that_call_again_and_again",
        "exits_while_daemons_call",
        "exits_with_submitted_calls",
        "functions_that_wait_for_their_own_engine",
        "engines_that_call_each_other",
        "threads_that_hold_what_the_other_waits_for",
        "a_call_waits_for_a_function_that_ends",
        "child_that_began_in_a_function",
        "new_sets_of_executors_leave_errors_of_other_threads",
    ],
)
def test_engines_are_safe(scenario):
    run(scenario)


def test_engines_of_functions_are_safe_from_interrupts():
    run("interrupts_of_functions_leave_all_executors_free", 400)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or os.cpu_count() == 1, reason="needs cores to choose from")
def test_interrupts_leave_threads_on_the_cores_that_they_had():
    run("interrupts_leave_the_thread_on_its_cores", 400)


def test_eight_threads_on_two_executors_get_the_right_results():
    run("eight_threads_on_two_executors", 2)


@pytest.mark.slow
def test_eight_threads_on_two_executors_get_the_right_results_for_a_minute():
    run("eight_threads_on_two_executors", 60, seconds=900)  # of a loaded machine: the program itself tells a hang


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_engines_share_threads_only_where_they_do_not_live_at_once():
    run("engines_that_live_at_once_have_threads_of_their_own")


@pytest.mark.skipif(sys.platform != "linux", reason="reads resident memory from /proc")
@pytest.mark.parametrize(
    ("scenario", "count"),
    [
        ("engines_give_back_their_memory", 60),
        ("loaded_kernels_give_back_their_memory", 200),
        ("compiled_kernels_give_back_their_memory", 100),
    ],
)
def test_memory_of_what_is_freed_comes_back(scenario, count):
    run(scenario, count)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads resident memory from /proc")
@pytest.mark.parametrize(
    ("scenario", "count"), [("engines_give_back_their_memory", 500), ("compiled_kernels_give_back_their_memory", 2000)]
)
def test_memory_of_many_that_are_freed_comes_back(scenario, count):
    run(scenario, count, seconds=1800)
