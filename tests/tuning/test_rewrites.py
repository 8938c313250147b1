"""Rewrites of calls: which there are, which a record names, and the search that measures the model with each."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.api.model_graph import planned_graph
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.layout.layout_planning import plan_layouts
from loopwright.compiler.layout.recorded_rewrite import recorded_rewrite, rewrite_name, rewrite_workload
from loopwright.compiler.passes.write_out_attention import FUSED, WRITTEN_OUT, is_attention
from loopwright.compiler.selection.choices import call_text
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Call, Var
from loopwright.graph.visit import post_order
from loopwright.ops.families.attention.written_out import written_out
from loopwright.tuning.journal import Journal
from loopwright.tuning.model_search import TunedModel, search_model
from loopwright.tuning.outcome import Outcome, OutcomeKind
from loopwright.tuning.rewrite_search import RewriteSearch
from loopwright.tuning.rewrite_tasks import rewrite_tasks, unplanned
from loopwright.tuning.searcher import searcher_named

TARGET = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
SETTINGS = CompileSettings(TARGET, CodegenOptions())


def network():
    """Two equal convolutions with a function between, which Winograd's transform suits."""
    rng = np.random.default_rng(0)
    x = lw.var("x", (1, 64, 28, 28))
    weights = [lw.const(0.1 * rng.standard_normal((64, 64, 3, 3), dtype=np.float32)) for _ in range(2)]
    y = lw.nn.relu(lw.nn.conv2d(x, weights[0], padding=1))
    return lw.Function([x], lw.nn.conv2d(y, weights[1], padding=1))


@pytest.fixture(scope="module")
def graph():
    return planned_graph(network(), None, unplanned(SETTINGS), False)


@pytest.fixture(scope="module")
def task(graph):
    (task,) = rewrite_tasks(graph, SETTINGS)
    return task


def record(task, rewrite, target=TARGET):
    return lw.TuningRecord.of_workload(task.workload, target, rewrite, [1.0])


def rewrites_in(plan):
    return [rewrite_name(choice.chosen.layouts) for choice in plan.choices if choice.call.op.name == "nn.conv2d"]


