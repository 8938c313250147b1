"""Explanations: what they tell of each call, before and after compilation, and that they need none."""

import json

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.model import compile_function, function_cache

TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"
X, W = lw.var("x", (8, 12)), lw.var("w", (12, 20))
PRODUCT = lw.nn.matmul(X, W)
MODEL = lw.Function([X, W], lw.nn.softmax(lw.nn.relu(PRODUCT)))


@pytest.fixture
def no_compiling(monkeypatch):
    monkeypatch.setattr(compile_function, "emit_code", None)
    function_cache.function_cache.clear()


@pytest.mark.usefixtures("no_compiling")
def test_each_call_lists_its_candidates_with_priority_and_what_failed():
    product, softmax = lw.explain(MODEL, TARGET).functions
    assert (product.name, softmax.name) == ("fused_nn_matmul_relu", "fused_softmax")
    assert [c.call for c in product.choices] == ["nn.matmul(float32[8, 12], float32[12, 20])", "relu(float32[8, 20])"]
    assert {c.implementation: c.plevel for c in product.choices[0].candidates}["matmul.direct"] == 10
    generic, rows, short_rows = softmax.choices[0].candidates
    assert (generic.verdict, rows.verdict, short_rows.verdict) == ("valid", "rejected", "valid")
    assert [(c.text, c.holds) for c in rows.clauses] == [("20 >= 64", False)]


@pytest.mark.usefixtures("no_compiling")
def test_the_text_marks_the_choice_and_gives_reasons():
    lines = str(lw.explain(MODEL, TARGET)).splitlines()
    assert lines[0] == "for x86-64-v3, x86_64-linux-gnu"
    assert "      → softmax.short_rows (10): highest priority 10 of 2, the least cost of 2" in lines
    assert "        softmax.rows        10 rejected (fails: 20 >= 64)" in lines


@pytest.mark.usefixtures("no_compiling")
def test_recorded_costs_are_shown_with_their_spread_and_level():
    other = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake")
    made = [
        lw.TuningRecord.of(PRODUCT, TARGET, "matmul.direct", [2e-3, 1e-3, 4e-3]),
        lw.TuningRecord.of(PRODUCT, other, "matmul.paneled", [1e-6], decisions={"rows": 2}),
        lw.TuningRecord.of(PRODUCT, TARGET, "matmul.gone", [1e-9]),
    ]
    explanation = lw.explain(MODEL, TARGET, records=lw.TuningRecords(made))
    choice = explanation.functions[0].choices[0]
    costs = {c.implementation: c.recorded for c in choice.candidates}
    assert choice.implementation == "matmul.direct"
    assert str(costs["matmul.direct"]) == "2.00 ms (1.00 ms to 4.00 ms) on this target"
    assert str(costs["matmul.paneled"]) == '1.00 µs on another cpu of these keys with {"rows":2}'
    assert "passed over the record of matmul.gone, 1.00 ns on this target: nn.matmul has no such" in str(explanation)


@pytest.mark.usefixtures("no_compiling")
def test_open_clauses_are_guards_and_each_kernel_of_the_anchor_is_listed():
    n = te.var("n")
    x = lw.var("x", (70, n))
    (function,) = lw.explain(lw.Function([x], lw.nn.softmax(lw.nn.relu(x))), TARGET).functions
    rows = [choice for choice in function.choices if choice.op == "softmax"]
    assert [c.implementation for c in rows] == ["softmax.rows", "softmax.short_rows"]
    assert [c.verdict for c in rows[0].candidates] == ["valid", "guarded", "valid"]
    assert "where" in rows[0].reason


@pytest.mark.usefixtures("no_compiling")
def test_a_single_call_is_explained_by_itself():
    (only,) = lw.explain(PRODUCT, TARGET).functions
    assert (only.name, len(only.choices)) == ("nn.matmul", 1)


@pytest.mark.usefixtures("no_compiling")
def test_what_depends_on_constants_alone_is_no_call_and_is_not_computed():
    y = lw.nn.matmul(X, lw.nn.exp(lw.const(np.ones((12, 20), np.float32))))
    names = [f.name for f in lw.explain(lw.Function([X], y), TARGET).functions]
    assert not any("exp" in name for name in names)


def test_functions_that_are_alike_are_explained_once_with_their_count():
    model = lw.Function([X], lw.nn.softmax(lw.nn.softmax(X)))
    (only,) = lw.explain(model, TARGET).functions
    assert only.steps == 2
    assert "fused_softmax, called 2 times" in str(lw.explain(model, TARGET))


def test_equal_calls_of_one_function_are_listed_one_by_one():
    explanation = lw.explain(lw.Function([X], lw.nn.relu(lw.nn.relu(X))), TARGET)
    lines = [line.strip() for line in str(explanation).splitlines() if line.startswith("    ")]
    assert lines == ["relu(float32[8, 12])", "→ relu.generic (10): the only one"] * 2


def test_a_library_tells_the_same_after_it_was_compiled_saved_and_loaded(tmp_path):
    known = lw.TuningRecords([lw.TuningRecord.of(PRODUCT, TARGET, "matmul.direct", [2e-3, 1e-3])])
    before = lw.explain(MODEL, TARGET, records=known)
    library = lw.compile(MODEL, TARGET, jobs=1, records=known)
    library.save(tmp_path / "m.lwlib")
    assert lw.explain(library) == before
    assert lw.explain(lw.load(tmp_path / "m.lwlib")) == before


@pytest.mark.parametrize("layouts", ["plan", "keep"])
def test_a_model_with_folded_constants_is_explained_as_it_is_compiled(layouts):
    x = lw.var("x", (1, 16, 8, 8))
    weights = [lw.const(np.ones((16, 16, 1, 1), np.float32)) for _ in range(2)]
    y = lw.nn.conv2d(lw.nn.relu(lw.nn.conv2d(x, weights[0])), lw.nn.negative(weights[1]))
    model = lw.Function([x], lw.nn.max_pool(y, 2))
    library = lw.compile(model, TARGET, jobs=1, layouts=layouts)
    assert lw.explain(model, TARGET, layouts=layouts) == lw.explain(library)


def test_a_library_takes_no_further_arguments():
    library = lw.compile(lw.Function([X], lw.nn.relu(X)), jobs=1)
    with pytest.raises(lw.RuntimeArgumentError, match="as it was compiled"):
        lw.explain(library, "x86-64")


def test_the_json_holds_all_that_is_shown():
    data = json.loads(json.dumps(lw.explain(MODEL, TARGET).to_json()))
    choice = data["functions"][1]["choices"][0]
    assert choice["implementation"] == "softmax.short_rows"
    clause = {"text": "20 >= 64", "holds": False}
    rows = {
        "implementation": "softmax.rows",
        "plevel": 10,
        "clauses": [clause],
        "recorded": None,
        "refused": None,
        "verdict": "rejected",
    }
    assert choice["candidates"][1] == rows


def test_a_precision_that_is_none_is_refused():
    with pytest.raises(lw.TargetError, match="there is no precision 'exact'"):
        lw.explain(lw.nn.relu(lw.var("x", (4,))), precision="exact")
