"""Random calls of products: of matrices, packed ones, sums of products by letters, attention."""

import coupling
import numpy as np
import recurrences
from draw import Case, Given, Input
from operators_simple import every

from loopwright.ops import nn
from loopwright.ops.definition.registry import get_op
from loopwright.ops.families.matmul.quarters import Planes

MULTIPLICATIONS = (30_000, 2_000_000, 2_000_000_000)
"""Most multiplications, by the size of the plan; those of the last size are not run."""
CHANNELS = (1, 2, 3, 4, 5, 8, 12, 16, 17, 21, 24, 32, 48, 64, 96, 128, 240, 256, 512)
FAST_ERROR = 4
"""The tolerance of the products of Winograd and Strassen, whose error is a share of the largest result."""


def within(d, count, *parts):
    """The parts, the largest halved until ``count`` of them is no more than the size of the plan allows."""
    parts = list(parts)
    while count(*parts) > MULTIPLICATIONS[d.size] and max(parts) > 1:
        parts[parts.index(max(parts))] //= 2
    return parts


def draw_strassen(d):
    width = d.one(1, 2, 4, 8)
    terms, columns = 2 * d.int(1, 12), 2 * width * d.int(1, 4)
    shape = (*d.ints(1, 3, d.int(0, 1)), 2 * d.int(1, 9) - d.int(0, 1), terms)
    b = d.rng.uniform(-1, 1, (terms, columns)).astype(np.float32)
    return Case(
        nn.strassen_matmul,
        lambda a, planes: a @ b,
        (Input(shape, outliers=None), Given(Planes(width, transposed=False)(b))),
        lambda a, planes: a @ np.abs(b),
        tolerance=FAST_ERROR,
    )


def matrices(d):
    m, k, n = within(
        d, lambda m, k, n: m * k * n, d.one(1, 2, 3, 7, 16, 33, 64, 130, 500), d.one(*CHANNELS), d.one(*CHANNELS, 1000)
    )
    return m, k, n


def factor_kinds(d):
    """Kinds, ranges and the oracle's type of two factors."""
    if d.chance(0.25):
        kinds = d.one("int8", "uint8"), d.one("int8", "int8", "uint8")
        return kinds, 0 if "uint8" in kinds else -9, 9
    return (d.one("float32", "float32", "float32", "float64", "float16", "bfloat16", "int32"),) * 2, -2, 2


def product(a, b):
    wide = [x.astype(np.int64) if x.dtype.kind in "iu" else x for x in (a, b)]
    return np.matmul(*wide)


def case_of_product(d, make, oracle, a, b):
    kinds, low, high = factor_kinds(d)
    integers = "int" in kinds[0]
    return Case(
        make,
        oracle,
        (Input(a, kinds[0], low, high), Input(b, kinds[1], low, high, "large", constant=d.chance())),
        None if integers else oracle,
        local=False,  # Strassen's sums
        tolerance=FAST_ERROR,
    )


def draw_matmul(d):
    m, k, n = matrices(d)
    batch = d.one((), (), (2,), (2, 3), (1, 4))
    a = d.one((m, k), (m, k), (*batch, m, k), (k,))
    b = d.one((k, n), (k, n), (*batch, k, n), (k,))
    return case_of_product(d, nn.matmul, product, a, b)


def draw_batch_matmul(d):
    m, k, n = matrices(d)
    batch = d.int(1, 4)
    flips = d.chance(), d.chance()
    a, b = (
        (d.one(batch, batch, 1), *(s[::-1] if flip else s)) for s, flip in zip(((m, k), (k, n)), flips, strict=True)
    )

    def oracle(a, b):
        return product(a.swapaxes(1, 2) if flips[0] else a, b.swapaxes(1, 2) if flips[1] else b)

    return case_of_product(
        d, lambda a, b: nn.batch_matmul(a, b, transpose_a=flips[0], transpose_b=flips[1]), oracle, a, b
    )


def draw_dense(d):
    m, k, n = matrices(d)
    transposed = d.chance()
    return case_of_product(
        d,
        lambda x, w: nn.dense(x, w, transposed=transposed),
        lambda x, w: product(x, w.T if transposed else w),
        (m, k),
        (n, k) if transposed else (k, n),
    )


def draw_experts(d):
    rows, experts = d.int(1, 12), d.int(1, 5)
    _, k, n = matrices(d)
    chosen = np.array(d.ints(0, experts - 1, rows), np.int64)

    def oracle(x, numbers, weights):
        return np.einsum("rk,rnk->rn", x, weights[numbers])

    return Case(
        nn.expert_dense,
        oracle,
        (Input((rows, k)), Given(chosen), Input((experts, n, k), outliers="large", constant=d.chance())),
        oracle,
    )


