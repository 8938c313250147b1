"""Scans: states, their first steps and updates fit together; a step reads earlier steps only."""

import pytest

from loopwright import te
from loopwright.base.errors import ExpressionError


def recurrence(step, steps=1, extent=8, init=None):
    """A scan over vectors of 4, whose element at step t is ``step(state, t, i)``."""
    state = te.scan_state((extent, 4), name="state")
    first = init or te.compute((steps, 4), lambda t, i: te.const(0.0, "float32"), name="first")
    update = te.compute((extent, 4), lambda t, i: step(state, t, i), name="update")
    return te.scan(first, update, state, name="S")


def test_a_scan_has_the_shape_of_its_state():
    S = recurrence(lambda state, t, i: state[t - 1, i] + 1.0)
    assert repr(S) == "S: float32[8, 4]"
    assert repr(S.op.scan_axis) == "Axis(t: scan, 1 … +7)"


def test_several_states_give_several_tensors():
    p, q = te.scan_state((8,), name="p"), te.scan_state((8,), "int32", name="q")
    p0 = te.compute((1,), lambda t: te.const(0.0, "float32"), name="p0")
    q0 = te.compute((1,), lambda t: te.const(0, "int32"), name="q0")
    p1 = te.compute((8,), lambda t: p[t - 1] + te.cast(q[t - 1], "float32"), name="p1")
    q1 = te.compute((8,), lambda t: q[t - 1] + te.cast(p1[t], "int32"), name="q1")
    assert repr(te.scan([p0, q0], [p1, q1], [p, q], name="S")) == "(S.v0: float32[8], S.v1: int32[8])"


@pytest.mark.parametrize(
    "step",
    [
        lambda state, t, i: state[t - 1, 3 - i],
        lambda state, t, i: state[t - 1, i] + state[t - 2, i],
        lambda state, t, i: te.if_then_else(t >= 5, state[te.maximum(t - 5, 0), i], 0.0),
        lambda state, t, i: state[0, i],
        lambda state, t, i: state[t // 2, i],
    ],
)
def test_reads_of_earlier_steps_are_accepted(step):
    recurrence(step, steps=2)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda state, t, i: state[t, i], "at step t, which is not certain to come before t"),
        (lambda state, t, i: state[7 - t, i], "not certain to come before t"),
        (lambda state, t, i: state[i, i], "not certain to come before t"),
        (lambda state, t, i: state[t - 2, i], "which may be before the first"),
        (lambda state, t, i: state[t - 1, i + 4], "out of bounds"),
    ],
)
def test_reads_of_other_steps_are_refused(step, message):
    with pytest.raises(ExpressionError, match=message):
        recurrence(step)


@pytest.mark.parametrize(("steps", "accepted"), [(1, False), (2, True)])
def test_steps_back_add_up_through_the_cell(steps, accepted):
    state = te.scan_state((8,), name="state")
    first = te.compute((steps,), lambda t: te.const(1.0, "float32"), name="first")
    half = te.compute((8,), lambda t: state[t - 1] * 0.5, name="half")
    update = te.compute((8,), lambda t: te.if_then_else(t >= 1, half[t - 1], 0.0), name="update")
    if accepted:
        te.scan(first, update, state)
    else:
        with pytest.raises(ExpressionError, match="at step t - 1, which may be before the first"):
            te.scan(first, update, state)


def test_all_that_depends_on_the_state_has_time():
    state = te.scan_state((8, 4), name="state")
    first = te.compute((1, 4), lambda t, i: te.const(1.0, "float32"), name="first")
    whole = te.compute((4,), lambda i: state[0, i], name="whole")
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + whole[i], name="update")
    with pytest.raises(ExpressionError, match="whole depends on the state, so its first axis must be time"):
        te.scan(first, update, state)


def constant(shape, kind="float32"):
    return te.compute(shape, lambda *_: te.const(0, kind), name="constant")


X = te.placeholder((8, 4), name="X")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s, u: te.scan(constant((1, 4)), u, X), "must come from te.scan_state"),
        (lambda s, u: te.scan(constant((1, 5)), u, s), "do not have the shape"),
        (lambda s, u: te.scan(constant((1, 4), "int32"), u, s), "different dtypes"),
        (lambda s, u: te.scan(constant((0, 4)), u, s), "a constant of at least 1"),
        (lambda s, u: te.scan(constant((te.var("k"), 4)), u, s), "a constant of at least 1"),
        (lambda s, u: te.scan([constant((1, 4))] * 2, u, s), "named twice"),
        (lambda s, u: te.scan([constant((1, 4)), constant((1, 4))], u, s), "one each"),
        (lambda s, u: te.scan(X, u, s), "each init is a te.compute"),
        (lambda s, u: te.scan(constant((1, 4)), X, s), "each update is a te.compute"),
        (lambda s, u: te.scan(te.compute((1, 4), lambda t, i: u[t, i]), u, s), "cannot depend on the state"),
        (lambda s, u: te.scan(constant((1, 4)), u, s, inputs=[]), "X: float32.8, 4., which is not among its inputs"),
        (lambda s, u: te.scan(constant((1, 4)), u, s, name="a b"), "identifier"),
        (lambda s, u: te.scan(constant((1, 4)), 3, s), "are tensors"),
        (lambda s, u: te.scan_state((), name="empty"), "needs one extent"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make, message):
    state = te.scan_state((8, 4), name="state")
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    with pytest.raises(ExpressionError, match=message):
        make(state, update)


def test_an_extern_in_the_cell_is_refused():
    state = te.scan_state((8,), name="state")
    first = te.compute((1,), lambda t: te.const(1.0, "float32"), name="first")

    def copy(ins, outs):
        ib = te.IRBuilder()
        ib.buffer_ptr(outs[0])[0] = ib.buffer_ptr(ins[0])[0]
        return ib.get()

    E = te.extern((8,), [state], copy, name="E")
    update = te.compute((8,), lambda t: E[t], name="update")
    with pytest.raises(ExpressionError, match="extern E depends on the state"):
        te.scan(first, update, state)
