"""Exports of models with states, which contexts keep: against sessions, step by step; reset, truncate, fork."""

import ctypes
import subprocess

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright.graph import Tuple

OK, BAD_ARGUMENT, TOO_SMALL = 0, -2, -4
rng = np.random.default_rng(0)

pytestmark = needed_tools.needs("cc", package="gcc")


def growing():
    """A cache that grows in place, the axis within others, and what attends to it."""
    past, token = lw.var("past", (2, lw.te.var("length"), 4)), lw.var("token", (2, 1, 4))
    present = lw.nn.concatenate([past, token], 1)
    body = Tuple((lw.nn.mean(present, [1]), present))
    return lw.compile(lw.Function([past, token], body, output_names=("mean", "present")), state={"present": "past"})


def by_batch():
    """The same with an open batch, and rows of several tokens at a time; the past is read twice."""
    batch, rows, length = (lw.te.var(name) for name in ("batch", "rows", "length"))
    past, token = lw.var("past", (batch, length, 4)), lw.var("token", (batch, rows, 4))
    present = lw.nn.concatenate([past, token], 1)
    body = Tuple((lw.nn.sum(present * present, [1]), present))
    return lw.compile(lw.Function([past, token], body, output_names=("sum", "present")), state={"present": "past"})


def reversed_growth():
    """New rows before the old ones: no state in place, two memories that take turns."""
    past, token = lw.var("past", (2, lw.te.var("length"), 4)), lw.var("token", (2, 1, 4))
    present = lw.nn.concatenate([token, past], 1)
    body = Tuple((lw.nn.mean(present, [1]), present))
    return lw.compile(lw.Function([past, token], body, output_names=("mean", "present")), state={"present": "past"})


def recurrent():
    """Two states of fixed shape."""
    h, c, x = lw.var("h", (3, 5)), lw.var("c", (3, 5)), lw.var("x", (3, 5))
    new_c = lw.nn.tanh(h + x) * 0.5 + c
    new_h = lw.nn.sigmoid(new_c)
    body = Tuple((new_h * 2.0, new_h, new_c))
    return lw.compile(lw.Function([h, c, x], body, output_names=("y", "h1", "c1")), state={"h1": "h", "c1": "c"})


class Program:
    """A shared library, called as C would."""

    def __init__(self, library, folder, **options):
        self.files = library.export(folder, "shared", name="net", **options)
        self.code = ctypes.CDLL(str(self.files.code))
        path = self.files.weights
        self.path = [] if path is None else [str(path).encode()]
        self.context = ctypes.c_void_p()
        assert self.code.net_create(ctypes.byref(self.context), 1, *self.path) == OK

    def run(self, x, shape, *dims, context=None):
        y = np.full(shape, np.nan, np.float32)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
        code = self.code.net_run(context or self.context, *pointers, *map(ctypes.c_int64, dims))
        return code, y

    def state(self, number, rank, context=None):
        at, shape = ctypes.c_void_p(), np.zeros(rank, np.int64)
        where = ctypes.c_void_p(shape.ctypes.data)
        if code := self.code.net_state(context or self.context, number, ctypes.byref(at), where):
            return code
        return np.frombuffer(ctypes.string_at(at, int(shape.prod()) * 4), np.float32).reshape(shape)

    def fork(self):
        other = ctypes.c_void_p()
        assert self.code.net_fork(self.context, ctypes.byref(other), *self.path) == OK
        return other


@pytest.mark.parametrize("make", [growing, reversed_growth])
def test_a_cache_grows_as_in_a_session(make, tmp_path):
    library = make()
    net, session = Program(library, tmp_path), lw.Engine(library).session()
    assert net.state(0, 3) == BAD_ARGUMENT
    for step in range(40):
        x = rng.normal(size=(2, 1, 4)).astype(np.float32)
        code, y = net.run(x, (2, 4))
        assert code == OK
        np.testing.assert_array_equal(y, session(x)["mean"])
        if step == 20:
            assert net.code.net_truncate(net.context, ctypes.c_int64(7)) == OK
            assert net.code.net_truncate(net.context, ctypes.c_int64(8)) == BAD_ARGUMENT
            session.truncate(7)
    kept = net.state(0, 3)
    wanted = session.state("past")
    if library.model.states[0].is_moved:
        wanted = wanted.transpose(library.model.states[0].to_native(3))
    np.testing.assert_array_equal(kept, wanted)
    assert net.code.net_reset(net.context) == OK
    session.reset()
    np.testing.assert_array_equal(net.run(x, (2, 4))[1], session(x)["mean"])
    net.code.net_destroy(net.context)


