"""run_short_loops_alone: parallel loops that are not worth handing to other threads become serial."""

import pytest

from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.expr import Load
from loopwright.ir.intrinsics import call
from loopwright.ir.stmt import For, Store
from loopwright.lowering.passes.short_loops import run_short_loops_alone


def elementwise(nest, extent, value=lambda x: x, kind="float32"):
    A, B = make_buffer("A", (extent,), kind), make_buffer("B", (extent,), kind)
    return nest.kernel((A, B), nest.loop("i", extent, lambda i: Store(B, (i,), value(Load(A, (i,)))), "parallel"))


def threaded(nest, func):
    return nest.count(run_short_loops_alone(func), For, kind="parallel") == 1


@pytest.mark.parametrize("kind", ["float32", "float32x16"])
def test_few_elements_are_copied_by_one_thread_and_many_by_all(nest, kind):
    assert not threaded(nest, elementwise(nest, 100, kind=kind))
    assert threaded(nest, elementwise(nest, 100_000, kind=kind))


def test_functions_take_longer_than_copies(nest):
    assert not threaded(nest, elementwise(nest, 3000))
    assert threaded(nest, elementwise(nest, 3000, lambda x: call("exp", x)))


def test_loops_inside_count(nest):
    A, B = make_buffer("A", (300,), "float32"), make_buffer("B", (300,), "float32")

    def rows(times):
        inner = lambda i: nest.loop("j", times, lambda j: Store(B, (i,), Load(B, (i,)) + Load(A, (i,))))  # noqa: E731
        return nest.kernel((A, B), nest.loop("i", 300, inner, "parallel"))

    assert not threaded(nest, rows(10))
    assert threaded(nest, rows(1000))


def test_a_loop_whose_length_only_a_run_knows_stays_parallel(nest):
    assert threaded(nest, elementwise(nest, index_var("n")))


def test_it_computes_the_same(nest):
    func = elementwise(nest, 8, lambda x: x * 2.0)
    alone = run_short_loops_alone(func)
    assert nest.count(alone, For, kind="serial") == 1
    nest.same(func, alone)
