"""lstm, gru and rnn as users call them: their types, misuse, and values against numpy."""

import numpy as np
import pytest
import recurrences
from pairs import each_pair

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.graph.node import Call
from loopwright.graph.visit import post_order
from loopwright.ops import nn
from loopwright.ops.definition.registry import get_op


def floats(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 5), (4, 18), (13, 3), (1, 40)])
def test_lstm_gives_all_states_and_the_last(ops, batch, hidden, native):
    x, w, r, bias = (floats(*s) for s in ((3, batch, 4), (4 * hidden, 4), (4 * hidden, hidden), (4 * hidden,)))
    zero = np.zeros((1, hidden))
    hs, cs = recurrences.lstm(x @ w.T + bias, r, zero, zero)
    variables = [ops.var(a.shape, name=f"x{k}") for k, a in enumerate((x, w, r, bias))]
    feeds = dict(zip(variables, (x, w, r, bias), strict=True))
    for node, wanted in zip(nn.lstm(*variables), (hs[1:], hs[-1], cs[-1]), strict=True):
        np.testing.assert_allclose(ops.evaluate(node, feeds, native=native), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_resets_the_state_before_the_product_or_after(ops, reset_after):
    x, w, r, b = floats(3, 2, 4), floats(15, 4), floats(15, 5), floats(5)
    variables = [ops.var(a.shape, name=f"x{k}") for k, a in enumerate((x, w, r, b))]
    feeds = dict(zip(variables, (x, w, r, b), strict=True))
    more = {"reset_bias": variables[3]} if reset_after else {}
    y, last = nn.gru(*variables[:3], **more)
    states = recurrences.gru(x @ w.T, r, np.zeros((1, 5)), b if reset_after else None)
    np.testing.assert_allclose(ops.evaluate(y, feeds), states[1:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ops.evaluate(last, feeds), states[-1], rtol=1e-5, atol=1e-6)


def test_time_and_batch_may_be_symbolic(ops):
    time, batch = te.var("T"), te.var("B")
    y, last = nn.rnn(ops.var((time, batch, 4)), ops.var((6, 4)), ops.var((6, 6)))
    assert str(y.type) == "float32[T, B, 6]"
    assert str(last.type) == "float32[B, 6]"


def test_the_products_with_the_inputs_are_one_product_of_all_rows(ops):
    y, _ = nn.rnn(ops.var((te.var("T"), 3, 4)), ops.var((6, 4)), ops.var((6, 6)))
    (product,) = (n for n in post_order(y) if isinstance(n, Call) and n.op.name == "nn.matmul")
    assert product.type.ndim == 2


def steps(ops, *, x=(3, 2, 12), r=(1, 3, 4, 16), h=(2, 3), c=(2, 3), kinds=("float32",) * 4, **attrs):
    op = get_op("nn.lstm_steps")
    given = {"activations": ("Tanh",) * 3, "alphas": (0.0,) * 3, "betas": (0.0,) * 3} | attrs
    shapes = zip((x, r, h, c), kinds, strict=True)
    return op(*(ops.var(shape, kind) for shape, kind in shapes), attrs=op.attrs(**given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kinds": ("float16",) * 4}, "x must be of float32 or float64"),
        ({"kinds": ("float32", "float64", "float32", "float32")}, "r must be of float32 as x is"),
        ({"r": (2, 3, 4, 16)}, r"r must be \[panels, hidden, 4, 16\]"),
        ({"x": (3, 2, 9)}, r"x must be \[time, batch, 4 · 3\]"),
        ({"h": (2, 4)}, r"h must be \[batch, 3\] of float32"),
        ({"c": (5, 3)}, "x has the batch 2, but c 5"),
        ({"alphas": (0.0,)}, "it has 3 activations, each with alpha and beta"),
        ({"activations": ("Sine",) * 3}, "must be of Affine, Elu"),
        ({"clip": 0.0}, "must be above 0"),
    ],
)
def test_misuse_of_the_steps_is_told(ops, given, message):
    with pytest.raises(TypeInferenceError, match=message):
        steps(ops, **given)


def test_misuse_of_the_calls_is_told(ops):
    x, w = ops.var((3, 2, 4)), ops.var((12, 4))
    with pytest.raises(TypeInferenceError, match=r"gru: r must be \[3 · hidden, hidden\], with known extents"):
        nn.gru(x, w, ops.var((12, 3)))
    with pytest.raises(TypeInferenceError, match=r"rnn: x must be \[time, batch, inputs\] and w a matrix"):
        nn.rnn(w, w, w)
    with pytest.raises(TypeInferenceError, match="lstm: there is no activation 'Sine'; there are Affine"):
        nn.lstm(x, w, ops.var((12, 3)), activations=("Sine", "Tanh", "Tanh"))
    with pytest.raises(TypeInferenceError, match="lengths must be integers, one for each sample"):
        nn.reverse_sequence(x, ops.var((2,)))
    with pytest.raises(TypeInferenceError, match="must not be that of the samples"):
        nn.reverse_sequence(x, ops.var((2,), "int32"), 1, 1)


def test_lengths_beyond_the_extent_reverse_all(ops):
    x, lengths = floats(4, 3, 2), np.array([9, 0, -2])
    wanted = x.copy()
    wanted[:, 0] = x[::-1, 0]
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(nn.reverse_sequence, x, lengths, native=native), wanted)


CELLS = {
    "lstm": (nn.lstm, 4, lambda x, r, zero: recurrences.lstm(x, r, zero, zero)[0]),
    "gru": (nn.gru, 3, recurrences.gru),
    "rnn": (nn.rnn, 1, recurrences.rnn),
}


@each_pair(cell=CELLS, hidden=[16, 21, 40], target=["native", "x86-64"])
def test_an_open_batch_has_tiles_and_a_kernel_for_one_row(cell, hidden, target):
    """Numbers of sequences below, at and beyond a tile's; each has the same bits among any others."""
    make, gates, reference = CELLS[cell]
    w, r = floats(gates * hidden, 6), floats(gates * hidden, hidden)
    x = lw.var("x", (te.var("T"), te.var("B"), 6))
    library = lw.compile(lw.Function([x], make(x, lw.const(w), lw.const(r))[0]), target, jobs=1)
    assert any(choice.implementation.endswith(".one_row") for f in library.functions for choice in f.choices)
    engine, given = lw.Engine(library), floats(5, 11, 6)
    whole = engine([given])[0]
    states = reference(given @ w.T, r, np.zeros((1, hidden)))
    np.testing.assert_allclose(whole, states[1:], rtol=1e-4, atol=1e-5)
    for batch in (0, 1, 2, 3, 4, 5, 8):
        np.testing.assert_array_equal(engine([given[:, :batch].copy()])[0], whole[:, :batch])


def test_the_last_tile_of_an_open_batch_sums_the_rows_that_there_are():
    """Of four rows with four gates each, three may be missing."""
    x = lw.var("x", (te.var("T"), te.var("B"), 6))
    w, r = floats(64, 6), floats(64, 16)
    library = lw.compile(lw.Function([x], nn.lstm(x, lw.const(w), lw.const(r))[0]), "znver4", jobs=1)
    (text,) = (f.loop_ir for f in library.functions if "steps" in f.name)
    assert {"float32x16[16] = allocate('register')", "float32x16[12] = allocate('register')"} <= {
        line.partition(": ")[2].strip() for line in text.splitlines() if "products_reg" in line and "allocate" in line
    }, text


@pytest.mark.parametrize(("target", "hidden"), [("x86-64-v3", 7), ("x86-64-v3", 50), ("znver4", 50), ("znver4", 88)])
def test_the_sums_of_one_row_are_of_whole_vectors(target, hidden):
    """The weights have zeros behind the last unit; to test each lane took 15 times as long."""
    x, w, r = lw.var("x", (9, 1, 6)), floats(hidden, 6), floats(hidden, hidden)
    library = lw.compile(lw.Function([x], nn.rnn(x, lw.const(w), lw.const(r))[0]), target, jobs=1)
    (text,) = (f.loop_ir for f in library.functions if "steps" in f.name)
    lines = [line.split("products_reg[") for line in text.splitlines()]
    sums = ["".join(line) for line in lines if len(line) == 3]
    assert sums, text
    assert not [line for line in sums if "where" in line or "if " in line], text