@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_copies_go_on_by_themselves(tmp_path, weights):
    library = growing()
    if weights == "beside" and not library.model.constants:
        weights = None  # nothing lies beside then
    net = Program(library, tmp_path, **({} if weights is None else {"weights": weights}))
    steps = [rng.normal(size=(2, 1, 4)).astype(np.float32) for _ in range(5)]
    for x in steps[:3]:
        net.run(x, (2, 4))
    other = net.fork()
    net.run(steps[3], (2, 4))
    _, found = net.run(steps[4], (2, 4), context=other)
    np.testing.assert_allclose(found, np.mean([*steps[:3], steps[4]], 0)[:, 0], rtol=1e-5)
    assert net.state(0, 3).shape == net.state(0, 3, other).shape
    empty = Program(library, tmp_path / "other")
    fresh = empty.fork()  # of states that have no value yet
    np.testing.assert_array_equal(empty.run(steps[0], (2, 4), context=fresh)[1], steps[0][:, 0])
    for context in (net.context, other):
        net.code.net_destroy(context)


def test_dimensions_that_others_tell_are_given_and_those_of_states_are_not(tmp_path):
    library = by_batch()
    net, session = Program(library, tmp_path), lw.Engine(library).session()
    assert "const float *token, float *sum, int64_t batch, int64_t rows)" in net.files.header.read_text()
    order = {"batch": 3, "rows": 2}
    names = [name for name in library.model.dims if name in order]
    for rows in (2, 1, 5):
        x = rng.normal(size=(3, rows, 4)).astype(np.float32)
        code, y = net.run(x, (3, 4), *[(order | {"rows": rows})[name] for name in names])
        assert code == OK
        np.testing.assert_allclose(y, session(x)["sum"], rtol=1e-6)
    code, _ = net.run(x[:2], (2, 4), *[{"batch": 2, "rows": 5}[name] for name in names])
    assert code == BAD_ARGUMENT  # the state has another batch
    assert net.state(0, 3).size == 3 * 8 * 4
    net.code.net_destroy(net.context)


def test_states_of_fixed_shape_begin_as_zeros(tmp_path):
    library = recurrent()
    net, session = Program(library, tmp_path), lw.Engine(library).session()
    for _ in range(5):
        x = rng.normal(size=(3, 5)).astype(np.float32)
        np.testing.assert_array_equal(net.run(x, (3, 5))[1], session(x)["y"])
    assert net.code.net_truncate(net.context, ctypes.c_int64(0)) == BAD_ARGUMENT
    other = net.fork()
    assert net.code.net_reset(net.context) == OK
    np.testing.assert_array_equal(net.run(x, (3, 5), context=other)[1], session(x)["y"])
    session.reset()
    np.testing.assert_array_equal(net.run(x, (3, 5))[1], session(x)["y"])
    assert net.state(1, 2).shape == (3, 5)
    assert net.state(2, 2) == BAD_ARGUMENT
    for context in (net.context, other):
        net.code.net_destroy(context)


def test_a_state_that_no_input_tells_the_size_of_is_refused(tmp_path):
    past, x = lw.var("past", (lw.te.var("width"), 3)), lw.var("x", (1, 3))
    body = Tuple((lw.nn.sum(past, [0]) + x, past * 2.0))
    library = lw.compile(lw.Function([past, x], body, output_names=("y", "next")), state={"next": "past"})
    with pytest.raises(lw.ModelError, match="no input tells the extent width of the state past"):
        library.export(tmp_path)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_is_c_and_cpp(tmp_path, language):
    files = recurrent().export(tmp_path, name="net")
    source = tmp_path / "main.c"
    source.write_text(
        '#include "net.h"\nint main(void) { net_context *net = 0; return net_reset(net) != NET_BAD_ARGUMENT; }\n'
    )
    flags = ["-std=c99", "-pedantic"] if language == "c" else ["-x", "c++"]
    done = subprocess.run(
        ["cc", *flags, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{files.header.parent}", source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_states_beside_outputs_whose_size_only_the_run_knows(tmp_path):
    """What is above 0 of a running sum."""
    total, x = lw.var("total", (6,)), lw.var("x", (6,))
    after = total + x
    found = lw.nn.nonzero(after > 0.0)
    body = Tuple((found, after))
    library = lw.compile(lw.Function([total, x], body, output_names=("found", "after")), state={"after": "total"})
    net, session = Program(library, tmp_path), lw.Engine(library).session()
    for _ in range(6):
        x = rng.normal(size=6).astype(np.float32)
        places, shape = np.zeros(6, np.int64), np.zeros(2, np.int64)
        at = [ctypes.c_void_p(a.ctypes.data) for a in (x, places)]
        room = 6 if rng.random() < 0.7 else 0
        code = net.code.net_run(net.context, *at, ctypes.c_int64(room), ctypes.c_void_p(shape.ctypes.data))
        if code == TOO_SMALL:  # the state stays as it was
            code = net.code.net_run(net.context, *at, ctypes.c_int64(6), ctypes.c_void_p(shape.ctypes.data))
        assert code == OK
        wanted = session(x)["found"]
        np.testing.assert_array_equal(places[: wanted.size].reshape(wanted.shape), wanted)
        assert tuple(shape) == wanted.shape
        np.testing.assert_array_equal(net.state(0, 1), session.state("total"))
    net.code.net_destroy(net.context)
