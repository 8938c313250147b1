"""Functions of one byte become tables, of the same bytes as their code gives; others stay."""

import numpy as np
import pytest
from quantized_numbers import dequantized, quantized

import loopwright as lw
from loopwright.graph.node import Function, Tuple

nn = lw.nn
HOST = lw.resolve_target("native")
PERMUTES = lw.resolve_target("llvm -mcpu=znver4")
GATHERS = lw.resolve_target("x86-64-v3")
SCALE = 0.05


def again(y, scale, zero):
    """What is quantized and dequantized again."""
    return dequantized(quantized(y, scale, zero), scale, zero)


def gelu(d, zero):
    """As a quantizer takes it apart: a rounding after each step."""
    raised = again(nn.erf(again(nn.divide(d, lw.const(np.float32(np.sqrt(2)))), 0.0413, zero)), 0.0117, zero)
    product = again(nn.multiply(d, again(nn.add(raised, lw.const(np.float32(1))), 0.0203, zero)), 0.0971, zero)
    return quantized(nn.multiply(product, lw.const(np.float32(0.5))), SCALE, zero)


def names(library):
    return [function.name for function in library.functions]


def compiled(params, body, target=PERMUTES, **options):
    return lw.compile(Function(params, body), target=target, jobs=1, **options)


def run(library, *values):
    return lw.Engine(library, threads=1)(list(values))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(7,), (2, 3, 45), (lw.te.var("n"), 20)])
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_tables_have_the_bytes_of_the_function(target, shape, kind):
    zero = np.array(3, kind)
    x = lw.var("x", shape, kind)
    body = gelu(dequantized(x, SCALE, zero), zero)
    library = compiled([x], body, target)
    assert names(library) == ["fused_byte_table"]
    extents = [e if isinstance(e, int) else 33 for e in shape]
    value = np.resize(np.arange(256, dtype=np.uint8).view(kind), extents)
    np.testing.assert_array_equal(
        run(library, value)[0], run(compiled([x], body, target, precision="strict"), value)[0]
    )


def test_a_table_is_in_the_epilogue_of_a_convolution():
    x, zero = lw.var("x", (1, 8, 6, 7), "uint8"), np.uint8(4)
    weight = np.random.default_rng(0).integers(-127, 128, (16, 8, 1, 1)).astype(np.int8)
    sums = nn.conv2d(dequantized(x, 0.02, zero), dequantized(lw.const(weight), 0.01, np.int8(0)))
    body = gelu(again(sums, SCALE, zero), zero)
    library = compiled([x], body, HOST)
    assert len(names(library)) == 1
    value = np.random.default_rng(1).integers(0, 256, (1, 8, 6, 7)).astype(np.uint8)
    plain = run(compiled([x], body, HOST, precision="strict"), value)[0]
    apart = np.abs(run(library, value)[0].astype(int) - plain)
    assert apart.max() <= 3  # sums are scaled in another order, and one step before the function is some behind it
    assert np.mean(apart > 0) < 0.01


def tabulated(params, body, target=PERMUTES):
    return any("byte_table" in name for name in names(compiled(params, body, target)))


def test_what_is_read_on_its_way_is_tabulated_as_well():
    x, zero = lw.var("x", (4, 9), "uint8"), np.uint8(7)
    middle = quantized(nn.sigmoid(dequantized(x, SCALE, zero)), 0.01, zero)
    last = quantized(nn.exp(dequantized(middle, 0.01, zero)), 0.02, zero)
    body = Tuple((middle, nn.negative(dequantized(middle, 0.01, zero)), last))
    value = np.arange(36, dtype=np.uint8).reshape(4, 9) * 7
    library = compiled([x], body, HOST)
    for found, wanted in zip(
        run(library, value), run(compiled([x], body, HOST, precision="strict"), value), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


X, Z = lw.var("x", (4, 9), "uint8"), lw.var("z", (4, 9), "uint8")
D = dequantized(X, SCALE, np.uint8(3))
OTHERS = {
    "of two": ([X, Z], quantized(nn.multiply(nn.exp(D), dequantized(Z, SCALE, np.uint8(3))), 0.1, np.uint8(3))),
    "of places": ([X], quantized(nn.trilu(nn.exp(D)), 0.1, np.uint8(3))),
    "by column": ([X], quantized(nn.exp(D), np.linspace(0.1, 1, 9), np.uint8(3))),
    "of few calls": ([X], quantized(D, 0.1, np.uint8(3))),
    "of floats": ([X], nn.exp(nn.negative(nn.exp(D)))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_are_computed(name):
    assert not tabulated(*OTHERS[name])


def test_gathers_take_longer_functions():
    """Without permutations a table is worth it for more calls only."""
    body = quantized(nn.relu(D), 0.1, np.uint8(3))
    assert tabulated([X], body)
    assert not tabulated([X], body, GATHERS)
    assert tabulated([X], gelu(D, np.uint8(3)), GATHERS)
