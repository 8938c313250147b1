"""``nn.blockwise_dense``: weights of few bits in blocks, by all implementations, against numpy in float64."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw

KINDS = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1e-2}
ROWS = (1, 2, 3, 7, 12, 13, 40)


def weight(columns, terms, bits, block, seed=0):
    rng = np.random.default_rng(seed)
    blocks = (columns, -(-terms // block))
    codes, zeros = (rng.integers(0, 1 << bits, shape).astype(np.uint8) for shape in ((columns, terms), blocks))
    return codes, zeros, rng.uniform(0.01, 0.1, blocks).astype(np.float32)


def real(codes, zeros, scales, block):
    spread = [np.repeat(a.astype(np.float64), block, 1)[:, : codes.shape[1]] for a in (zeros, scales)]
    return (codes - spread[0]) * spread[1]


def compiled(shape, parts, bits, block, kind="float32", target="native", behind=lambda y: y, **options):
    x = lw.var("x", shape, kind)
    y = behind(lw.nn.blockwise_dense(x, *map(lw.Constant, parts), bits=bits, block=block))
    return lw.compile(lw.Function([x], y), target, **options)


def run(library, *arrays):
    (found,) = lw.Engine(library)(list(arrays))
    return found


def check(library, x, parts, block, kind="float32", behind=lambda y: y):
    found = run(library, x).astype(np.float64)
    exact = behind(np.asarray(x, np.float64) @ real(*parts, block).T)
    size = np.abs(np.asarray(x, np.float64)) @ np.abs(real(*parts, block)).T + 1
    assert found.shape == exact.shape
    assert np.all(np.abs(found - exact) <= KINDS[kind] * size)


def rows_of(shape, kind="float32", seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.dtype(getattr(ml_dtypes, kind, None) or kind))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_blocks_and_columns_may_end_anywhere(bits, rows):
    for terms, columns, block in ((70, 37, 16), (64, 96, 32), (9, 3, 4), (33, 100, 64)):
        parts = weight(columns, terms, bits, block)
        library = compiled((rows, terms), parts, bits, block)
        assert library.functions[0].name == "fused_nn_packed_blockwise" or terms < 16
        check(library, rows_of((rows, terms)), parts, block)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["native", "x86-64"])
def test_an_open_number_of_rows(kind, target):
    parts = weight(75, 128, 4, 32)
    library = compiled((lw.te.var("rows"), 128), parts, 4, 32, kind, target)
    for rows in (0, *ROWS):
        check(library, rows_of((rows, 128), kind), parts, 32, kind)


def test_rows_of_several_matrices_and_what_follows():
    parts, bias = weight(40, 64, 4, 16), rows_of((40,), seed=5)

    def behind(y):
        return np.maximum(y + bias, 0)

    for shape in ((3, 2, 64), (64,), (2, 40, 64)):
        library = compiled(shape, parts, 4, 16, behind=lambda y: lw.nn.relu(y + lw.Constant(bias)))
        assert len(library.functions) == 1
        check(library, rows_of(shape), parts, 16, behind=behind)


def test_each_row_has_the_same_bits_among_any_others():
    parts = weight(75, 128, 4, 32)
    library = compiled((lw.te.var("rows"), 128), parts, 4, 32)
    x = rows_of((40, 128))
    whole = run(library, x)
    for rows in ROWS:
        assert np.array_equal(run(library, x[:rows]), whole[:rows])


@pytest.mark.parametrize("options", [{"precision": "strict"}, {"layouts": "keep"}], ids=str)
def test_weights_that_are_not_packed(options):
    for rows in (1, 20):
        parts = weight(37, 70, 4, 16)
        library = compiled((rows, 70), parts, 4, 16, **options)
        assert library.functions[0].name == "fused_nn_blockwise_dense"
        check(library, rows_of((rows, 70)), parts, 16)


def test_weights_of_a_run():
    parts = weight(37, 70, 4, 16)
    given = [lw.var(f"p{k}", part.shape, part.dtype.name) for k, part in enumerate(parts)]
    x = lw.var("x", (6, 70))
    library = lw.compile(lw.Function([x, *given], lw.nn.blockwise_dense(x, *given, bits=4, block=16)), "native")
    found = run(library, rows_of((6, 70)), *parts)
    assert np.allclose(found, rows_of((6, 70)) @ real(*parts, 16).T, atol=1e-4)


def test_a_zero_weight_takes_no_part_whatever_it_meets():
    """The zero point is subtracted before the scale, so that what stands for 0 is 0."""
    codes, zeros, scales = weight(16, 32, 4, 32)
    codes[:] = zeros
    library = compiled((1, 32), (codes, zeros, scales), 4, 32)
    assert not run(library, np.full((1, 32), 3e38, np.float32)).any()


def test_higher_bits_of_a_code_do_not_count():
    parts = weight(37, 64, 4, 16)
    high = (parts[0] | 0xF0, *parts[1:])
    for options in ({}, {"layouts": "keep"}):
        check(compiled((2, 64), high, 4, 16, **options), rows_of((2, 64)), parts, 16)


def test_what_does_not_fit_is_refused():
    x = lw.var("x", (2, 64))
    codes, zeros, scales = map(lw.Constant, weight(8, 64, 4, 16))
    with pytest.raises(lw.TypeInferenceError, match="an element for each block of 32"):
        lw.nn.blockwise_dense(x, codes, zeros, scales, bits=4, block=32)
    with pytest.raises(lw.TypeInferenceError, match="floats of 32 bits at most"):
        lw.nn.blockwise_dense(lw.var("x", (2, 64), "float64"), codes, zeros, scales, bits=4, block=16)
    with pytest.raises(lw.TypeInferenceError, match="codes and zeros are of uint8"):
        lw.nn.blockwise_dense(x, codes, scales, scales, bits=4, block=16)
    with pytest.raises(lw.LoopwrightError, match="1, 2, 4, 8"):
        lw.nn.blockwise_dense(x, codes, zeros, scales, bits=3, block=16)
    words = lw.var("p", (1, 8, 8), "int32")
    zeros, scales = lw.var("z", (1, 4, 8), "uint8"), lw.var("s", (1, 2, 8))
    with pytest.raises(lw.TypeInferenceError, match="a zero point of uint8 and a scale"):
        lw.nn.packed_blockwise(x, words, zeros, scales, 8, bits=4, block=16)
