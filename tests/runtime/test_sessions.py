"""Sessions: states that stay in memory from run to run, against onnxruntime or numpy with the states handed on."""

import gc
import pickle
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright import nn, te
from loopwright.graph.node import Tuple

TARGET = "x86-64-v3"
HEADS, SIZE = 2, 8
rng = np.random.default_rng(8)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def step(axis=2):
    """New rows, each times the sum of all rows so far. These are the state, which grows along ``axis``."""
    p, s, b = te.var("past"), te.var("tokens"), te.var("batch")
    x = lw.var("x", (b, HEADS, s, SIZE))
    order = [0, 1, 3]
    order.insert(axis, 2)
    shape = [b, HEADS, p, SIZE]
    past = lw.var("past", tuple(shape[k] for k in order))
    present = nn.concatenate([past, nn.transpose(nn.relu(x), order)], axis)
    total = nn.transpose(nn.sum(present, [axis], True), np.argsort(order).tolist())
    return lw.Function([past, x], Tuple((nn.multiply(x, total), present)), "step", ("y", "present"))


def by_numpy(x, past):
    """The result for [batch, heads, tokens, size], and the rows so far."""
    rows = np.concatenate([past, np.maximum(x, 0)], 2)
    return x * rows.sum(2, keepdims=True), rows


@pytest.fixture(scope="module")
def library():
    return lw.compile(step(), target=TARGET, jobs=1, state={"present": "past"})


@pytest.fixture
def engine(library):
    return lw.Engine(library, threads=1)


def empty(batch=3):
    return np.zeros((batch, HEADS, 0, SIZE), np.float32)


def go_on(session, past, *tokens, batch=3):
    """Run so many tokens at a time, compare, and give the keys so far."""
    for count in tokens:
        x = floats(batch, HEADS, count, SIZE)
        (y,) = session(x)
        wanted, past = by_numpy(x, past)
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(session.state("past"), past)
        assert session.length == past.shape[2]
    return past


