"""Tuning records in compilation: what they change in kernels, caches and worker processes."""

import logging

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.model import compile_function
from loopwright.compiler.model.function_cache import function_cache, function_key
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.model.units import in_order
from loopwright.compiler.model.workers import Job, _Worker
from loopwright.compiler.selection.select import candidates_of, select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of

TARGET, NAMED = lw.resolve_target("native"), lw.resolve_target("x86-64-v3")
A, B = lw.var("a", (24, 20)), lw.var("b", (20, 40))
PRODUCT = lw.nn.matmul(A, B)
MODEL = lw.Function([A, B], lw.nn.relu(PRODUCT))
X, W = lw.var("x", (1, 8, 9, 9)), lw.var("w", (12, 8, 3, 3))
POINT = lw.var("w", (12, 8, 1, 1))


def records(implementation="matmul.direct", call=PRODUCT, seconds=1e-3, target=TARGET, **more):
    return lw.TuningRecords([lw.TuningRecord.of(call, target, implementation, [seconds], **more)])


def closed(function):
    (unit,) = in_order(function)[0]
    return unit.function


def run(library, *arrays):
    return lw.Engine(library)(list(arrays))[0]


def product_inputs():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((24, 20), (20, 40))]


def test_a_record_changes_the_implementation_of_a_compiled_model():
    a, b = product_inputs()
    plain, tuned = lw.compile(MODEL, jobs=1), lw.compile(MODEL, jobs=1, records=records())
    assert plain.functions[0].choices[0].implementation == "matmul.paneled"
    assert tuned.functions[0].choices[0].implementation == "matmul.direct"
    assert plain.functions[0].loop_ir != tuned.functions[0].loop_ir
    for library in (plain, tuned):
        np.testing.assert_allclose(run(library, a, b), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_records_come_from_a_file_too(tmp_path):
    lw.TuningRecords.append(tmp_path / "t.jsonl", *records())
    library = lw.compile(MODEL, jobs=1, records=tmp_path / "t.jsonl")
    assert library.functions[0].choices[0].implementation == "matmul.direct"


def test_anything_else_is_refused():
    with pytest.raises(lw.RecordError, match=r"takes the path of a file of tuning records, or .*, not 3"):
        lw.compile(MODEL, records=3)


def test_the_key_of_a_function_depends_on_the_records_of_its_calls_alone():
    settings, other = CompileSettings(TARGET), lw.nn.matmul(A, lw.var("b", (20, 41)))

    def key(known):
        return function_key(closed(MODEL), settings.with_records(known))

    without = function_key(closed(MODEL), settings)
    assert key(records(call=other)) == without
    assert key(records()) != without
    assert key(records(seconds=2e-3)) != without
    assert key(lw.TuningRecords([*records(), *records(call=other)])) == key(records())


def test_unrelated_records_leave_the_cache_hits(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    function_cache.clear()
    first = lw.compile(MODEL, jobs=1)
    function_cache.clear()

    def refuse(*_):
        raise NotImplementedError("nothing is to be compiled from here on")

    monkeypatch.setattr(compile_function, "emit_code", refuse)
    other = lw.nn.matmul(A, lw.var("b", (20, 41)))
    again = lw.compile(MODEL, jobs=1, records=records(call=other))
    assert again.functions == first.functions
    with pytest.raises(NotImplementedError):
        lw.compile(MODEL, jobs=1, records=records())


@pytest.mark.parametrize(
    ("function", "call", "implementation", "decisions"),
    [
        (MODEL, PRODUCT, "matmul.paneled", {"rows": 3, "vectors": 1}),
        (MODEL, PRODUCT, "matmul.paneled", {"pack": True}),
        (lw.Function([X, W], lw.nn.conv2d(X, W)), lw.nn.conv2d(X, W), "conv.shifted", {"rows": 2, "vectors": 1}),
        (lw.Function([X, POINT], lw.nn.conv2d(X, POINT)), lw.nn.conv2d(X, POINT), "conv.pointwise", {"rows": 3}),
        (lw.Function([X, POINT], lw.nn.conv2d(X, POINT)), lw.nn.conv2d(X, POINT), "conv.pointwise", {"pack": True}),
    ],
    ids=str,
)
def test_decisions_change_the_nest_and_not_what_it_computes(function, call, implementation, decisions):
    plain, *_ = lower_function(closed(function), CompileSettings(TARGET), "f")
    tuned, choices, *_ = lower_function(
        closed(function), CompileSettings(TARGET, records=records(implementation, call, decisions=decisions)), "f"
    )
    assert choices[0].implementation == implementation
    assert choices[0].notes == ()
    assert str(tuned) != str(plain)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.type.static_shape).astype(np.float32) for p in function.params]
    found = [np.empty(function.body.type.static_shape, np.float32) for _ in range(2)]
    lw.interpret(plain)(*arrays, found[0])
    lw.interpret(tuned)(*arrays, found[1])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("decisions", "problem"),
    [
        ({"rows": "6"}, "the decision 'rows' should be one of 1, 2, 3, 4, 5, 6, 7, 8, …, 14, found '6'"),
        ({"vectors": True}, "the decision 'vectors' should be one of 1, found True"),
        ({"pack": 1}, "the decision 'pack' should be one of False, True, found 1"),
        ({"tile": 4}, "matmul.paneled has no decision 'tile': it decides pack, rows, vectors, packs_chunks, chunk, "),
        ({"row": 4}, "matmul.paneled has no decision 'row': did you mean 'rows'? it decides pack, "),
    ],
    ids=str,
)
def test_decisions_that_there_are_not_are_passed_over(decisions, problem):
    known = records("matmul.paneled", target=NAMED, decisions=decisions)
    _, choices, *_ = lower_function(closed(MODEL), CompileSettings(NAMED, records=known), "f")
    assert choices[0].reason == "highest priority 10 of 2, the least cost of 2"
    assert problem in choices[0].notes[0]


