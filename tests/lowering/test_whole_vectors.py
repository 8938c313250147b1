"""whole_vectors: what is stored under a mask at the end of a row that is read again is stored whole."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Broadcast, Compare, Load, Ramp
from loopwright.ir.facts import entry_facts
from loopwright.ir.stmt import Allocate, Store, seq
from loopwright.ir.visit import walk
from loopwright.lowering.passes.whole_vectors import whole_vectors

nn = lw.nn
ONE = const(1, "index")
LANES = 4


def row_of(nest, extent, shift=0, kind="float32", behind=0):
    """B = A + 1 through a row that is kept, in vectors from ``shift`` on, of which there are ``behind`` too many."""
    A, B = (make_buffer(name, (extent,), kind) for name in "AB")
    row = make_buffer("row", (extent,), kind)

    def vectors(make):
        count = (as_index(extent) + (LANES - 1 - shift)) // LANES + behind
        return nest.loop("i", count, lambda i: make(Ramp(i * LANES + shift, ONE, LANES)))

    def inside(at):
        return Compare("<", at, Broadcast(as_index(extent), LANES))

    one = Broadcast(const(1, kind), LANES)
    fill = vectors(lambda at: Store(row, (at,), Load(A, (at,), inside(at)) + one, inside(at)))
    copy = vectors(lambda at: Store(B, (at,), Load(row, (at,), inside(at)), inside(at)))
    start = nest.loop("k", shift, lambda k: Store(row, (k,), Load(A, (k,)) + const(1, kind)))
    first = nest.loop("k", shift, lambda k: Store(B, (k,), Load(row, (k,))))
    return nest.kernel((A, B), Allocate(row, seq(start, fill, first, copy)))


def as_index(extent):
    return const(extent, "index") if isinstance(extent, int) else extent


def passed(func):
    return whole_vectors(func, entry_facts(func))


def masked_stores(func):
    return [node.buffer.name for node in walk(func.body) if isinstance(node, Store) and node.mask is not None]


def room(func):
    return [node.buffer.shape[0] for node in walk(func.body) if isinstance(node, Allocate)]


@pytest.mark.parametrize("shift", [0, 3])
def test_the_last_vector_of_an_open_row_is_stored_whole(nest, shift):
    n = index_var("n")
    func = row_of(nest, n, shift)
    after = passed(func)
    assert masked_stores(after) == ["B"]
    assert str(room(after)[0]) == "n + 3"
    for size in (3, 4, 5, 8, 17):
        nest.same(func, after, n=size)


def test_so_is_that_of_a_known_row(nest):
    func = row_of(nest, 10)
    after = passed(func)
    assert masked_stores(after) == ["B"]
    assert int(room(after)[0]) == 13
    nest.same(func, after)


def test_vectors_that_may_begin_behind_the_end_keep_their_masks(nest):
    func = row_of(nest, index_var("n"), behind=1)
    assert passed(func) is func


def test_integers_keep_their_masks(nest):
    func = row_of(nest, index_var("n"), kind="int32")
    assert passed(func) is func


def test_masks_of_another_kind_stay(nest):
    """The last element of the row keeps what is there."""
    n = index_var("n")
    A, B = (make_buffer(name, (n,), "float32") for name in "AB")
    row = make_buffer("row", (n,), "float32")

    def fill(i):
        at = Ramp(i * LANES, ONE, LANES)
        mask = Compare("<", at, Broadcast(n - 1, LANES))
        return Store(row, (at,), Load(A, (at,), mask), mask)

    whole = nest.loop("k", n, lambda k: Store(row, (k,), Load(A, (k,)) + 1.0))
    copy = nest.loop("k", n, lambda k: Store(B, (k,), Load(row, (k,))))
    func = nest.kernel((A, B), Allocate(row, seq(whole, nest.loop("i", (n + 3) // 4, fill), copy)))
    assert passed(func) is func


def test_results_keep_their_masks(nest):
    """Behind their ends is memory of others."""
    n = index_var("n")
    A, B = (make_buffer(name, (n,), "float32") for name in "AB")

    def copy(i):
        at = Ramp(i * LANES, ONE, LANES)
        mask = Compare("<", at, Broadcast(n, LANES))
        return Store(B, (at,), Load(A, (at,), mask), mask)

    func = nest.kernel((A, B), nest.loop("i", (n + 3) // 4, copy))
    assert passed(func) is func


@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_sums_of_short_rows_stay_in_registers_whatever_is_behind(op):
    x = lw.var("x", (1000, 10))
    graph = lw.Function([x], nn.relu(getattr(nn, op)(x, 0)))
    (text,) = lw.dump(graph, "loop", target="x86-64-v4")
    (folded,) = [line for line in text.text.splitlines() if "p0[" in line]
    assert folded.strip().startswith(f"{op}.fold_reg[0] = ")
    given = np.random.default_rng(0).uniform(0.99, 1.01, (1000, 10)).astype(np.float32)
    (found,) = lw.Engine(lw.compile(graph, jobs=1))([given])
    np.testing.assert_allclose(found, getattr(np, op)(given.astype(np.float64), 0), rtol=1e-4)


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "native"])
@pytest.mark.parametrize("op", [nn.softmax, nn.log_softmax])
def test_softmax_of_rows_of_all_lengths(op, target):
    n, m = te.var("n"), te.var("m")
    x = lw.var("x", (n, m))
    engine = lw.Engine(lw.compile(lw.Function([x], op(x)), target=target, jobs=1))
    for rows, length in ((1, 1), (3, 5), (2, 16), (5, 17), (2, 63), (3, 64), (2, 70), (1, 130)):
        values = np.random.default_rng(length).standard_normal((rows, length)).astype(np.float32)
        e = np.exp(values.astype(np.float64) - values.max(1, keepdims=True))
        expected = e / e.sum(1, keepdims=True)
        np.testing.assert_allclose(
            engine([values])[0], np.log(expected) if op is nn.log_softmax else expected, 2e-5, 1e-6
        )