def test_a_session_takes_and_gives_what_is_no_state(engine):
    session = engine.session()
    assert (session.inputs.names, session.outputs.names) == (("x",), ("y",))
    assert (engine.inputs.names, engine.outputs.names) == (("x",), ("y",))
    assert str(session.states) == str(engine.states) == str(engine.library.states) == "past: float32[batch, 2, past, 8]"
    assert "1 state" in repr(engine.library)
    assert "past: float32[batch, 2, past, 8]" in engine.library._repr_html_()
    assert session.state("past") is None
    assert (session.length, session.nbytes) == (0, 0)
    out = np.empty((1, HEADS, 1, SIZE), np.float32)
    x = floats(1, HEADS, 1, SIZE)
    assert session({"x": x}, out=[out])["y"] is out
    np.testing.assert_allclose(out, by_numpy(x, empty(1))[0], rtol=1e-4, atol=1e-4)
    assert repr(session) == "<Session of step, length 1, states of 64 B>"


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_states_grow_along_any_axis(axis):
    made = lw.compile(step(axis), target=TARGET, jobs=1, state={"present": "past"})
    (state,) = made.model.states
    assert (state.axis, state.in_place) == (axis, True)
    session = lw.Engine(made, threads=1).session()
    past = empty()
    order = [0, 1, 3]
    order.insert(axis, 2)
    for count in (4, 1, 1, 3, 1):
        x = floats(3, HEADS, count, SIZE)
        wanted, past = by_numpy(x, past)
        np.testing.assert_allclose(session(x)[0], wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(session.state("past"), past.transpose(order))
    session.truncate(2)
    np.testing.assert_array_equal(session.state("past"), past[:, :, :2].transpose(order))


def test_only_what_is_new_is_written(library, engine):
    """No code reads the past to write it: a step stores as many elements as it has new ones, at their place, and what
    lies before them stays as it is, whatever that is."""
    names = [function.name for function in library.functions]
    (append,) = (function for function in library.functions if "append" in function.name)
    stores = re.findall(r"^\s*append_rows\[(.*)\] = (\w+)\[", append.loop_ir, re.MULTILINE)
    assert [source for _, source in stores] == ["p1"]  # the new rows; p0 is the past
    assert "p0[" not in append.loop_ir.partition("\n")[2]
    assert not any("concatenate" in name for name in names)
    session = engine.session()
    go_on(session, empty(), 9, 1)
    copied = session.copied_bytes
    value = session._states["past"].value
    value[...] = 7
    x = floats(3, HEADS, 1, SIZE)
    (y,) = session(x)
    past = np.full((3, HEADS, 10, SIZE), 7, np.float32)
    wanted, past = by_numpy(x, past)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(session.state("past"), past)
    assert session.copied_bytes == copied


def test_capacity_doubles_so_that_few_bytes_are_copied(engine):
    session = engine.session()
    token = 3 * HEADS * SIZE * 4
    moves, past, before = 0, empty(), 0
    for _ in range(100):
        past = go_on(session, past, 1)
        moves += session.copied_bytes > before
        before = session.copied_bytes
    assert session.used_bytes == 100 * token
    assert session.nbytes == 128 * token
    assert moves == 7  # at 1, 2, 4, … 64
    assert session.copied_bytes == 127 * token


def test_reset_begins_anew_and_may_set_states(engine):
    session = engine.session()
    go_on(session, empty(), 5)
    held = session.nbytes
    session.reset()
    assert (session.length, session.state("past"), session.nbytes) == (0, None, held)
    go_on(session, empty(), 2, 1)
    past = floats(2, HEADS, 6, SIZE)
    session.reset({"past": past})
    np.testing.assert_array_equal(session.state("past"), past)
    kept = past.copy()
    past[...] = 0
    go_on(session, kept, 1, 2, batch=2)
    session.reset()
    go_on(session, empty(1), 3, 1, batch=1)


def test_truncate_takes_back_the_last_tokens(engine):
    session = engine.session()
    past = go_on(session, empty(), 5, 1, 1)
    session.truncate(4)
    np.testing.assert_array_equal(session.state("past"), past[:, :, :4])
    past = go_on(session, past[:, :, :4], 1, 2)
    session.truncate(session.length)
    session.truncate(0)
    go_on(session, empty(), 2)


def test_forks_go_on_by_themselves(engine):
    session = engine.session()
    past = go_on(session, empty(), 5, 1)
    other = session.fork()
    go_on(other, past, 1, 1)
    np.testing.assert_array_equal(session.state("past"), past)
    go_on(session, past, 2, 1)
    assert engine.session().fork().length == 0


def test_sessions_take_turns_on_an_engine(library):
    engine = lw.Engine(library, threads=1, executors=2)
    sessions = [engine.session() for _ in range(3)]
    pasts = [empty(k + 1) for k in range(3)]
    for step in range(4):
        for k, session in enumerate(sessions):
            pasts[k] = go_on(session, pasts[k], 1 + (step + k) % 3, batch=k + 1)


def test_requests_have_states_of_their_own(engine):
    requests = [engine.request() for _ in range(2)]
    pasts = [empty(), empty()]
    for count in (3, 1, 1):
        for k, request in enumerate(requests):
            x = floats(3, HEADS, count, SIZE)
            request.set_input("x", x)
            request.run()
            wanted, pasts[k] = by_numpy(x, pasts[k])
            np.testing.assert_allclose(request.get_output("y"), wanted, rtol=1e-4, atol=1e-4)


def test_a_run_that_fails_leaves_the_states(library):
    limit = lw.Engine(library, threads=1).planned_memory({"x": (3, HEADS, 40, SIZE), "past": (3, HEADS, 40, SIZE)})
    engine = lw.Engine(library, threads=1, memory=limit.peak)
    session = engine.session()
    past = go_on(session, empty(), 5, 1)
    with pytest.raises(lw.OutOfMemoryError, match="or for states"):
        session(floats(3, HEADS, 2000, SIZE))
    past = go_on(session, past, 1)
    with pytest.raises(lw.RuntimeArgumentError, match="batch"):
        session(floats(2, HEADS, 1, SIZE))
    go_on(session, past, 1)


def test_states_count_as_memory_of_the_engine(engine):
    before = engine.memory().held
    session = engine.session()
    go_on(session, empty(), 5, 1)
    use = engine.memory()
    assert use.held - before >= session.nbytes
    engine.trim()
    assert engine.memory().held == engine.memory().used + session.nbytes - session.used_bytes == session.nbytes
    del session
    gc.collect()
    assert engine.memory().held == 0
    assert not any(isinstance(owner, tuple) for owner in engine._budget._claims)


def test_libraries_keep_their_states(library, tmp_path):
    library.save(tmp_path / "step.lwlib")
    for other in (lw.load(tmp_path / "step.lwlib"), pickle.loads(pickle.dumps(library))):
        assert other.model.states == library.model.states
        go_on(lw.Engine(other, threads=1).session(), empty(), 4, 1, 1)


def test_the_cache_of_models_tells_states_apart(tmp_path, monkeypatch):
    monkeypatch.delenv("LOOPWRIGHT_CACHE_MODELS", raising=False)
    path = tmp_path / "sums.onnx"
    h, x, y, n = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("h", "x", "y", "hn"))
    nodes = [helper.make_node("Add", ["h", "x"], ["hn"]), helper.make_node("Mul", ["h", "x"], ["y"])]
    path.write_bytes(helper.make_model(helper.make_graph(nodes, "sums", [h, x], [y, n])).SerializeToString())
    plain = lw.compile(path, target=TARGET)
    kept = lw.compile(path, target=TARGET, state="auto")
    again = lw.compile(path, target=TARGET, state="auto")
    assert (plain.states.names, kept.states.names, again.states.names) == ((), ("h",), ("h",))


