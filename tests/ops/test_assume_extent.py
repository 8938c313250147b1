"""What is computed behind an assumption on an extent knows one extent, the one that is stated."""

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir.contents import substitute
from loopwright.ir.extent_text import MAX_LENGTH
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify
from loopwright.ops.definition.extent_formulas import as_formulas, extent_of_formula
from loopwright.ops.families.assume_extent import assume_extent


def test_no_kernel_knows_an_extent_by_two_names():
    """So schedules that need one serve: the fixture ``fallbacks`` fails where a schedule is refused."""
    batch, length, width = te.var("batch"), te.var("length"), te.var("width")
    x, other = lw.var("x", (batch, length, 16)), lw.var("other", (batch, 3, width))
    half = lw.nn.matmul(x[:, ::2], lw.const(np.eye(16, dtype=np.float32)))
    scaled = half / lw.nn.sum(half, axes=(2,), keepdims=True) + 1.0
    assumed = assume_extent(scaled, 1, (width + 3) // 8, [other])
    function = lw.Function([x, other], lw.nn.transpose(lw.nn.expand_dims(assumed, 1), axes=(0, 3, 1, 2)))
    engine = lw.Engine(lw.compile(function, "x86-64-v2"))

    a, b = np.random.default_rng(0).random((2, 17, 16), np.float32), np.zeros((2, 3, 72), np.float32)
    (found,) = engine({"x": a, "other": b})
    halved = a[:, ::2]
    expected = halved / halved.sum(axis=2, keepdims=True) + 1
    np.testing.assert_allclose(found, expected.transpose(0, 2, 1)[:, :, None], rtol=1e-5)


def test_formulas_of_the_compiler_may_be_longer_than_those_of_models():
    """As those of shapes that follow from many windows, one behind the other."""
    n = te.var("n")
    extent = sum((te.maximum(n // k - k, 0) for k in range(2, 60)), n)
    x = lw.var("x", (extent,))
    (formula,), tellers = as_formulas([extent], [lw.var("told", (n,))])
    assert len(formula) > MAX_LENGTH
    found = extent_of_formula(formula, [x.type, *(teller.type for teller in tellers)])
    values = [simplify(substitute(e, {n: as_index(1000)})) for e in (found, extent)]
    assert values[0] is values[1]
