"""What dimensions have to be, and how often calls are asked."""

import numpy as np
import pytest
from onnx import parser

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes import call_trials, constraints
from loopwright.frontend.reshaping import reshape_to
from loopwright.ir.makers import minimum
from loopwright.ops import nn
from loopwright.ops.definition.retyping import inferred_anew
from loopwright.ops.families.open_extents import open_slice
from loopwright.ops.families.reshape import reshape_to_open


def test_calls_that_a_change_leaves_as_they_are_are_not_asked_again(monkeypatch):
    """Each pair of names becomes one dimension, which leaves the other sums as they are."""
    asked = []
    problem_at = call_trials.problem_at
    monkeypatch.setattr(call_trials, "problem_at", lambda call, values: asked.append(call) or problem_at(call, values))

    def times(pairs):
        params = [lw.var(f"{name}{k}", (lw.te.var(f"{name}{k}"),)) for k in range(pairs) for name in "ab"]
        sums = [nn.add(a, b) for a, b in zip(params[::2], params[1::2], strict=True)]
        asked.clear()
        settled = constraints.settle_dimensions(lw.Function(params, nn.concatenate(sums, 0)))
        assert all(a.type is b.type for a, b in zip(settled.params[::2], settled.params[1::2], strict=True))
        return len([call for call in asked if call.op.name == "add"])

    assert times(16) <= 2.5 * times(8)