def test_a_past_that_others_read_is_written_in_place_all_the_same():
    p, b = te.var("past"), te.var("b")
    past, x = lw.var("past", (b, p, 4)), lw.var("x", (b, 1, 4))
    present = nn.concatenate([past, x], 1)
    body = Tuple((nn.sum(past, [1]), nn.sum(present, [1]), present))
    made = lw.compile(lw.Function([past, x], body, "sums", ("before", "behind", "present")), state={"present": "past"})
    assert made.model.states[0].in_place
    session = lw.Engine(made, threads=1).session()
    rows = floats(2, 5, 4)
    for k in range(5):
        before, behind = session(rows[:, k : k + 1].copy())
        np.testing.assert_allclose(before, rows[:, :k].sum(1), atol=1e-5)
        np.testing.assert_allclose(behind, rows[:, : k + 1].sum(1), atol=1e-5)


@pytest.mark.parametrize("how", ["reversed", "twice"])
def test_a_state_that_cannot_be_written_in_place_is_written_whole(how):
    """New rows before the past; a result that is given twice."""
    p = te.var("past")
    past, x = lw.var("past", (3, p)), lw.var("x", (3, 2))
    parts = [x, past] if how == "reversed" else [past, x]
    present = nn.concatenate(parts, 1)
    fields = (nn.sum(present, [1]), present) if how == "reversed" else (present, present)
    function = lw.Function([past, x], Tuple(fields), "f", ("y", "present"))
    if how == "twice":
        function = lw.Function([past, x], Tuple((present, present)), "f")
    outputs = function.output_names or ("output0", "output1")
    made = lw.compile(function, state={outputs[1]: "past"}, jobs=1)
    assert not made.model.states[0].in_place
    session = lw.Engine(made, threads=1).session()
    past = np.zeros((3, 0), np.float32)
    for _ in range(5):
        x = floats(3, 2)
        past = np.concatenate([x, past] if how == "reversed" else [past, x], 1)
        (y,) = session(x)
        np.testing.assert_allclose(y, past.sum(1) if how == "reversed" else past, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(session.state("past"), past)
    session.truncate(4)
    np.testing.assert_array_equal(session.state("past"), past[:, :4])


def test_states_of_fixed_shape_take_turns_in_two_memories():
    h, x = lw.var("h", (te.var("b"), 4)), lw.var("x", (te.var("b"), 4))
    made = lw.compile(lw.Function([h, x], Tuple((nn.add(h, x), nn.multiply(h, x))), "f", ("next_h", "y")), state="auto")
    session = lw.Engine(made, threads=1).session()
    state = np.zeros((2, 4), np.float32)
    places = set()
    for _ in range(6):
        x = floats(2, 4)
        np.testing.assert_array_equal(session(x)["y"], state * x)
        state = state + x
        np.testing.assert_array_equal(session.state("h"), state)
        places.add(session._states["h"].value.ctypes.data)
    assert len(places) == 2
    assert session.copied_bytes == 0
    with pytest.raises(lw.RuntimeArgumentError, match="state h has a fixed shape, and cannot be truncated"):
        session.truncate(0)
    fork = session.fork()
    np.testing.assert_array_equal(fork(x)["y"], state * x)


@pytest.mark.parametrize(("operator", "aliased"), [("nd", True), ("elements", True), ("nd", False)])
def test_a_scatter_into_a_state_is_in_place_where_nothing_else_reads_the_past(operator, aliased):
    past, at, x = lw.var("past", (6, 4)), lw.var("at", (1, 1), "int64"), lw.var("x", (1, 4))
    if operator == "nd":
        present = nn.scatter_nd(past, at, x, "add")
    else:
        present = nn.scatter_elements(past, nn.broadcast_to(at, (1, 4)), x, 0, "add")
    y = nn.sum(present, [0]) if aliased else nn.sum(nn.add(past, present), [0])
    made = lw.compile(lw.Function([past, at, x], Tuple((y, present)), "f", ("y", "present")), state="auto", jobs=1)
    assert made.model.states[0].in_place == aliased
    session = lw.Engine(made, threads=1).session()
    state = np.zeros((6, 4), np.float32)
    for k in (2, 0, 2, 5):
        row = floats(1, 4)
        before = state.copy()
        state[k] += row[0]
        (y,) = session([np.array([[k]]), row])
        np.testing.assert_allclose(y, (state if aliased else before + state).sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(session.state("past"), state, rtol=1e-6)


def test_outputs_that_only_a_run_knows_may_be_states():
    """Indices of what is not 0, which the next run doubles."""
    past, x = lw.var("past", (1, te.var("n")), "int64"), lw.var("x", (te.var("m"),))
    found = nn.nonzero(nn.relu(x))
    body = Tuple((nn.multiply(past, lw.const(np.int64(2))), found))
    made = lw.compile(lw.Function([past, x], body, "f", ("y", "present")), state={"present": "past"}, jobs=1)
    session = lw.Engine(made, threads=1).session()
    before = np.zeros((1, 0), np.int64)
    for size in (5, 9, 2):
        x = floats(size)
        np.testing.assert_array_equal(session(x)["y"], 2 * before)
        before = np.array(np.nonzero(np.maximum(x, 0)))
        np.testing.assert_array_equal(session.state("past"), before)
