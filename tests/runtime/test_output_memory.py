"""Large outputs get the memory of earlier ones that are gone, and never that of one which somebody has."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.runtime.output_memory import KEPT_FROM

ROWS = KEPT_FROM // 4096


def engine(rows=ROWS):
    x = lw.var("x", (rows, 1))
    v = lw.const(np.arange(1024, dtype=np.float32))
    return lw.Engine(lw.compile(lw.Function([x], x + v), jobs=1, progress=False), threads=1)


def column(value, rows=ROWS):
    return np.full((rows, 1), value, np.float32)


def address(array):
    return array.__array_interface__["data"][0]


def row(value):
    return np.arange(1024, dtype=np.float32) + value


def test_the_memory_of_an_output_that_is_gone_serves_the_next_run():
    run = engine()
    addresses = {address(run(column(k))[0]) for k in range(4)}
    assert len(addresses) == 1
    assert addresses.pop() % 4096 == 0


@pytest.mark.parametrize(
    "keep",
    [lambda y: y, lambda y: y[3:5], memoryview, lambda y: y.reshape(-1).view(np.int32)],
    ids=range(4),
)
def test_what_somebody_has_keeps_its_values(keep):
    run = engine()
    kept = [keep(run(column(k))[0]) for k in range(4)]
    found = [np.asarray(each).view(np.float32).reshape(-1, 1024) for each in kept]
    for k, array in enumerate(found):
        np.testing.assert_array_equal(array, np.broadcast_to(row(k), array.shape))


def test_an_engine_tells_what_it_keeps_and_gives_it_back():
    run = engine()
    before = run.memory().held
    output = run(column(0))[0]
    assert run.memory().held - before < KEPT_FROM
    del output
    assert run.memory().held - before >= KEPT_FROM
    run.trim()
    assert run.memory().held - before < KEPT_FROM
    np.testing.assert_array_equal(run(column(5))[0][7], row(5))


def test_other_shapes_let_go_of_it():
    run = engine(te.var("n"))
    for rows in (2 * ROWS, 3):
        run(column(1, rows))
    assert run.memory().held < KEPT_FROM
    for rows in (ROWS, 2 * ROWS, ROWS):
        np.testing.assert_array_equal(run(column(2, rows))[0][-1], row(2))


def test_two_outputs_have_memory_of_their_own():
    x = lw.var("x", (ROWS, 1))
    v = lw.const(np.arange(1024, dtype=np.float32))
    outputs = lw.Function([x], lw.op.Tuple([x + v, x * v]))
    run = lw.Engine(lw.compile(outputs, jobs=1, progress=False), threads=1)
    addresses = set()
    for k in range(3):
        total, product = run(column(k))
        addresses.update(map(address, (total, product)))
        np.testing.assert_array_equal(total[1], row(k))
        np.testing.assert_array_equal(product[1], row(0) * k)
        del total, product
    assert len(addresses) == 2
