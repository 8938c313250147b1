"""onnxruntime's operators on weights of few bits, and its LSTM of bytes, against onnxruntime."""

import ml_dtypes
import numpy as np
import pytest
from contrib_cases import check_contrib, check_refused, contrib_case, each_extents
from onnx_cases import floats, integers, ints

ROWS, COLUMNS, BLOCK = 12, 80, 32
BLOCKS = -(-COLUMNS // BLOCK)
SIZES = {"K": COLUMNS, "N": ROWS, "block_size": BLOCK}
X, BIAS = floats(2, 5, COLUMNS), floats(ROWS)


def packed(*shape, seed=0):
    return integers(*shape, seed=seed, low=0, high=256, kind=np.uint8)


def product(bits, *inputs, label="", **options):
    weights = packed(ROWS, BLOCKS, BLOCK * bits // 8), floats(ROWS, BLOCKS, low=0.01, high=0.1)
    options = {
        "K": COLUMNS,
        "N": ROWS,
        "block_size": BLOCK,
        "bits": bits,
        "const": (1, 2),
        "opened": {0: "BS."},
    } | options
    return contrib_case("MatMulNBits", X, *weights, *inputs, label=label, tolerance=1e-3, **options)


ZEROS = packed(ROWS, -(-BLOCKS * 4 // 8), seed=1)
ORDER = np.random.default_rng(2).permutation(np.arange(COLUMNS, dtype=np.int32) // BLOCK)
HALVES = X.astype(np.float16), packed(ROWS, BLOCKS, 16), floats(ROWS, BLOCKS, low=0.01, high=0.1, kind=np.float16)
PRODUCTS = [
    product(4, label="4 bits"),
    product(4, ZEROS, label="zero points", const=(1, 2, 3)),
    product(4, floats(ROWS, BLOCKS, low=6, high=9), label="real zero points", const=(1, 2, 3)),
    product(4, None, None, BIAS, label="bias", const=(1, 2, 5)),
    product(4, None, ORDER, label="columns of blocks out of order", const=(1, 2, 4)),
    # onnxruntime does not read zero points of bytes there
    product(4, floats(ROWS, BLOCKS, low=6, high=9), ORDER, label="and zero points", const=(1, 2, 3, 4)),
    product(8, label="8 bits"),
    product(2, label="2 bits"),
    contrib_case("MatMulNBits", *HALVES, **SIZES, const=(1, 2), label="half", tolerance=3e-2),
]


def product_of_floats4(rows, columns, block, kind, label):
    """The last block may be a part of one, and the last byte hold one number."""
    count = rows * columns
    weights = packed(-(-count // 2)), floats(-(-count // block), low=0.01, high=0.1)
    sizes = {"K": columns, "N": rows, "block_size": block, "quant_type": kind}
    x = floats(2, 5, columns)
    return contrib_case("MatMulBnb4", x, *weights, **sizes, const=(1, 2), opened={0: "BS."}, label=label)


PRODUCTS += [
    product_of_floats4(12, 80, 32, 0, "FP4"),
    product_of_floats4(12, 80, 64, 1, "NF4"),
    product_of_floats4(6, 48, 64, 1, "a part of a block"),
]
TABLE, SCALES = packed(20, 32), floats(20, 2, low=0.01, high=0.1)
TABLES = [
    contrib_case("GatherBlockQuantized", TABLE, ints([3, 0], [19, 7]), SCALES, block_size=32, opened={1: "BS"}),
    contrib_case("GatherBlockQuantized", TABLE, ints(3, 19), SCALES, packed(20, 1), block_size=32, label="zero points"),
    contrib_case("GatherBlockQuantized", packed(20, 64), ints(3, 19), SCALES, bits=8, block_size=32, label="8 bits"),
]
NIBBLES = [integers(*shape, seed=2, low=-8, high=8, kind=np.int8) for shape in ((4, 40, 3), (4, 3, 3))]


def table_of_nibbles(kind, index, *axes, zeros=True):
    """Integers of 4 bits in blocks along axis 1 as the table, and onnx's arithmetic of them: (x - zero) · scale."""
    gathered, blocks = axes
    data, zero = (np.abs(x) if kind == "uint4" else x for x in NIBBLES)
    scales = floats(4, 3, 3, low=0.01, high=0.1)

    def expected(data, index, scales, *zero):
        scales, *zero = (np.repeat(x.astype(np.float32), 16, 1)[:, :40] for x in (scales, *zero))
        whole = (data.astype(np.float32) - (zero[0] if zero else 0)) * scales
        return np.take(whole, index, gathered)

    narrow = getattr(ml_dtypes, kind)
    return contrib_case(
        "GatherBlockQuantized", data.astype(narrow), index, scales, *([zero.astype(narrow)] if zeros else []),
        gather_axis=gathered, quantize_axis=blocks, block_size=16, const=(0, 2, *([3] if zeros else [])),
        label=f"{kind}-{gathered}-{zeros}", expected=expected,
    )  # fmt: skip


TABLES += [
    table_of_nibbles("int4", ints([3, -1], [0, 2]), 0, 1),
    table_of_nibbles("uint4", ints(1), 2, 1),
    table_of_nibbles("int4", ints(2, 0), 2, 1, zeros=False),
    table_of_nibbles("uint4", ints([39, -2], [17, 0]), 1, 1),
    table_of_nibbles("int4", ints(39), 1, 1, zeros=False),
]
HIDDEN = 6
SEQUENCE = floats(7, 2, 5)


def weights(directions):
    """Bytes so small that onnxruntime saturates no pair of their products, as it may on some processors."""
    columns, zeros = 4 * HIDDEN, np.zeros(directions, np.int8)
    made = [integers(directions, n, columns, seed=n, low=-64, high=64, kind=np.int8) for n in (5, HIDDEN)]
    return (*made, floats(directions, 2 * columns)), (np.full(directions, 0.006, np.float32), zeros) * 2


def lstm(directions, *states, label="", tolerance=1e-5, **options):
    (w, r, bias), scales = weights(directions)
    inputs = SEQUENCE, w, r, bias, *states, *(None,) * (4 - len(states)), *scales
    options = {"hidden_size": HIDDEN, "const": (1, 2, 3, 8, 9, 10, 11), "wanted": 3} | options
    return contrib_case("DynamicQuantizeLSTM", *inputs, label=label, tolerance=tolerance, **options)


RECURRENT = [
    lstm(1, opened={0: "SB."}),
    lstm(2, direction="bidirectional", label="both directions", opened={0: "SB."}),
    lstm(1, None, floats(1, 2, HIDDEN), floats(1, 2, HIDDEN, seed=1), opened={0: "SB."}, label="states"),
    lstm(1, np.array([7, 4], np.int32), floats(1, 2, HIDDEN), floats(1, 2, HIDDEN, seed=1), label="lengths"),
    # onnxruntime brings states to bytes together that are as many steps behind the ends of their samples
    lstm(1, np.array([7, 4], np.int32), direction="reverse", label="lengths backwards", tolerance=3e-3),
    lstm(1, None, None, None, floats(1, 3 * HIDDEN), clip=0.5, label="peepholes and clip"),
]
CASES = [*PRODUCTS, *TABLES, *RECURRENT]


@each_extents(CASES)
def test_an_operator_gives_what_onnxruntime_gives(case, opened):
    check_contrib(case, opened)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (product(5), "weights of 5 bits"),
        (product(4, weight_prepacked=1), "packed for one processor"),
        (
            contrib_case("GatherBlockQuantized", TABLE, ints(1), SCALES, quantize_axis=0, block_size=32),
            "a table of bytes",
        ),
    ],
)
def test_what_has_no_conversion_is_told(case, message):
    check_refused(case, message)
