"""What is refused of states: pairs that are none, names, models of another kind, and wrong uses of sessions."""

import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright import nn, te
from loopwright.graph.node import Tuple


def grown():
    """The sum of all rows so far, which are the state."""
    past, x = lw.var("past", (te.var("n"), te.var("b"), 4)), lw.var("x", (2, 3, 4))
    present = nn.concatenate([past, x], 0)
    return lw.Function([past, x], Tuple((nn.sum(present, [0]), present)), "rows", ("y", "present"))


@pytest.fixture(scope="module")
def library():
    return lw.compile(grown(), jobs=1, state={"present": "past"})


@pytest.fixture
def session(library):
    return lw.Engine(library, threads=1).session()


X = np.ones((2, 3, 4), np.float32)


@pytest.mark.parametrize("given", [3, "past", ["present", "past"], {"present": 0}, {1: "past"}])
def test_what_is_no_pair_of_names_is_refused(given):
    with pytest.raises(lw.RuntimeArgumentError, match="state should be 'auto', or the names of outputs"):
        lw.compile(grown(), state=given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"presents": "past"}, "state= names 'presents', which is no output of rows; its outputs are y, present"),
        ({"present": "pasts"}, "state= names 'pasts', which is no input of rows; its inputs are past, x"),
        ({"present": "past", "y": "past"}, "state= makes two outputs, 'present' and 'y', the next input 'past'"),
        (
            {"y": "past"},
            "rows: state={'y': 'past'}: an output float32[3, 4] cannot be the next input float32[n, 3, 4]: dtype",
        ),
        (
            {"present": "x"},
            "float32[n + 2, 3, 4] cannot be the next input float32[2, 3, 4]: it may differ in one axis, which is",
        ),
    ],
)
def test_pairs_that_are_no_states_are_refused(given, message):
    with pytest.raises(lw.ModelError, match=re.escape(message)):
        lw.compile(grown(), state=given, jobs=1)


def test_a_state_of_known_length_cannot_grow():
    past, x = lw.var("past", (8, 4)), lw.var("x", (1, 4))
    function = lw.Function([past, x], nn.concatenate([past, x], 0), "f", ("present",))
    with pytest.raises(lw.ModelError, match="it may differ in one axis, which is open in the input"):
        lw.compile(function, state={"present": "past"}, jobs=1)


def test_names_that_tell_of_no_state_are_an_error_with_all_of_them():
    x = lw.var("x", (4,))
    with pytest.raises(
        lw.ModelError, match=re.escape("finds no state of f by the names of its inputs, x, and outputs, y")
    ):
        lw.compile(lw.Function([x], nn.relu(x), "f", ("y",)), state="auto")


def test_models_with_lists_keep_no_states():
    info = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])
    nodes = [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    made = helper.make_model(helper.make_graph(nodes, "g", [info], [y]), opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(lw.ModelError, match="has strings, lists or absent values among its inputs and outputs"):
        lw.compile(made, state={"y": "s"})


def test_a_model_without_states_has_no_sessions():
    x = lw.var("x", (4,))
    engine = lw.Engine(lw.compile(lw.Function([x], nn.relu(x), "f"), jobs=1))
    with pytest.raises(lw.RuntimeArgumentError, match="f keeps no state: compile it with state="):
        engine.session()


def test_a_model_with_states_runs_in_sessions_only(library):
    engine = lw.Engine(library, threads=1)
    runs = [
        lambda: engine([X]),
        lambda: engine.submit([X]),
        lambda: engine.bind([X]),
        lambda: engine.profile([X]),
        lambda: engine.time_steps([X]),
        lambda: engine.values([X]),
        lambda: engine.compare([X]),
    ]
    for run in runs:
        with pytest.raises(
            lw.RuntimeArgumentError, match=r"rows keeps the state past .* session = engine\.session\(\)"
        ):
            run()
    engine.init().set_input("x", X)
    with pytest.raises(lw.RuntimeArgumentError, match="runs belong to a session"):
        engine.run()


def test_a_session_takes_all_inputs_but_the_states(session):
    with pytest.raises(lw.RuntimeArgumentError, match="rows takes the inputs x"):
        session({"x": X, "past": X})
    with pytest.raises(lw.RuntimeArgumentError, match=r"input x should have shape \(2, 3, 4\)"):
        session(X[:, :2].copy())
    with pytest.raises(lw.RuntimeArgumentError, match="threads should be"):
        session(X, threads=0)
    with pytest.raises(lw.RuntimeArgumentError, match="buffer of output y should have shape"):
        session(X, out=[np.empty((1, 4), np.float32)])
    assert session.length == 0
    session(X)
    assert session.length == 2


def test_a_session_is_not_pickled(session):
    import pickle

    with pytest.raises(lw.RuntimeArgumentError, match="a session belongs to an engine of this process"):
        pickle.dumps(session)


def test_lengths_are_those_that_there_are(session):
    session(X)
    for wrong in (3, -1, 1.5, True, "1"):
        with pytest.raises(lw.RuntimeArgumentError, match="length should be a whole number from 0 to 2"):
            session.truncate(wrong)
    assert session.length == 2


def test_states_are_set_by_name_to_arrays_that_fit(session):
    for wrong, message in (
        ({"x": X}, "reset takes a mapping of states by their names, past, found x"),
        (X, "reset takes a mapping of states by their names, past, found a ndarray"),
        ({"past": X.astype(np.float64)}, "state past should have dtype float32, found float64"),
        ({"past": X[0]}, "state past should have shape"),
        ({"past": 3}, "state past should be a numpy array"),
    ):
        with pytest.raises(lw.RuntimeArgumentError, match=message):
            session.reset(wrong)
    with pytest.raises(lw.RuntimeArgumentError, match="rows has no state 'y'; its states are past"):
        session.state("y")


def test_a_state_of_which_no_input_tells_an_extent_has_to_be_set():
    past, x = lw.var("past", (te.var("length"), 4)), lw.var("x", (4,))
    present = nn.add(past, x)
    function = lw.Function([past, x], Tuple((nn.sum(present, [0]), present)), "f", ("y", "present"))
    session = lw.Engine(lw.compile(function, state="auto", jobs=1), threads=1).session()
    x = np.ones(4, np.float32)
    with pytest.raises(lw.RuntimeArgumentError, match=r"no input tells the extent length of the state past: float32"):
        session(x)
    session.reset({"past": np.ones((3, 4), np.float32)})
    np.testing.assert_array_equal(session(x)[0], np.full(4, 6, np.float32))
