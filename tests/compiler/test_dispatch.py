"""Dispatch by symbolic dimensions: which kernels a function holds, and which of them a run takes."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.fusion.closed_function import as_function
from loopwright.compiler.fusion.partition import partition
from loopwright.compiler.model.compile_model import compile_model
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.selection import select as selection
from loopwright.compiler.selection.dispatch import MAX_KERNELS, dispatch
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.strategy import OpStrategy, schedule_default, strategy_of
from loopwright.runtime.library import Library

TARGET = lw.resolve_target("native")
SIZES = (0, 1, 3, 4, 5, 7, 8, 11, 16, 17, 31, 64)
"""On both sides of the guards below, with primes."""


def adding(number):
    """A compute that shows which implementation ran: x + number."""

    def compute(attrs, inputs, result):
        (x,) = inputs
        return te.compute(result.shape, lambda *i: x[i] + te.const(number, x.dtype), name=f"plus_{number}")

    return compute


@pytest.fixture
def offer(monkeypatch):
    """``offer((plevel, condition), …)``: relu has these implementations, by a condition on its first extent; the k-th
    adds k to its argument."""

    def set_offers(*offers):
        def strategy(op, attrs, inputs, result, target):
            if op.name != "relu":
                return strategy_of(op, attrs, inputs, result, target)
            made = OpStrategy()
            for number, (plevel, condition) in enumerate(offers):
                clauses = () if condition is None else (condition(inputs[0].shape[0]),)
                with made.specialized(*clauses):
                    made.add_implementation(adding(number), schedule_default, f"plus.{number}", plevel)
            return made

        monkeypatch.setattr(selection, "strategy_of", strategy)

    return set_offers


def call_of(extent):
    return lw.nn.relu(lw.var("x", (extent, 3)))


def kernels(extent=None):
    made = dispatch(select_implementation(call_of(te.var("n") if extent is None else extent), CompileSettings(TARGET)))
    return [(str(k.guard), k.implementation.name) for k in made.kernels]


def test_kernels_stand_in_order_of_priority_and_the_last_has_no_guard(offer):
    offer((10, None), (15, lambda n: n >= 16), (30, lambda n: n % 8 == 0), (20, lambda n: n < 4), (5, lambda n: n > 1))
    assert kernels() == [("n % 8 == 0", "plus.2"), ("n < 4", "plus.3"), ("n >= 16", "plus.1"), ("None", "plus.0")]
    assert kernels(24) == [("None", "plus.2")]
    assert kernels(1) == [("None", "plus.3")]


def test_equal_priorities_are_tested_in_order_of_registration(offer):
    offer((10, lambda n: n >= 16), (10, None), (10, lambda n: n < 4))
    assert kernels() == [("n >= 16", "plus.0"), ("None", "plus.1")]


def test_guards_of_equal_priority_are_tested_by_cost_and_what_costs_more_than_the_last_is_not(monkeypatch):
    n = te.var("n")
    strategy = OpStrategy()
    offers = ((5.0, n >= 16), (3.0, n % 8 == 0), (7.0, None), (9.0, n < 4), (None, n < 2))
    for number, (cost, condition) in enumerate(offers):
        with strategy.specialized(*([] if condition is None else [condition])):
            strategy.add_implementation(adding(number), schedule_default, f"plus.{number}", cost=cost)
    monkeypatch.setattr(selection, "strategy_of", lambda *_: strategy)
    assert kernels(n) == [("n % 8 == 0", "plus.1"), ("n >= 16", "plus.0"), ("None", "plus.2")]


def test_a_guard_that_those_before_leave_no_room_for_needs_no_kernel(offer):
    offer((10, None), (30, lambda n: n < 16), (20, lambda n: n < 8), (15, lambda n: n >= 10))
    assert kernels() == [("n < 16", "plus.1"), ("None", "plus.3")]


def test_the_number_of_kernels_is_limited_and_the_report_names_those_left_out(offer):
    offer((10, None), *((50 - k, lambda n, k=k: n == k) for k in range(6)))
    assert len(kernels()) == MAX_KERNELS
    found = dispatch(select_implementation(call_of(te.var("n")), CompileSettings(TARGET)))
    assert [k.implementation.name for k in found.left_out] == ["plus.4", "plus.5", "plus.6"]
    assert "at most 4 kernels: plus.4 where n == 3" in found.reasons[-1]


def by_batch(offers):
    """The kernels of relu([n, m]), where n counts samples, for offers of (plevel, condition, order of sums)."""
    n, m = te.var("n"), te.var("m")
    strategy = OpStrategy()
    for number, (plevel, condition, sums) in enumerate(offers):
        with strategy.specialized(*(() if condition is None else (condition(n, m),))):
            strategy.add_implementation(adding(number), schedule_default, f"plus.{number}", plevel, sums=sums)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "strategy_of", lambda *_: strategy)
        made = dispatch(select_implementation(lw.nn.relu(lw.var("x", (n, m))), CompileSettings(TARGET)), [n])
    return [k.implementation.name for k in made.kernels], [i.name for i in made.barred], made.reasons[-1]


def test_a_guard_on_the_batch_chooses_only_among_kernels_that_sum_in_one_order():
    few = lambda n, m: n <= 8  # noqa: E731
    assert by_batch([(10, None, "a"), (20, few, "a")])[0] == ["plus.1", "plus.0"]
    for orders in (("a", "b"), ("a", None), (None, None), (None, "a")):
        names, barred, reason = by_batch([(10, None, orders[0]), (20, few, orders[1])])
        assert (names, barred) == (["plus.0"], ["plus.1"])
        assert "the batch would decide in which order a sample is summed: plus.1" in reason


def test_a_guard_on_other_extents_may_choose_another_order():
    assert by_batch([(10, None, "a"), (20, lambda n, m: m <= 8, None)])[:2] == (["plus.1", "plus.0"], [])


def test_what_runs_in_place_of_a_kernel_sums_as_it_does_whatever_the_other_extents_are():
    """Where m <= 8, plus.1 would serve all batches but the small ones."""
    offers = [(10, None, "a"), (20, lambda n, m: m <= 8, "b"), (30, lambda n, m: n <= 8, "a")]
    assert by_batch(offers)[:2] == (["plus.1", "plus.0"], ["plus.2"])
    offers = [(10, None, "a"), (30, lambda n, m: m <= 8, "b"), (20, lambda n, m: n <= 8, "a")]
    assert by_batch(offers)[:2] == (["plus.1", "plus.2", "plus.0"], [])


def test_the_model_says_which_dimension_is_the_batch_else_it_is_what_parameters_have_first():
    n, m = te.var("n"), te.var("m")
    x, w = lw.var("x", (m, n, 64)), lw.var("w", (32, 64))
    y = lw.nn.dense(x, w)
    guards = {
        "m": lw.explain(lw.Function([x, w], y), target="x86-64-v3").functions[0].choices,
        "n": lw.explain(lw.Function([x, w], y, batch=(n,)), target="x86-64-v3").functions[0].choices,
    }
    assert [c.implementation for c in guards["m"]] == ["matmul.dots", "matmul.paneled"]
    assert [c.implementation for c in guards["n"]] == ["matmul.paneled"]


OFFERS = ((10, None), (15, lambda n: n >= 8), (30, lambda n: n % 8 == 0), (20, lambda n: te.any(n < 4, n == 11)))


def expected_choice(n):
    return 2 if n % 8 == 0 else 3 if n < 4 or n == 11 else 1 if n >= 8 else 0


X = lw.var("x", (te.var("n"), 3))
GRAPH = lw.Function([X], lw.nn.relu(lw.nn.negative(X)))


def check(run):
    for n in SIZES:
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        np.testing.assert_array_equal(run(x), -x + expected_choice(n))


def lowered(graph):
    return lower_function(as_function(partition(graph)[0])[0], CompileSettings(TARGET), "main")[:2]


def compiled(graph):
    """Without the cache, which does not know of the strategies of these tests."""
    return Library(compile_model(graph, CompileSettings(TARGET, CodegenOptions(cache=False)), jobs=1))


def test_the_interpreter_runs_the_dispatcher(offer):
    offer(*OFFERS)
    func, choices = lowered(GRAPH)
    assert [(c.implementation, c.reason) for c in choices[1:]] == [
        ("plus.2", "where n0 % 8 == 0: priority 30"),
        ("plus.3", "where n0 < 4 or n0 == 11: priority 20"),
        ("plus.1", "where n0 >= 8: priority 15"),
        ("plus.0", "otherwise: the only one"),
    ]

    def run(x):
        out = np.empty_like(x)
        lw.interpret(func)(x, out)
        return out

    check(run)


def test_native_code_runs_the_dispatcher_from_a_saved_library(offer, tmp_path):
    offer(*OFFERS)
    made = compiled(GRAPH)
    assert len(made.functions[0].choices) == 5
    made.save(tmp_path / "a.lwlib")
    engine = lw.Engine(lw.load(tmp_path / "a.lwlib"))
    check(lambda x: engine([x])[0])


def test_no_implementation_for_all_shapes_is_an_error_that_tells_what_is_served(offer):
    offer((10, lambda n: n >= 8), (20, lambda n: n % 4 == 0))
    with pytest.raises(lw.SelectionError, match=r"no implementation serves .*plus.0: holds only where n0 >= 8"):
        compiled(GRAPH)


def test_calls_besides_the_anchor_take_what_serves_all_shapes(offer):
    offer(*OFFERS)
    _, choices = lowered(lw.Function([X], lw.nn.multiply(lw.nn.relu(X), lw.const(np.float32(2)))))
    assert [c.implementation for c in choices] == ["plus.0", "multiply.generic"]


def test_a_nest_knows_its_guard(offer):
    """Where the extent is known, so are the bounds of the loops."""
    offer((10, None), (20, lambda n: n == 16))
    func, _ = lowered(GRAPH)
    _, _, rest = str(func).partition("if n0 == 16:")
    inside, _, outside = rest.partition("else:")
    assert "n0" not in inside
    assert "n0" in outside
