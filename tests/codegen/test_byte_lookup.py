"""Elements of tables of 256 bytes at computed indices: by permutations where the target has them, gathers elsewhere."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

COUNT = 333
HOST = lw.resolve_target("native")
RUNNABLE = [t for t in ("native", "x86-64-v4", "x86-64-v3", "x86-64") if HOST.features >= lw.resolve_target(t).features]
rng = np.random.default_rng(0)


def look_up(lanes, target, kind="uint8", entries=256, tail="guard", offset=0):
    """A kernel of table[x + offset]."""
    x, table = te.placeholder((COUNT,), "uint8", name="x"), te.placeholder((entries,), kind, name="table")
    y = te.compute((COUNT,), lambda i: table[te.cast(x[i], "index") + offset], name="y")
    schedule = lw.create_schedule(y)
    if lanes > 1:
        _, lane = schedule[y].split(y.op.axis[0], factor=lanes, tail=tail)
        schedule[y].vectorize(lane)
    return lw.build(schedule, [x, table, y], target=target, name="look_up")


def check(kernel, kind, entries=256, offset=0):
    x = rng.integers(0, 256, COUNT).astype(np.uint8)
    x[:256] = np.arange(256)
    table = rng.integers(0, 256, entries).astype(np.uint8).view(kind)
    y = np.empty(COUNT, kind)
    kernel(x, table, y)
    np.testing.assert_array_equal(y, table[x.astype(np.int64) + offset])


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("tail", ["guard", "mask", "peel"])
@pytest.mark.parametrize("lanes", [1, 3, 8, 16, 48, 64, 128])
@pytest.mark.parametrize("target", RUNNABLE)
def test_every_byte_is_looked_up(target, lanes, tail, kind):
    check(look_up(lanes, target, kind, tail=tail), kind)


def test_larger_tables_are_read_as_they_are():
    check(look_up(16, "native", entries=300, offset=40), "uint8", 300, 40)


@pytest.mark.parametrize("lanes", [16, 64])
def test_permutations_take_the_place_of_loads(lanes):
    """No lane is read by itself."""
    assembly = look_up(lanes, lw.resolve_target("llvm -mcpu=znver4"), tail="mask").assembly
    assert "vpermi2b" in assembly or "vpermt2b" in assembly
    assert assembly.count("vpinsrb") == 0