def operators_of(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


def test_the_rewrites_of_equal_calls_are_one_task(graph, task):
    assert task.call.op.name == "nn.conv2d"
    assert task.workload.op == "rewrite:nn.conv2d"
    assert task.planned.startswith("nn.winograd_conv2d(")
    assert task.planned not in task.rewrites
    assert 1 <= len(task.rewrites) <= 4
    assert 0.9 < task.share <= 1
    assert str(task).startswith("rewriting nn.conv2d(float32[1, 64, 28, 28]")
    assert rewrite_tasks(graph, SETTINGS, ["nn.matmul"]) == ()
    strict = CompileSettings(TARGET, CodegenOptions(precision="strict"))
    assert rewrite_tasks(graph, strict) == ()


@pytest.mark.parametrize("rewrite", ["(NCHW8c, OIHW8i16o)", "(-, -)"])
def test_a_call_is_made_in_the_rewrite_that_a_record_names(graph, task, rewrite):
    plain = plan_layouts(graph, SETTINGS)
    assert operators_of(plain.function).count("nn.winograd_conv2d") == 2
    settings = SETTINGS.with_records(lw.TuningRecords([record(task, rewrite)]))
    planned = operators_of(plan_layouts(graph, settings).function)
    assert planned.count("nn.conv2d") == 2
    assert "nn.winograd_conv2d" not in planned
    assert ("layout_transform" in planned) == (rewrite != "(-, -)")
    assert recorded_rewrite(task.call, settings) == rewrite


def test_a_rewrite_that_is_not_there_changes_nothing(graph, task):
    settings = SETTINGS.with_records(lw.TuningRecords([record(task, "nn.magic(-, -)")]))
    assert operators_of(plan_layouts(graph, settings).function) == operators_of(plan_layouts(graph, SETTINGS).function)


def test_an_explanation_tells_of_rewrites_on_record(task):
    def told(rewrite, model, of):
        text = str(lw.explain(model, TARGET, records=lw.TuningRecords([record(of, rewrite)])))
        return [line.strip() for line in text.splitlines()[1:3]]

    assert told("(-, -)", network(), task) == [
        f"rewrite of {call_text(task.call)}",
        "→ (-, -): recorded on this target, where the model took 1.00 s",
    ]
    assert told("nn.magic(-, -)", network(), task)[1].endswith("; there is none here, and it is planned as without it")
    sides = [lw.var(name, (1, 512, 8, 64)) for name in "qkv"]
    attention = lw.Function(sides, lw.nn.attention(*sides, layout="BSHD"))
    (of,) = rewrite_tasks(planned_graph(attention, None, unplanned(SETTINGS), False), SETTINGS)
    assert told(WRITTEN_OUT, attention, of)[1].startswith("→ written out: recorded on this target")
    (found,) = lw.explain(attention, TARGET, records=lw.TuningRecords([record(of, FUSED)])).to_json()["rewrites"]
    assert found["rewrite"] == FUSED
    assert "rewrites" not in lw.explain(attention, TARGET).to_json()


def test_open_extents_have_no_rewrite_on_record():
    x = lw.var("x", (te.var("n"), 8, 9, 9))
    call = lw.nn.conv2d(x, lw.var("w", (8, 8, 3, 3)), padding=1)
    assert rewrite_workload(call) is None
    assert recorded_rewrite(call, SETTINGS.with_records(lw.TuningRecords())) is None


def test_the_model_computes_the_same_in_another_rewrite(tmp_path):
    target = lw.resolve_target("generic")
    settings = CompileSettings(target, CodegenOptions())
    task, *_ = rewrite_tasks(planned_graph(network(), None, unplanned(settings), False), settings)
    path = tmp_path / "tuned.jsonl"
    lw.TuningRecords.append(path, record(task, task.rewrites[0], target))
    plain, made = (lw.compile(network(), target, records=records) for records in (None, path))
    assert [c.call for f in plain.functions for c in f.choices] != [c.call for f in made.functions for c in f.choices]
    x = np.random.default_rng(1).standard_normal((1, 64, 28, 28), dtype=np.float32)
    wanted = lw.Engine(lw.compile(network(), target, layouts="keep"))([x])[0]
    for library in (plain, made):
        np.testing.assert_allclose(lw.Engine(library)([x])[0], wanted, rtol=1e-3, atol=1e-3)


def attention_of(heads=4, shared=4, layout="BSHD", key_layout="", mask=None, causal=False, kind="float32"):
    """A network of attention alone: 12 queries, 20 keys."""
    sizes = {"B": 2, "D": 16}

    def side(name, order, positions, count):
        return lw.var(name, [{**sizes, "S": positions, "H": count}[axis] for axis in order], kind)

    q = side("q", layout, 12, heads)
    k, v = (side(name, key_layout or layout, 20, shared) for name in "kv")
    more = [mask] if isinstance(mask, Var) else []
    given = lw.const(mask) if isinstance(mask, np.ndarray) else mask
    call = lw.nn.attention(q, k, v, given, 0.3, causal=causal, layout=layout, key_layout=key_layout)
    return lw.Function([q, k, v, *more], lw.nn.relu(call))


SEEN = np.random.default_rng(3).uniform(size=(2, 1, 12, 20)) < 0.7
KNOWN = {
    "plain": attention_of(),
    "heads first": attention_of(layout="BHSD"),
    "keys of a cache": attention_of(key_layout="SBHD"),
    "shared heads": attention_of(heads=6, shared=2),
    "causal": attention_of(layout="BHSD", causal=True),
    "numbers": attention_of(mask=np.where(SEEN, 0.5, -np.inf).astype(np.float32)),
    "bools, causal": attention_of(mask=SEEN | (np.arange(20) == 0), causal=True),
    "of 64 bits": attention_of(mask=np.linspace(-2, 2, 20)[None], kind="float64"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_attention_is_written_out_where_a_record_says_so(case):
    model, target = KNOWN[case], lw.resolve_target("generic")
    (call,) = (node for node in post_order(model.body) if is_attention(node))
    written = lw.TuningRecord.of_workload(rewrite_workload(call), target, WRITTEN_OUT, [1.0])
    fused, made = (lw.compile(model, target, records=lw.TuningRecords(given)) for given in ([], [written]))
    assert not any("attention" in c.call for f in made.functions for c in f.choices)
    assert sum("matmul(" in c.call for f in made.functions for c in f.choices) == 2
    strict = lw.explain(model, target, precision="strict", records=lw.TuningRecords([written]))
    assert "attention" in str(strict)
    rng = np.random.default_rng(1)
    feeds = [rng.normal(size=p.type.static_shape).astype(p.type.dtype.name) for p in model.params]
    np.testing.assert_allclose(lw.Engine(made)(feeds)[0], lw.Engine(fused)(feeds)[0], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "model",
    [
        attention_of(mask=lw.var("mask", (12, 20))),
        attention_of(mask=np.zeros((12, 20), np.bool_)),
        attention_of(kind="float16"),
    ],
    ids=["a mask of the run", "nothing seen", "halves"],
)
def test_attention_that_might_give_something_else_stays_fused(model):
    (call,) = (node for node in post_order(model.body) if is_attention(node))
    assert written_out(call) is None
    record = lw.TuningRecord.of_workload(rewrite_workload(call), TARGET, WRITTEN_OUT, [1.0])
    assert "attention" in str(lw.explain(model, TARGET, records=lw.TuningRecords([record])))
    assert rewrite_tasks(planned_graph(model, None, unplanned(SETTINGS), False), SETTINGS) == ()


def test_whether_attention_is_fused_is_a_task():
    sides = [lw.var(name, (1, 512, 8, 64)) for name in "qkv"]
    model = lw.Function(sides, lw.nn.attention(*sides, layout="BSHD"))
    (task,) = rewrite_tasks(planned_graph(model, None, unplanned(SETTINGS), False), SETTINGS)
    assert (task.planned, task.rewrites, task.name) == (FUSED, (WRITTEN_OUT,), "rewriting nn.attention")
    settings = SETTINGS.with_records(lw.TuningRecords([record(task, WRITTEN_OUT)]))
    (back,) = rewrite_tasks(planned_graph(model, None, unplanned(settings), False), settings)
    assert (back.planned, back.rewrites) == (WRITTEN_OUT, (FUSED,))


class MadeUpBench:
    """``gains`` are those of the model with each rewrite, ``confirmed`` what more processes say."""

    def __init__(self, gains, confirmed=None):
        self.gains, self.confirmed, self.asked = gains, confirmed or gains, []

    def model(self, records, beside=None, is_brief=False):
        (rewrite,) = [r.implementation for r in records if r.workload.op.startswith("rewrite:")]
        self.asked.append((rewrite, is_brief))
        gain = (self.gains if is_brief else self.confirmed)[rewrite]
        if gain is None:
            raise lw.ModelError("it cannot be made so")
        return Outcome(OutcomeKind.MEASURED, gain, gain, gain, (1e-3,) * 3, (gain,) * 60)


def search(task, path, bench, is_over=lambda: False):
    told = []
    searching = RewriteSearch([task], "a model", TARGET, bench, Journal(path, 1))
    return searching.run(is_over, lambda: 60.0, told.append), told


def gains_of(task, best):
    return {rewrite: best if k == 1 else 0.9 for k, rewrite in enumerate(task.rewrites)}


def test_the_fastest_rewrite_is_confirmed_and_recorded(task, tmp_path):
    path, bench = tmp_path / "tuned.jsonl", MadeUpBench(gains_of(task, 1.2))
    found, told = search(task, path, bench)
    best = task.rewrites[1]
    assert bench.asked == [*((rewrite, True) for rewrite in task.rewrites), (best, False)]
    assert [(r.workload, r.implementation) for r in lw.TuningRecords.load(path)] == [(task.workload, best)]
    assert found.records == tuple(lw.TuningRecords.load(path))
    assert (len(found.written), found.tries, found.measured) == (1, len(task.rewrites), len(task.rewrites))
    assert (found.rows[0].best, found.rows[0].gain) == (best, 1.2)
    assert told[0].phase == "rewriting nn.conv2d"


def test_a_recorded_rewrite_is_what_others_are_measured_beside(graph, task, tmp_path):
    path = tmp_path / "tuned.jsonl"
    search(task, path, MadeUpBench(gains_of(task, 1.2)))
    (now,) = rewrite_tasks(graph, SETTINGS.with_records(lw.TuningRecords.load(path)))
    assert now.planned == task.rewrites[1]
    bench = MadeUpBench(dict.fromkeys(now.rewrites, 0.9))
    found, _ = search(now, path, bench)
    assert bench.asked == [(rewrite, True) for rewrite in now.rewrites]
    assert task.planned in now.rewrites
    assert (found.written, [r.implementation for r in found.records]) == ((), [now.planned])


def test_what_is_not_confirmed_is_left_as_it_is_planned(task, tmp_path):
    path = tmp_path / "tuned.jsonl"
    found, _ = search(task, path, MadeUpBench(gains_of(task, 1.2), gains_of(task, 0.99)))
    assert (found.records, found.written, found.rows[0].state) == ((), (), "nothing faster for sure")
    again = MadeUpBench({})
    assert search(task, path, again)[0].rows == found.rows
    assert again.asked == []


def test_rewrites_that_fail_are_outcomes(task, tmp_path):
    gains = dict.fromkeys(task.rewrites)
    found, _ = search(task, tmp_path / "tuned.jsonl", MadeUpBench(gains))
    assert (found.rows[0].tried, found.rows[0].failed, found.written) == (len(task.rewrites), len(task.rewrites), ())


def test_the_search_ends_when_its_time_is_over(task, tmp_path):
    bench = MadeUpBench(gains_of(task, 1.2))
    found, told = search(task, tmp_path / "tuned.jsonl", bench, is_over=lambda: True)
    assert (bench.asked, found.rows, told) == ([], (), [])


def test_a_rewrite_name_another_target_is_measured_beside_others(graph, task):
    other = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell")
    settings = SETTINGS.with_records(lw.TuningRecords([record(task, task.rewrites[0], other)]))
    assert recorded_rewrite(task.call, settings) == task.rewrites[0]
    (again,) = rewrite_tasks(graph, settings)
    assert (again.planned, task.planned in again.rewrites) == (task.rewrites[0], True)


def test_to_compile_the_model_takes_none_of_the_time_to_search(tmp_path, monkeypatch):
    clock, told = [0.0], []

    class Slow:
        def prepare(self, records):
            assert list(records) == []
            clock[0] += 1000.0

        def untuned(self, tasks):
            raise KeyboardInterrupt

    monkeypatch.setattr("loopwright.tuning.model_search.time.monotonic", lambda: clock[0])
    a, b = lw.var("a", (16, 32)), lw.var("b", (32, 16))
    tuned = TunedModel(lw.Function([a, b], lw.nn.matmul(a, b)), None, SETTINGS, ())
    with pytest.raises(KeyboardInterrupt):
        search_model(tuned, Slow(), Journal(tmp_path / "t", 1), searcher_named("grid"), 60.0, 0, told.append)
    assert [progress.phase for progress in told] == [
        "compiling the model",
        "measuring what is to be tuned, 1 of 1 task",
    ]
    assert told[-1].seconds_left > 0
