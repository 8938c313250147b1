"""Models some extents of which only a run knows: results, memory of the caller's, errors, and what is told of runs."""

import gc
import weakref

import numpy as np
import pytest

import loopwright as lw
from loopwright import nn, te
from loopwright.graph.node import Tuple
from loopwright.ops.families.born_extents import born_extents
from loopwright.ops.families.repeat import broadcast_to_extents
from loopwright.runtime.stage_memory import StageSegments

rng = np.random.default_rng(5)


def found_rows(x):
    """The rows of x in which a positive element stands, as often as one stands there; and where these are."""
    places = nn.nonzero(nn.greater(x, lw.const(np.float32(0))))
    return places, nn.take(x, nn.reshape(nn.split(places, [1, 1], 0)[0], (-1,)), 0)


def twice_born():
    """Two births, each of what the one before has let be computed, a concatenation over the first, and a sum of known
    shape."""
    x = lw.var("x", (te.var("n"), 7))
    places, rows = found_rows(x)
    shares = nn.softmax(nn.multiply(rows, lw.const(np.float32(2))))
    large = nn.nonzero(nn.greater(shares, lw.const(np.float32(0.3))))
    joined = nn.concatenate([nn.relu(x), nn.exp(rows)], 0)
    return lw.Function([x], Tuple((places, large, nn.sum(shares, [0]), nn.exp(joined), joined)))


def twice_born_by_numpy(x):
    places = np.array(np.nonzero(x > 0))
    rows = x[places[0]]
    powers = np.exp(rows.astype(np.float64) * 2)
    shares = (powers / powers.sum(1, keepdims=True)).astype(np.float32)
    joined = np.concatenate([np.maximum(x, 0), np.exp(rows)], 0)
    return places, np.array(np.nonzero(shares > np.float32(0.3))), shares.sum(0), np.exp(joined), joined


def assert_equal(found, x):
    for ours, wanted in zip(found, twice_born_by_numpy(x), strict=True):
        assert ours.shape == wanted.shape
        assert ours.dtype == wanted.dtype
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)


def drawn(n):
    return rng.standard_normal((n, 7)).astype(np.float32)


@pytest.fixture(scope="module")
def library():
    return lw.compile(twice_born())


def test_extents_of_the_run_may_be_any_number(library):
    engine = lw.Engine(library)
    for n in (5, 3, 100, 1, 17, 100):
        assert_equal(engine([x := drawn(n)]), x)
    assert_equal(engine([x := -np.abs(drawn(4))]), x)  # nothing is found


def test_a_library_file_has_the_stages(library, tmp_path):
    library.save(tmp_path / "births.lwlib")
    loaded = lw.load(tmp_path / "births.lwlib")
    assert loaded.model.body == library.model.body
    assert_equal(lw.Engine(loaded)([x := drawn(9)]), x)


def test_executors_have_frames_of_their_own(library):
    engine = lw.Engine(library, executors=2)
    given = [drawn(n) for n in (40, 3, 11, 80, 5, 23)] * 4
    for future, x in [(engine.submit([x]), x) for x in given]:
        assert_equal(future.result(), x)


def test_outputs_own_their_memory(library):
    engine = lw.Engine(library)
    kept = [(x, engine([x])) for x in (drawn(30), drawn(31), drawn(30))]
    for x, outputs in kept:
        assert_equal(outputs, x)
    part = kept[0][1][4][:2]
    wanted = part.copy()
    output = weakref.ref(part.base)
    del kept, outputs
    gc.collect()
    np.testing.assert_array_equal(part, wanted)
    assert isinstance(output(), np.ndarray), "a part of an output keeps it, and its memory"
    del part
    gc.collect()
    assert output() is None


def test_python_is_asked_for_memory_only_for_large_outputs_and_what_has_grown(library, monkeypatch):
    asked = []
    grown = StageSegments._grown
    monkeypatch.setattr(StageSegments, "_grown", lambda self, *of: asked.append(of) or grown(self, *of))
    engine = lw.Engine(library)
    for n, is_large in ((300, False), (1_200, True)):  # the largest output has some 40 KiB, and 160
        x = drawn(n)
        engine([x])
        engine([x])
        asked.clear()
        assert_equal(engine([x]), x)
        assert bool(asked) is is_large