def draw_packed(d):
    rows, terms, tiles, width = d.int(1, 20), d.int(1, 40), d.int(1, 4), d.one(8, 16, 32)
    columns = tiles * width - d.int(0, width - 1)

    def oracle(a, panels):
        return a @ panels.swapaxes(0, 1).reshape(terms, -1)[:, :columns]

    return Case(
        lambda a, p: nn.packed_matmul(a, p, columns=columns),
        oracle,
        (Input((rows, terms)), Input((tiles, terms, width), outliers="large", constant=d.chance())),
        oracle,
    )


def draw_packed_bytes(d):
    rows, words, tiles, width = d.int(1, 20), d.int(1, 9), d.int(1, 4), d.one(8, 16)
    terms, columns, sign = 4 * words - d.int(0, 3), tiles * width - d.int(0, width - 1), d.one("int8", "uint8")
    panels = d.rng.integers(-(1 << 31), 1 << 31, (tiles, words, width)).astype(np.int32)
    return Case(
        lambda a, p: nn.packed_byte_matmul(a, p, columns=columns, dtype="int8"),
        lambda a, p: every.product_of_bytes(a, every.unpacked_words(p)[:terms, :columns]),
        (Input((rows, terms), sign, 0 if sign == "uint8" else -128, 127), Given(panels)),
    )


def draw_packed_pairs(d):
    rows, pairs, tiles, width = d.int(1, 20), d.int(1, 9), d.int(1, 3), d.one(8, 16)
    terms, columns = 2 * pairs - d.int(0, 1), tiles * width - d.int(0, width - 1)

    def oracle(a, p):
        return a @ every.unpacked_pairs(p)[:terms, :columns].astype(np.float64)

    return Case(
        lambda a, p: nn.packed_pair_matmul(a, p, columns=columns),
        oracle,
        (Input((rows, terms), "bfloat16"), Given(every.words_of_halves(tiles, pairs, width))),
        lambda a, p: a @ np.abs(every.unpacked_pairs(p.astype("<i4"))[:terms, :columns].astype(np.float64)),
    )