def test_assumptions_that_are_left_to_runs_are_asked_once(monkeypatch):
    """Each half has to be as long as a third, which no change says."""
    asked = []
    problem_at = call_trials.problem_at
    monkeypatch.setattr(call_trials, "problem_at", lambda call, values: asked.append(call) or problem_at(call, values))

    def times(pairs):
        params = [lw.var(f"{name}{k}", (lw.te.var(f"{name}{k}"),)) for k in range(pairs) for name in "ab"]
        parts = [nn.strided_slice(x, [0], [2**62], [0], [2 + k % 2]) for k, x in enumerate(params)]
        sums = [nn.add(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        asked.clear()
        constraints.settle_dimensions(lw.Function(params, nn.concatenate(sums, 0)))
        return len([call for call in asked if call.op.name == "assume_extent"])

    assert 0 < times(16) <= 2.5 * times(8)


def test_an_extent_divided_by_another_dimension_asks_for_no_large_one():
    """Two names may be of one dimension, as of the batch of two inputs: beside a large batch of the other, a small one
    leaves nothing."""
    b, m = lw.te.var("b"), lw.te.var("m")
    count = b * 6400 // (m * 64)
    x, told, other = lw.var("x", (m, 4, count, 16)), lw.var("told", (b,)), lw.var("other", (m,))
    made = reshape_to_open(x, (-1, count, 16), [told, other])
    engine = lw.Engine(lw.compile(lw.Function([x, told, other], made)))
    a, batch = np.random.default_rng(0).random((2, 4, 100, 16), np.float32), np.zeros(2, np.float32)
    np.testing.assert_array_equal(engine([a, batch, batch])[0], a.reshape(8, 100, 16))


@pytest.mark.parametrize("rank", [4, 5, 7])
def test_tensors_of_many_open_dimensions_are_flattened(rank):
    """The product of as many large numbers is more than an index can be."""
    x, y = (lw.var(name, [te.var(f"{name}{k}") for k in range(rank)]) for name in "xy")
    flat = nn.reshape(x + y, (-1,))
    engine = lw.Engine(lw.compile(lw.Function([x, y], nn.relu(flat) * nn.sum(y)), "x86-64-v3", jobs=1))
    for extents in ((2,) * rank, (1, *range(2, rank + 1)), (0, *(3,) * (rank - 1))):
        a = np.arange(np.prod(extents), dtype=np.float32).reshape(extents) - 3
        wanted = np.maximum((a + 1).reshape(-1), 0) * np.float32(a.size)
        np.testing.assert_allclose(engine([a, np.ones_like(a)])[0], wanted, rtol=1e-6)
    with pytest.raises(lw.RuntimeArgumentError, match="should have extent 2"):
        engine([np.ones((2,) * rank, np.float32), np.ones((*(2,) * (rank - 1), 3), np.float32)])


def test_an_extent_left_of_no_elements_is_the_formula_that_open_ones_give():
    """``x[:, past:].view(-1, length)``, as of a decoder's positions: length is 0 where there is no more than past."""
    b, t, past = te.var("b"), te.var("t"), te.var("past")
    mask, told = lw.var("mask", (b, t), "int64"), lw.var("told", (past,))
    begin = minimum(past, t)
    rest = open_slice(mask, 1, begin, t - begin, [mask, told])
    made = reshape_to_open(rest, (-1, t - begin), [mask, told])
    engine = lw.Engine(lw.compile(lw.Function([mask, told], nn.add(made, made)), jobs=1))
    for batch, length, before in ((2, 5, 2), (3, 4, 0), (2, 3, 3), (1, 2, 5)):
        given = np.arange(batch * length).reshape(batch, length)
        found = engine([given, np.zeros(before, np.float32)])[0]
        np.testing.assert_array_equal(found, 2 * given[:, before:])


def test_calls_that_are_alike_are_inferred_once():
    x = y = lw.var("x", (te.var("n"), 8))
    for _ in range(16):
        y = nn.relu(y) + nn.relu(x)
    known = {}
    made = inferred_anew(y, {x: lw.var("x", (4, 8))}, known)
    assert made.type is lw.var("y", (4, 8)).type
    assert len(known) == 2


def test_an_extent_that_is_a_number_for_all_large_ones_is_compared_by_each_run():
    """Rows padded to a multiple of 16, and viewed as many as before: there are 64 columns where nothing was added."""
    n = te.var("n")
    x, told = lw.var("x", ((n + 15) // 16, 1024)), lw.var("told", (n, 64))
    made = reshape_to(x, (n, (n + 15) // 16 * 1024 // n), [told])
    engine = lw.Engine(lw.compile(lw.Function([x, told], made * told), jobs=1))
    a, b = np.random.default_rng(0).random((1, 1024), np.float32), np.ones((16, 64), np.float32)
    np.testing.assert_array_equal(engine([a, b])[0], a.reshape(16, 64))
    with pytest.raises(lw.RuntimeArgumentError):
        engine([a, b[:13]])


CUT_TO_ROWS = """<ir_version: 10, opset_import: ["" : 21]>
g (int64[k] d, float[n, COLUMNS] x) => (float[p, 4] y) {
    longest = ReduceMax <keepdims = 1> (d)
    four = Constant <value = int64[1] {4}> ()
    shape = Concat <axis = 0> (longest, four)
    zeros = ConstantOfShape (shape)
    of_x = Shape (x)
    zero = Constant <value = int64[1] {0}> ()
    one = Constant <value = int64[1] {1}> ()
    rows = Slice (of_x, zero, one)
    cut = Slice (zeros, zero, rows, zero)
    cut_shape = Shape (cut)
    y = Expand (x, cut_shape)
}"""


@pytest.mark.parametrize("columns", ["4", "c"])
def test_what_is_cut_to_an_extent_may_have_been_longer(columns):
    """``min(n, m)`` has to be n. m has not: it is as large as the data say."""
    engine = lw.Engine(lw.compile(parser.parse_model(CUT_TO_ROWS.replace("COLUMNS", columns)), jobs=1))
    for longest, rows in ((6, 6), (10, 6), (3, 1)):
        x = np.random.default_rng(0).random((rows, 4), np.float32)
        np.testing.assert_array_equal(engine([np.array([2, longest]), x])[0], x)
    with pytest.raises(lw.RuntimeArgumentError, match="should be"):
        engine([np.array([2, 3]), np.ones((6, 4), np.float32)])


SPLIT_HEADS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[BATCH, 4, q, 16] x, float[BATCH, 1, q, 16] mask) => (float[p, 2, 2, 16] y) {
    zero = Constant <value = int64[1] {0}> ()
    one = Constant <value = int64[1] {1}> ()
    rest = Constant <value = int64[3] {2, 2, 16}> ()
    of_x = Shape (x)
    batch = Slice (of_x, zero, one)
    shape = Concat <axis = 0> (batch, rest)
    heads = Reshape (x, shape)
    y = Add (heads, mask)
}"""


@pytest.mark.parametrize("batch", ["b", "3"])
def test_a_dimension_that_elements_leave_one_number_is_that_number(batch):
    """As where exporters write grouped heads of one query: ``b * q * 64`` elements are ``b * 64``, so that q is 1, and
    the mask is broadcast, not q as long as a group."""
    engine = lw.Engine(lw.compile(parser.parse_model(SPLIT_HEADS.replace("BATCH", batch)), jobs=1))
    x, mask = np.random.default_rng(0).random((3, 4, 1, 16), np.float32), np.ones((3, 1, 1, 16), np.float32)
    np.testing.assert_array_equal(engine([x, mask])[0], x.reshape(3, 2, 2, 16) + mask)
    with pytest.raises(lw.RuntimeArgumentError, match="should have shape"):
        engine([np.ones((3, 4, 2, 16), np.float32), np.ones((3, 1, 2, 16), np.float32)])


LEARNED_POSITIONS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[h, w] x, float[50, 2] of_row, float[50, 2] of_column) => (float[a, b, 4] y) {
    zero = Constant <value = int64[1] {0}> ()
    one = Constant <value = int64[1] {1}> ()
    height = Shape <start = 0, end = 1> (x)
    width = Shape <start = 1, end = 2> (x)
    rows = Slice (of_row, zero, height, zero)
    columns = Slice (of_column, zero, width, zero)
    of_rows = Unsqueeze (rows, one)
    of_columns = Unsqueeze (columns, zero)
    beside = Concat <axis = 0> (one, width, one)
    below = Concat <axis = 0> (height, one, one)
    all_rows = Expand (of_rows, beside)
    all_columns = Expand (of_columns, below)
    y = Concat <axis = -1> (all_columns, all_rows)
}"""


def test_two_dimensions_that_are_cut_to_one_number_stay_two():
    """``min(h, 50)`` has to be h, and ``min(w, 50)`` has to be w: all large ones are 50, so that h could be meant to be
    ``min(w, 50)``."""
    engine = lw.Engine(lw.compile(parser.parse_model(LEARNED_POSITIONS), jobs=1))
    rng = np.random.default_rng(0)
    of_row, of_column = rng.random((2, 50, 2), np.float32)
    for height, width in ((3, 7), (50, 1), (9, 9)):
        wanted = np.concatenate(np.broadcast_arrays(of_column[None, :width], of_row[:height, None]), axis=-1)
        found = engine([np.ones((height, width), np.float32), of_row, of_column])[0]
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(lw.RuntimeArgumentError, match="should be"):
        engine([np.ones((51, 3), np.float32), of_row, of_column])


MASK_OF_ITS_OWN = """<ir_version: 10, opset_import: ["" : 21]>
g (float[b, s, 4] x, float[c, t] mask) => (float[p, q, 4] y) {
    one = Constant <value = int64[1] {1}> ()
    rest = Constant <value = int64[1] {-1}> ()
    four = Constant <value = int64[1] {4}> ()
    batch = Shape <start = 0, end = 1> (x)
    length = Shape <start = 1, end = 2> (x)
    by_batch = Concat <axis = 0> (batch, rest)
    rows = Reshape (mask, by_batch)
    of_keys = Unsqueeze (rows, one)
    masks = Shape <start = 0, end = 1> (mask)
    lengths = Shape <start = 1, end = 2> (mask)
    count = Mul (lengths, masks)
    keys = Div (count, batch)
    of_pairs = Concat <axis = 0> (batch, length, keys)
    wide = Expand (of_keys, of_pairs)
    turned = Transpose <perm = [0, 2, 1]> (x)
    scores = MatMul (x, turned)
    masked = Add (scores, wide)
    mixed = MatMul (masked, x)
    as_rows = Concat <axis = 0> (rest, four)
    flat = Reshape (mixed, as_rows)
    whole = Concat <axis = 0> (batch, length, four)
    y = Reshape (flat, whole)
}"""


def test_what_is_stated_of_a_formula_is_the_dimension_that_it_has_to_be():
    """A mask whose rows are reshaped has a length of its own, which is added to scores: what is behind them has the
    length of the tokens, not the formula of what was broadcast, which would not fill the shape that it is given."""
    engine = lw.Engine(lw.compile(parser.parse_model(MASK_OF_ITS_OWN), jobs=1))
    rng = np.random.default_rng(0)
    for batch, length in ((2, 5), (1, 3), (3, 1)):
        x, mask = rng.random((batch, length, 4), np.float32), rng.random((batch, length), np.float32)
        wanted = (x @ x.transpose(0, 2, 1) + mask[:, None]) @ x
        np.testing.assert_allclose(engine([x, mask])[0], wanted, rtol=1e-5)
        np.testing.assert_allclose(engine([x, mask.reshape(1, -1)])[0], wanted, rtol=1e-5)
    with pytest.raises(lw.RuntimeArgumentError):
        engine([x, np.ones((3, 7), np.float32)])