def test_outputs_of_any_size_follow_each_other(library):
    engine = lw.Engine(library)
    kept = []
    for n in (3, 900, 1, 900, 40, 2_000, 0, 3, 900):  # those of 64 KiB and less are copied, larger ones are not
        x = drawn(n) if n else -np.abs(drawn(4))
        kept.append((x, engine([x])))
        buffers = [np.empty(array.shape, array.dtype) for array in twice_born_by_numpy(x)]
        if n == 40:
            assert_equal(engine([x], out=buffers), x)
            buffers[1] = np.empty((2, 0), np.int64)
            with pytest.raises(lw.RuntimeArgumentError, match="output1 is too small"):
                engine([x], out=buffers)
    for x, outputs in kept:
        assert_equal(outputs, x)
    large = weakref.ref(kept[1][1][4])
    del kept, outputs
    gc.collect()
    assert large() is None
    engine.trim()
    assert engine.memory().held == 0
    assert_equal(engine([x := drawn(900)]), x)


def test_buffers_may_have_room_to_spare(library):
    engine, x = lw.Engine(library), drawn(20)
    wanted = twice_born_by_numpy(x)
    buffers = [np.empty(array.size + 100 * (k != 2), array.dtype) for k, array in enumerate(wanted)]
    outputs = engine([x], out=buffers)
    assert_equal(outputs, x)
    assert all(np.shares_memory(a, b) for a, b in zip(outputs, buffers, strict=True))
    exact = [np.empty_like(array) for array in wanted]
    assert_equal(engine([x], out=exact), x)
    assert_equal(exact, x)


def test_a_buffer_that_is_too_small_is_an_error_with_the_shape(library):
    engine, x = lw.Engine(library), drawn(20)
    wanted = twice_born_by_numpy(x)
    buffers = [np.empty_like(array) for array in wanted]
    buffers[1] = np.empty((2, wanted[1].shape[1] - 1), np.int64)
    with pytest.raises(
        lw.RuntimeArgumentError, match=rf"output1 is too small for its shape, .*2, {wanted[1].shape[1]}"
    ):
        engine([x], out=buffers)
    with pytest.raises(lw.RuntimeArgumentError, match="output1 should have dtype int64"):
        engine([x], out=[*buffers[:1], buffers[1].astype(np.int32), *buffers[2:]])
    assert_equal(engine([x]), x)


def test_memory_that_is_refused_leaves_the_engine_usable(library):
    engine = lw.Engine(library, memory=60_000)
    assert_equal(engine([x := drawn(20)]), x)
    with pytest.raises(lw.OutOfMemoryError, match=r"for n = 2000 needs .* The limit is 60000"):
        engine([np.abs(drawn(2000))])
    assert_equal(engine([x]), x)


def test_bound_engines_give_new_outputs(library):
    bound = lw.Engine(library).bind([x := drawn(12)])
    first = bound()
    assert_equal(first, x)
    x[:] = drawn(12)
    assert_equal(bound(), x)
    assert "int64[2, nonzero]" in repr(bound)


def test_steps_are_profiled_and_compared(library):
    engine, x = lw.Engine(library), drawn(12)
    profile = engine.profile([x])
    assert len(profile.steps) == len(library.model.steps)
    count = np.count_nonzero(x > 0)
    assert (count, 7) in [step.shape for step in profile.steps]


def asked_for(numbers):
    """Zeros of a shape that is data."""
    shape = lw.var("shape", (len(numbers),), "int64")
    witness = born_extents(shape, [f"d{k}" for k in range(len(numbers))], "the shape of the zeros")
    zeros = broadcast_to_extents(lw.const(np.float32(0)), witness.type.shape, [witness])
    return lw.Engine(lw.compile(lw.Function([shape], zeros)))


def test_numbers_that_are_no_extents_are_refused():
    engine = asked_for((2, 3))
    assert engine([np.array([2, 3])])[0].shape == (2, 3)
    assert engine([np.array([0, 3])])[0].shape == (0, 3)
    with pytest.raises(lw.RuntimeArgumentError, match=r"the shape of the zeros should be 0 or more, .*found -3"):
        engine([np.array([2, -3])])
    with pytest.raises(lw.RuntimeArgumentError, match=r"no more than 2\*\*47, found 9223372036854775807"):
        engine([np.array([2, 2**63 - 1])])
    with pytest.raises(
        lw.RuntimeArgumentError, match=r"for d0 = 17179869184, d1 = 17179869184 it needs more than 2\*\*47"
    ):
        engine([np.array([2**34, 2**34])])
    with pytest.raises(lw.OutOfMemoryError):
        engine([np.array([2**40, 1])])
    assert engine([np.array([4, 3])])[0].shape == (4, 3)
