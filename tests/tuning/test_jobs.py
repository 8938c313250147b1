"""Jobs as workers do them: compiled and measured for real, on tiny kernels; and candidates that are made to be bad."""

import pickle
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from injected_faults import BODIES, OUTCOMES, code_of

import loopwright as lw
from loopwright.artifact.function_bytes import from_bytes, to_bytes
from loopwright.tuning.candidate import TuningCandidate
from loopwright.tuning.jobs import compile_job, measure_job, refusal, run_job
from loopwright.tuning.outcome import Outcome, OutcomeKind
from loopwright.tuning.paired_rounds import RoundLimits
from loopwright.tuning.workers import LocalWorkers, do_all

A, B = lw.var("a", (16, 32)), lw.var("b", (32, 16))
MODEL = lw.Function([A, B], lw.nn.relu(lw.nn.matmul(A, B)))
LIMITS = RoundLimits(3, 3)


@pytest.fixture(scope="module")
def task():
    (found,) = lw.tasks(MODEL)
    return found


@pytest.fixture(scope="module")
def compiled(task):
    """The untuned code, and that of another candidate."""
    candidate = task.space().settle("matmul.direct", {}).candidate
    job = compile_job(task.uses[0].function, task.settings, [None, candidate], 60.0)
    return [Outcome.of(answer) for answer in run_job(job)["answers"]]


def function_target():
    return lw.resolve_target("native")


def measured(task, compiled, *codes, direct=False, seconds=300.0, threads=1):
    reference = (compiled[0].code, task.uses[0].inputs, 1)
    job = measure_job(
        task.settings.target, threads, [reference], [[code] for code in codes], LIMITS, 0, direct, seconds
    )
    return [Outcome.of(answer) for answer in run_job(job)["answers"]]


def test_code_is_compiled_as_asked(task, compiled):
    assert [outcome.kind for outcome in compiled] == [OutcomeKind.MEASURED] * 2
    assert compiled[0].nest != compiled[1].nest
    functions = [from_bytes(outcome.code) for outcome in compiled]
    assert [function.implementation for function in functions] == [task.untuned, "matmul.direct"]


def test_decisions_change_the_code(task, compiled):
    space = task.space()
    default, lower = (space.settle("matmul.paneled", wanted).candidate for wanted in ({}, {"rows": 2, "vectors": 1}))
    job = compile_job(task.uses[0].function, task.settings, [default, lower], 60.0)
    nests = [answer["nest"] for answer in run_job(job)["answers"]]
    assert nests[0] == compiled[0].nest != nests[1]


def test_what_cannot_be_compiled_is_refused_and_the_rest_is_compiled(task):
    bad = TuningCandidate("matmul.unheard", ())
    worse = TuningCandidate("matmul.paneled", (("rows", "many"),))
    good = task.space().settle("matmul.direct", {}).candidate
    job = compile_job(task.uses[0].function, task.settings, [bad, worse, good], 60.0)
    found = [Outcome.of(answer) for answer in run_job(job)["answers"]]
    assert [outcome.kind for outcome in found] == [OutcomeKind.REFUSED, OutcomeKind.REFUSED, OutcomeKind.MEASURED]
    assert "no such implementation" in found[0].detail
    assert "'rows' should be one of" in found[1].detail


def test_right_code_has_a_time(task, compiled):
    (found,) = measured(task, compiled, compiled[1].code)
    assert found.kind is OutcomeKind.MEASURED
    assert found.low <= found.high
    assert len(found.seconds) == len(found.ratios) == 3
    assert found.cpu == function_target().cpu


BAD = {kind: BODIES[kind] for kind in ("aborted", "hung", "failed", "not finite")}


def test_bad_code_of_each_kind_is_an_outcome(task, compiled):
    good = compiled[1].code
    codes = [code for body in BAD.values() for code in (code_of(compiled[0].code, body), good)]
    found = measured(task, compiled, *codes, seconds=10.0)
    assert [outcome.kind.value for outcome in found[::2]] == [OUTCOMES[kind] for kind in BAD]
    assert {outcome.kind for outcome in found[1::2]} == {OutcomeKind.MEASURED}


def test_results_that_are_wrong_are_told(task, compiled):
    (found,) = measured(task, compiled, code_of(compiled[0].code, BODIES["wrong result"]))
    assert found.kind is OutcomeKind.WRONG
    assert "output 0 is off by" in found.detail


def test_object_code_that_is_none_is_a_failure(task, compiled):
    function = from_bytes(compiled[0].code)
    broken = to_bytes(replace(function, object=b"no object at all"))
    found = measured(task, compiled, broken, compiled[1].code)
    assert found[0].kind in (OutcomeKind.FAILED, OutcomeKind.CRASHED)
    assert found[1].kind is OutcomeKind.MEASURED