def test_decisions_of_another_shape_become_the_nearest_legal_ones_and_the_choice_says_so():
    known = records("matmul.paneled", target=NAMED, decisions={"rows": 64, "steps": 3, "vectors": 0})
    tuned, choices, *_ = lower_function(closed(MODEL), CompileSettings(NAMED, records=known), "f")
    assert choices[0].reason == "recorded on this target: 1.00 ms"
    (note,) = choices[0].notes
    assert note.startswith("what was recorded for matmul.paneled is not all legal here: rows is 14 here, as 64 is none")
    assert "vectors is 1 here, as 0 is none of 1; steps is 2 here, as 3 is none of 1, 2, 4" in note
    assert note in str(lw.explain(MODEL, NAMED, records=known))
    legal = records("matmul.paneled", target=NAMED, decisions={"rows": 14, "steps": 2, "vectors": 1})
    assert str(lower_function(closed(MODEL), CompileSettings(NAMED, records=legal), "f").func) == str(tuned)


def test_records_of_the_first_format_decide_by_their_config():
    decided = lw.TuningRecord.of(PRODUCT, TARGET, "matmul.paneled", [1e-6], decisions={"rows": 3, "vectors": 1})
    data = decided.to_json()
    data["config"], data["format"] = data.pop("decisions"), 1
    assert lw.TuningRecord.from_json(data) == decided


def direct_product():
    """The plain product by itself, as a trace is recorded of it."""
    direct = next(
        c.implementation
        for c in candidates_of(PRODUCT, CompileSettings(TARGET))
        if c.implementation.name == "matmul.direct"
    )
    inputs = tuple(te.placeholder(v.type.shape, v.type.dtype, f"p{k}") for k, v in enumerate((A, B)))
    (product,) = outputs_of(direct.compute(PRODUCT.attrs, inputs, PRODUCT.type))
    return product


def recorded_trace():
    """A schedule of the product by itself, by hand: tiles of 4 by 8."""
    made = direct_product()
    s = lw.create_schedule(made)
    s[made].tile(*made.op.axis, 4, 8)
    return s.trace


def test_a_trace_schedules_the_operator_alone_and_in_a_fused_function():
    known = records("matmul.direct", trace=recorded_trace())
    alone, choices, *_ = lower_function(
        closed(lw.Function([A, B], PRODUCT)), CompileSettings(TARGET, records=known), "f"
    )
    assert (choices[0].implementation, choices[0].notes) == ("matmul.direct", ())
    assert "for i1_outer in range(5)" in str(alone)
    fused, choices, *_ = lower_function(closed(MODEL), CompileSettings(TARGET, records=known), "f")
    assert choices[0].notes == ()
    a, b = product_inputs()
    out = np.empty((24, 40), np.float32)
    lw.interpret(fused)(a, b, out)
    np.testing.assert_allclose(out, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)
    lw.interpret(alone)(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
    own, *_ = lower_function(closed(MODEL), CompileSettings(TARGET, records=records()), "f")
    assert str(fused) != str(own)


def test_a_trace_that_fits_the_operator_but_not_the_function_leaves_it_the_schedule_of_the_implementation():
    x = lw.var("x", (24, 20))
    alone = lw.nn.max(x, axes=[0])
    own = select_implementation(alone, CompileSettings(TARGET)).chosen
    steps = [{"primitive": "cache_read", "stage": "p0", "scope": "local", "readers": ["max.fold"]}]
    known = records(own.name, alone, trace=lw.Trace.from_json({"version": 1, "steps": steps}))
    assert select_implementation(alone, CompileSettings(TARGET, records=known)).record is not None
    fused = closed(lw.Function([x], lw.nn.max(lw.nn.exp(x), axes=[0])))
    nest, choices, *_ = lower_function(fused, CompileSettings(TARGET, records=known), "f")
    assert "the recorded trace does not fit this function" in choices[-1].notes[0]
    assert str(nest) == str(lower_function(fused, CompileSettings(TARGET), "f")[0])


def test_strict_precision_takes_no_trace_that_sums_in_another_order():
    made = direct_product()
    s = lw.create_schedule(made)
    outer, _ = s[made].split(made.op.reduce_axis[0], factor=4)
    s.rfactor(made, outer)
    known = records(trace=s.trace)
    keeps_order = CompileSettings(TARGET, CodegenOptions("strict"), known)
    _, free, *_ = lower_function(closed(MODEL), CompileSettings(TARGET, records=known), "f")
    strict, choices, *_ = lower_function(closed(MODEL), keeps_order, "f")
    assert free[0].notes == ()
    assert "the recorded trace does not fit this function" in choices[0].notes[0]
    assert str(strict) == str(lower_function(closed(MODEL), keeps_order.with_records(records()), "f")[0])


def test_worker_processes_get_the_records():
    job = Job(closed(MODEL), CompileSettings(TARGET, CodegenOptions(cache=False), records()))
    worker = _Worker()
    try:
        made = worker.compile(job.key, job).made
    finally:
        worker.close()
    assert made.choices[0].implementation == "matmul.direct"


def test_a_line_a_call_is_logged_from_the_cache_too(caplog, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.INFO, "loopwright.compile_engine"):
        lw.compile(MODEL, jobs=1, records=records())
        first = list(caplog.messages)
        caplog.clear()
        function_cache.clear()
        lw.compile(MODEL, jobs=1, records=records())
    product = "nn.matmul(float32[24, 20], float32[20, 40])"
    assert first[0] == f"fused_nn_matmul_relu: {product}: matmul.direct, recorded on this target: 1.00 ms"
    assert len(first) == 2
    assert caplog.messages == first