def draw_blockwise(d):
    rows, terms, columns, bits, block = d.int(1, 40), d.int(1, 70), d.int(1, 70), d.one(1, 2, 4, 8), d.int(1, 40)
    shape = (columns, -(-terms // block))
    return Case(
        lambda x, c, z, s: nn.blockwise_dense(x, c, z, s, bits=bits, block=block),
        lambda x, c, z, s: x @ every.blockwise_weight(c, z, s, block).T,
        (
            Input((rows, terms), d.one("float32", "float16")),
            Given(d.rng.integers(0, 1 << bits, (columns, terms)).astype(np.uint8)),
            Given(d.rng.integers(0, 1 << bits, shape).astype(np.uint8)),
            Given(d.rng.uniform(0.01, 0.1, shape).astype(np.float32)),
        ),
        lambda x, c, z, s: x @ np.abs(every.blockwise_weight(c, z, s, block)).T,
    )


def draw_packed_blockwise(d):
    rows, terms, bits, block = d.int(1, 40), d.int(1, 70), d.one(1, 2, 4, 8), d.int(1, 40)
    tiles, width = d.int(1, 3), d.one(8, 16)
    columns, shape = tiles * width - d.int(0, width - 1), (tiles, -(-terms // block), width)

    def weight(words, zeros, scales):
        return every.blockwise_panels(words, zeros, scales, bits, block)[:terms, :columns]

    return Case(
        lambda x, *parts: nn.packed_blockwise(x, *parts, columns=columns, bits=bits, block=block),
        lambda x, *parts: x @ weight(*parts),
        (
            Input((rows, terms), d.one("float32", "float16")),
            Given(d.rng.integers(-(1 << 31), 1 << 31, (tiles, -(-terms * bits // 32), width)).astype(np.int32)),
            Given(d.rng.integers(0, 1 << bits, shape).astype(np.uint8)),
            Given(d.rng.uniform(0.01, 0.1, shape).astype(np.float32)),
        ),
        lambda x, *parts: x @ np.abs(weight(*parts)),
    )


EINSUMS = (
    "bij,bjk->ki",
    "ij,jk->ik",
    "ij,kj->ik",
    "i,i->",
    "ij->ji",
    "bij,bkj->bik",
    "ij,j->i",
    "bhid,bhjd->bhij",
    "ii->i",
)


def draw_einsum(d):
    equation = d.one(*EINSUMS)
    extents = {letter: d.one(1, 2, 3, 4, 7, 9, 16, 17) for letter in "bhijkd"}
    shapes = [tuple(extents[letter] for letter in term) for term in equation.split("->")[0].split(",")]

    def oracle(*x):
        return np.einsum(equation, *x)

    return Case(lambda *x: nn.einsum(equation, x), oracle, tuple(Input(s, outliers="large") for s in shapes), oracle)


def draw_attention(masked):
    def draw(d):
        batch, heads, share = d.int(1, 2), d.int(1, 3), d.one(1, 1, 2)
        queries, keys, depth, out = d.one(1, 5, 16, 33), d.one(1, 4, 17, 40), d.one(1, 3, 8, 16), d.one(1, 2, 8, 16)
        causal = not masked and d.chance()
        shapes = [(batch, heads * share, queries, depth), (batch, heads, keys, depth), (batch, heads, keys, out)]
        mask = [
            Input(d.one((queries, keys), (batch, 1, 1, keys), (batch, heads * share, queries, keys)), outliers="mask")
        ]

        def oracle(q, k, v, mask=0.0):
            """A query that sees no key gives 0."""
            mask = mask + np.where(np.tri(queries, keys) if causal else True, np.zeros((queries, keys)), -np.inf)
            sees = np.any(mask > -np.inf, axis=-1, keepdims=True)
            with np.errstate(all="ignore"):
                return np.where(sees, every.attention(q, k, v, mask), 0.0)

        return Case(
            lambda *x: nn.attention(*x, causal=causal),
            oracle,
            (*(Input(s, outliers=None) for s in shapes), *(mask if masked else [])),
            lambda q, k, v, mask=0: np.full((*q.shape[:3], out), 30.0),
        )

    return draw


def draw_recurrence(name, oracle, gates, activations, more=lambda hidden: (), states=1):
    op = get_op(name)
    parameters = (0.0,) * len(activations)

    def draw(d):
        time, batch, hidden = within(
            d, lambda t, b, n: t * b * n * n * gates, d.int(1, 6), d.one(1, 1, 2, 5, 17), d.one(1, 3, 8, 16, 17, 33, 64)
        )
        clip = d.one(np.inf, 1.5)
        kind = d.one("float32", "float32", "float64")
        attrs = op.attrs(activations=activations, alphas=parameters, betas=parameters, clip=clip)
        numbers = d.rng.uniform(-1, 1, (gates * hidden, hidden)).astype(kind) / hidden
        weights = recurrences.panels(numbers, gates, together=name != "nn.gru_steps")
        shapes = [(d.one(1, batch), hidden)] * states + list(more(hidden))
        return Case(
            lambda *x: op(*x, attrs=attrs),
            lambda *x: recurrences.of_panels(oracle)(*x, activations=activations, clip=clip),
            (
                Input((time, batch, gates * hidden), kind, outliers=None),
                Given(weights),
                *(Input(shape, kind, outliers=None) for shape in shapes),
            ),
            lambda x, *_: np.full((time + 1, batch, hidden), 8.0 * time),
        )

    return draw


_GATES, _UPDATE = ("Sigmoid", "Tanh", "Tanh"), ("Sigmoid", "Tanh")


def draw_det(d):
    """The error is a share of what the rows could span at most."""
    n = d.int(0, 9)
    shape = (*d.shape(0, 2, empty=True), n, n)
    return Case(
        nn.det, np.linalg.det, (Input(shape, d.kind(), outliers=None),), lambda x: x.sum(-1).prod(-1), tolerance=4.0
    )


def draw_coupled_probabilities(d):
    """A sweep more or less, which rounding decides, is within the tolerance that ends the sweeps."""
    classes = d.int(2, 12)
    pairs = Input((d.int(0, 40), classes * (classes - 1) // 2), d.one("float32", "float64"), 0.1, 0.9, outliers=None)
    return Case(
        lambda x: nn.coupled_probabilities(x, classes),
        lambda x: coupling.coupled_probabilities(x, classes),
        (pairs,),
        lambda x: np.full((len(x), classes), 0.01 / np.finfo(x.dtype).eps),
    )


DRAWS = {
    "nn.lstm_steps": draw_recurrence("nn.lstm_steps", recurrences.lstm, 4, _GATES, states=2),
    "nn.peephole_lstm_steps": draw_recurrence(
        "nn.peephole_lstm_steps", recurrences.lstm, 4, _GATES, lambda hidden: [(3, hidden)], states=2
    ),
    "nn.gru_steps": draw_recurrence("nn.gru_steps", recurrences.gru, 3, _UPDATE),
    "nn.reset_after_gru_steps": draw_recurrence(
        "nn.reset_after_gru_steps", recurrences.gru, 3, _UPDATE, lambda hidden: [(hidden,)]
    ),
    "nn.rnn_steps": draw_recurrence("nn.rnn_steps", recurrences.rnn, 1, ("Tanh",)),
    "nn.strassen_matmul": draw_strassen,
    "nn.matmul": draw_matmul,
    "nn.batch_matmul": draw_batch_matmul,
    "nn.dense": draw_dense,
    "nn.expert_dense": draw_experts,
    "nn.packed_matmul": draw_packed,
    "nn.packed_byte_matmul": draw_packed_bytes,
    "nn.packed_pair_matmul": draw_packed_pairs,
    "nn.blockwise_dense": draw_blockwise,
    "nn.packed_blockwise": draw_packed_blockwise,
    "nn.attention": draw_attention(masked=False),
    "nn.masked_attention": draw_attention(masked=True),
    "einsum": draw_einsum,
    "coupled_probabilities": draw_coupled_probabilities,
    "det": draw_det,
}