def test_jobs_are_data(task, compiled):
    job = compile_job(task.uses[0].function, task.settings, [None], 60.0)
    plain = (str, bytes, int, float, bool, type(None))

    def check(value):
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                check(each)
        else:
            assert type(value) in plain

    check(job)
    reference = (compiled[0].code, 2, 1)
    check(measure_job(task.settings.target, 1, [reference], [[compiled[1].code]], LIMITS, 0, False, 20.0))


def test_a_worker_of_another_version_refuses(task):
    job = compile_job(task.uses[0].function, task.settings, [None, None], 60.0)
    job["versions"]["loopwright"] = "99.0"
    found = run_job(job)["answers"]
    assert [answer["kind"] for answer in found] == ["foreign worker"] * 2
    assert f"the worker has loopwright {lw.__version__} instead of 99.0" in found[0]["detail"]


def test_a_worker_with_another_cpu_refuses_to_measure(task, compiled):
    job = measure_job(task.settings.target, 1, [(compiled[0].code, 2, 1)], [[]], LIMITS, 0, False, 20.0)
    assert refusal(job) is None
    assert "the measurements are for z80" in refusal({**job, "machine": "z80"})


def test_a_worker_that_lacks_an_operator_refuses(task):
    job = compile_job(task.uses[0].function, task.settings, [None], 60.0)
    (item,) = job["items"]
    (found,) = run_job({**job, "items": [{**item, "key": "of other sources"}]})["answers"]
    assert found["kind"] == "foreign worker"
    assert "other operators, strategies or targets" in found["detail"]


def test_a_worker_says_which_operator_it_lacks(task):
    job = compile_job(task.uses[0].function, task.settings, [None], 60.0)
    (item,) = job["items"]
    graph = item["graph"].replace(b"\x09nn.matmul", b"\x09nn.marmul")
    (found,) = run_job({**job, "items": [{**item, "graph": graph}]})["answers"]
    assert found["kind"] == "foreign worker"
    assert found["detail"] == "the worker has other operators registered: there is no operator 'nn.marmul'"


# Workers.


def echo_jobs(task, count):
    return [compile_job(task.uses[0].function, task.settings, [None], 60.0) for _ in range(count)]


def test_workers_of_this_machine_answer(task):
    workers = LocalWorkers(2)
    try:
        found = do_all(workers, echo_jobs(task, 2))
    finally:
        workers.close()
    assert all(answer["answers"][0]["code"] for answer in found)


def test_a_pool_of_spawned_processes_answers(task):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        (found,) = do_all(pool, echo_jobs(task, 1))
    assert found["answers"][0]["code"]


class Losing:
    """Loses the workers of the first jobs."""

    def __init__(self, losses):
        self.losses, self.done = losses, 0

    def submit(self, function, job):
        future = Future()
        if self.losses > 0:
            self.losses -= 1
            future.set_exception(RuntimeError("the worker was killed"))
        else:
            self.done += 1
            future.set_result({"ready": {}, "answers": job["items"]})
        return future


def plain_jobs(count):
    return [{"items": [number], "seconds": 1.0} for number in range(count)]


def test_a_job_whose_worker_is_lost_goes_to_another_and_none_is_done_twice():
    workers, pauses = Losing(3), []
    found = do_all(workers, plain_jobs(4), sleep=pauses.append)
    assert [answer["answers"] for answer in found] == [[0], [1], [2], [3]]
    assert workers.done == 4
    assert pauses == [0.0, 2.0]


def test_a_job_that_loses_every_worker_has_no_answer():
    assert do_all(Losing(100), plain_jobs(2), sleep=lambda _: None) == [None, None]


def test_a_child_whose_asker_is_killed_ends_by_itself(task, compiled, tmp_path):
    """Even in code that hangs: its own clock ends it."""
    hangs = code_of(compiled[0].code, BAD["hung"])
    job = measure_job(task.settings.target, 1, [(compiled[0].code, 2, 1)], [[hangs]], LIMITS, 0, False, 0.5)
    path = tmp_path / "job"
    path.write_bytes(pickle.dumps(job))
    program = f"from loopwright.tuning.child import main; import sys; sys.stdin = open({str(path)!r}); main()"
    child = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=300)
    assert child.returncode == -14  # SIGALRM


# What is compared.


def test_outliers_may_reach_no_further_than_the_definition_lets_them_if_asked():
    from loopwright.tuning.checks import Check, fault_of

    ordinary = [np.array([1.0, 2.0, 3.0], np.float32)]
    expected = [np.array([1.0, 2.0, 3000.0], np.float32)]
    smeared = [np.array([1.01, 2.0, 3000.0], np.float32)]
    assert fault_of(Check([], expected, None), smeared) is None
    assert fault_of(Check([], expected, ordinary), smeared).kind is OutcomeKind.WRONG
    assert fault_of(Check([], expected, ordinary), expected) is None


def test_integers_agree_exactly():
    from loopwright.tuning.checks import Check, fault_of

    expected = [np.array([1, 2], np.int32)]
    assert fault_of(Check([], expected, None), [np.array([1, 3], np.int32)]).kind is OutcomeKind.WRONG
    assert fault_of(Check([], expected, None), expected) is None
