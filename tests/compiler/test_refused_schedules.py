"""Schedules that turn out to be illegal: the next implementation serves the call, the log and explanations say why."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.model.function_cache import function_cache
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.selection import select as selection
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.strategy import OpStrategy, schedule_default, strategy_of

TARGET = lw.resolve_target("x86-64")
VALUES = np.arange(-12, 12, dtype=np.float32).reshape(8, 3)


def adding(number):
    def compute(attrs, inputs, result):
        return te.compute(result.shape, lambda *i: inputs[0][i] + float(number), name=f"plus{number}")

    return compute


def illegal(attrs, anchor, outputs, target):
    s = lw.create_schedule(list(outputs))
    s[anchor[0]].unroll("none")
    return s


def fetching(attrs, anchor, outputs, target):
    """Legal where the result of the operator is that of the function."""
    s = lw.create_schedule(list(outputs))
    s[outputs[0]].prefetch(anchor[0].op.inputs[0], s[outputs[0]].loops[0], 1)
    return s


def refusing(attrs, inputs, result):
    raise lw.ScheduleError("this compute does not do")


@pytest.fixture
def offer(monkeypatch, tmp_path):
    """``offer((schedule, condition), …)``: relu has these implementations, the best first, by a condition on its
    first extent; the k-th adds k to its argument. The cache does not know of that, so each test has its own."""
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    function_cache.clear()

    def set_offers(*offers, compute=None):
        def strategy(op, attrs, inputs, result, target):
            if op.name != "relu":
                return strategy_of(op, attrs, inputs, result, target)
            made = OpStrategy()
            for number, (schedule, condition) in enumerate(offers):
                clauses = () if condition is None else (condition(inputs[0].shape[0]),)
                with made.specialized(*clauses):
                    body = compute if compute is not None and number == 0 else adding(number)
                    made.add_implementation(body, schedule, f"plus.{number}", 20 - number)
            return made

        monkeypatch.setattr(selection, "strategy_of", strategy)

    return set_offers


def graph_of(n=8):
    x = lw.var("x", (n, 3))
    return lw.Function([x], lw.nn.relu(x))


def compiled(graph, **options):
    return lw.compile(graph, TARGET, jobs=1, layouts="keep", **options)


def check(library, number, values=VALUES):
    np.testing.assert_array_equal(lw.Engine(library)([values])[0], values + number)


def test_the_next_implementation_serves_the_call(offer, fallbacks):
    offer((illegal, None), (illegal, None), (schedule_default, None))
    library = compiled(graph_of())
    check(library, 2)
    assert [text.split("\n")[0].split(" has no loop")[0] for text in fallbacks] == [
        f"relu(float32[8, 3]): the schedule of plus.{k} is refused, and plus.2 serves it: plus{k}" for k in range(2)
    ]
    fallbacks.clear()


def test_explanations_say_why_before_and_after_compiling(offer, fallbacks):
    offer((illegal, None), (schedule_default, None))
    for explained in lw.explain(graph_of(), TARGET), lw.explain(compiled(graph_of())):
        (choice,) = explained.functions[0].choices
        assert choice.implementation == "plus.1"
        assert [c.verdict for c in choice.candidates] == ["refused", "valid"]
        assert "plus.0  20 refused: plus0 has no loop none" in str(explained)
    (choice,) = lw.explain(graph_of().body, TARGET).functions[0].choices
    assert choice.implementation == "plus.1"
    fallbacks.clear()


def test_a_warning_comes_for_what_the_cache_and_a_saved_library_hold_as_well(offer, fallbacks, tmp_path):
    offer((illegal, None), (schedule_default, None))
    compiled(graph_of())
    compiled(graph_of()).save(tmp_path / "refused.lwlib")
    assert len(fallbacks) == 2
    (choice,) = lw.explain(lw.load(tmp_path / "refused.lwlib")).functions[0].choices
    assert choice.candidates[0].verdict == "refused"
    fallbacks.clear()


def test_a_compute_that_is_refused_falls_back_too(offer, fallbacks):
    offer((schedule_default, None), (schedule_default, None), compute=refusing)
    check(compiled(graph_of()), 1)
    assert fallbacks == [
        "relu(float32[8, 3]): the schedule of plus.0 is refused, and plus.1 serves it: this compute does not do"
    ]
    fallbacks.clear()


def test_a_schedule_that_is_illegal_in_a_fused_function_serves_the_call_by_itself(monkeypatch, offer, fallbacks):
    offer()

    def strategy(op, attrs, inputs, result, target):
        made = strategy_of(op, attrs, inputs, result, target)
        if op.name == "nn.matmul":
            (own,) = (i for _, i in made.candidates() if i.name == "matmul.direct")
            made.add_implementation(own.compute, fetching, "matmul.fetching", 99)
        return made

    monkeypatch.setattr(selection, "strategy_of", strategy)
    product = lw.nn.matmul(lw.var("x", (8, 3)), lw.const(VALUES.T))
    alone, fused = (compiled(lw.Function([product.args[0]], body)) for body in (product, lw.nn.relu(product)))
    for library, wanted in (alone, VALUES @ VALUES.T), (fused, np.maximum(VALUES @ VALUES.T, 0)):
        np.testing.assert_allclose(lw.Engine(library)([VALUES])[0], wanted, rtol=1e-6)
    assert [text[:10] for text in fallbacks] == ["nn.matmul("]
    assert "matmul.fetching is refused" in fallbacks[0]
    assert "\n" not in fallbacks[0]  # the report has the loop nest
    fallbacks.clear()


def test_refused_kernels_of_symbolic_shapes_leave_their_place_to_the_others(offer, fallbacks):
    offer((illegal, lambda n: n >= 8), (schedule_default, lambda n: n >= 4), (illegal, None), (schedule_default, None))
    library = compiled(graph_of(te.var("n")))
    for rows, number in (1, 3), (4, 1), (8, 1):
        check(library, number, VALUES[:rows])
    (function,) = library.functions
    assert [c.implementation for c in function.choices] == ["plus.1", "plus.3"]
    assert [c.verdict for c in function.choices[0].candidates] == ["refused", "guarded", "refused", "valid"]
    assert len(fallbacks) == 2  # once a call, not once a kernel
    fallbacks.clear()


def test_where_none_is_left_the_error_names_the_operator_and_shows_the_nest(offer):
    offer((illegal, None), (schedule_default, lambda n: n > 8))
    with pytest.raises(lw.ScheduleError) as error:
        compiled(graph_of())
    problem = str(error.value)
    assert problem.startswith("no implementation serves relu(float32[8, 3]): plus.0: its schedule is refused: ")
    assert "plus.1: needs 8 > 8" in problem
    assert "for i0 in range(8)" in problem
    assert isinstance(error.value.__cause__, lw.ScheduleError)


def test_a_record_whose_decisions_are_refused_is_passed_over(offer):
    def schedule(attrs, anchor, outputs, target):
        s = lw.create_schedule(outputs)
        if s.decide("wrong", [False, True], False):
            s[outputs[0]].unroll("none")
        return s

    offer((schedule, None))
    call = graph_of().body
    records = [
        lw.TuningRecord.of(call, TARGET, "plus.0", [seconds], decisions={"wrong": wrong})
        for seconds, wrong in ((1e-6, True), (1e-3, False))
    ]
    for known, reason in (records, "recorded on this target: 1.00 ms"), (records[:1], "the only one"):
        (choice,) = lower_function(graph_of(), CompileSettings(TARGET, records=lw.TuningRecords(known)), "f").choices
        assert choice.reason == reason
        assert "passed over the record of plus.0" in choice.notes[0]
        assert "has no loop none" in choice.notes[0]


def test_an_alternative_that_is_refused_is_none(offer, fallbacks):
    offer((schedule_default, None), (illegal, None), (schedule_default, None))
    library = compiled(graph_of(), alternatives=True)
    (function,) = library.functions
    assert [[c.implementation for c in f.choices] for f in library.model.alternatives[function.symbol]] == [["plus.2"]]
    assert "plus.1 is refused" in fallbacks[0]
    fallbacks.clear()
