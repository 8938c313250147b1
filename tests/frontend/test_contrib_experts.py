"""onnxruntime's mixtures of experts, against onnxruntime, and forms that its CPU provider lacks against numpy."""

import numpy as np
import pytest
from contrib_cases import check_contrib, check_refused, contrib_case, each_extents
from onnx_cases import floats
from scipy.special import expit, softmax

import loopwright as lw

TOKENS, WIDTH, INNER, EXPERTS = 6, 16, 32, 4
X, SCORES = floats(TOKENS, WIDTH), floats(TOKENS, EXPERTS, seed=1)
FIRST, SECOND = floats(EXPERTS, INNER, WIDTH, seed=2), floats(EXPERTS, WIDTH, INNER, seed=3)
GATED = floats(EXPERTS, 2 * INNER, WIDTH, seed=4)
BIASES = floats(EXPERTS, INNER, seed=5), floats(EXPERTS, WIDTH, seed=6)
WEIGHTS = (2, 3, 4, 5)


def mixture(activate, k):
    """Of x, scores, first, bias, second, bias: what each token's best experts give, added with their probabilities."""

    def compute(x, scores, first, first_bias, second, second_bias, third=None, third_bias=None):
        probabilities = softmax(scores, -1)
        y = np.zeros_like(x)
        for token, p in enumerate(probabilities):
            for expert in np.argsort(-p, kind="stable")[:k]:
                inner = first[expert] @ x[token] + (0 if first_bias is None else first_bias[expert])
                other = None
                if third is not None:
                    other = third[expert] @ x[token] + (0 if third_bias is None else third_bias[expert])
                out = second[expert] @ activate(inner, other)
                y[token] += p[expert] * (out + (0 if second_bias is None else second_bias[expert]))
        return y

    return compute


def gate_behind_factor(x, _):
    return x[:INNER] * expit(x[:INNER]) * x[INNER:]


def gate_of_its_own(x, up):
    return x * expit(1.7 * x) * (up + 1)


def gelu_of_gate(x, _):
    gate, up = x[0::2], x[1::2]
    return 0.5 * gate * (1 + np.tanh(0.7978845608 * (gate + 0.044715 * gate**3))) * up


def of_bits(bits, outputs, inputs, block, zeros, seed):
    """Packed numbers, their scales, and zero points or None."""
    rng = np.random.default_rng(seed)
    packed = rng.integers(0, 256, (EXPERTS, outputs, inputs * bits // 8), dtype=np.uint8)
    shape = (EXPERTS, outputs, *([inputs // block] if block else []))
    scales = (rng.uniform(0.5, 1.0, shape) / (1 << bits)).astype(np.float32)
    points = rng.integers(0, 256, (*shape[:-1], -(-shape[-1] * bits // 8)), dtype=np.uint8) if zeros else None
    return packed, scales, points


def quantized(bits, block, zeros, outputs=INNER):
    first = of_bits(bits, outputs, WIDTH, block, zeros, 0)
    second = of_bits(bits, WIDTH, INNER, block, zeros, 1)
    return X, SCORES, *first[:2], None, *second[:2], None, None, None, None, first[2], second[2]


def stored(bits, block, zeros):
    """The inputs that are weights of the model; of bytes in blocks none, since onnxruntime would round tokens then."""
    return () if bits == 8 and block else (2, 3, 5, 6, 11, 12) if zeros else (2, 3, 5, 6)


def given_weights(*inputs):
    return *inputs, *[None] * (14 - len(inputs)), np.abs(floats(TOKENS, EXPERTS, seed=9))


GATE = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0}
BITS = {"weights_prepacked": 0, "k": 2}
CASES = [
    *[
        contrib_case("MoE", X, SCORES, FIRST, None, SECOND, None, const=(2, 4), activation_type=name, k=2, label=name,
                     opened={0: "T.", 1: "T."})
        for name in ("relu", "gelu", "silu", "identity")
    ],
    contrib_case("MoE", X, SCORES, FIRST, BIASES[0], SECOND, BIASES[1], label="biases", const=WEIGHTS),
    contrib_case("MoE", X, SCORES, FIRST, BIASES[0], SECOND, BIASES[1], k=4, normalize_routing_weights=1, label="all"),
    contrib_case("MoE", X.reshape(2, 3, WIDTH), SCORES, FIRST, None, SECOND, k=2, label="batches", const=(2, 4),
                 normalize_routing_weights=1, opened={0: "BS."}),
    contrib_case("MoE", X, SCORES, GATED, None, SECOND, k=2, label="gated", **GATE, tolerance=1e-4),
    contrib_case("MoE", X, SCORES, GATED, None, SECOND, k=2, label="limited", swiglu_limit=0.5, **GATE, tolerance=1e-4),
    contrib_case("MoE", X.astype(np.float16), *(w.astype(np.float16) for w in (SCORES, FIRST)), None,
                 SECOND.astype(np.float16), k=2, label="half", tolerance=2e-2),
    contrib_case("MoE", floats(5, 96), SCORES[:5], floats(EXPERTS, 80, 96), None, floats(EXPERTS, 96, 80), k=2,
                 label="long rows", tolerance=1e-4, opened={0: "T.", 1: "T."}),
    contrib_case("MoE", X, SCORES, GATED, None, SECOND, None, label="gate behind factor", activation_type="swiglu",
                 swiglu_fusion=2, k=2, expected=mixture(gate_behind_factor, 2), tolerance=1e-4),
    contrib_case("MoE", X, SCORES, FIRST, BIASES[0], SECOND, None, floats(EXPERTS, INNER, WIDTH, seed=7), BIASES[0],
                 label="gate of its own", activation_type="swiglu", activation_alpha=1.7, activation_beta=1.0, k=2,
                 expected=mixture(gate_of_its_own, 2), tolerance=1e-4),
    contrib_case("MoE", X, SCORES, GATED, None, SECOND, None, label="geglu", activation_type="geglu", swiglu_fusion=1,
                 expected=mixture(gelu_of_gate, 1), tolerance=1e-4),
    *[
        contrib_case("QMoE", *quantized(bits, block, zeros), expert_weight_bits=bits, activation_type="relu", **BITS,
                     **({"block_size": block} if block else {}), const=stored(bits, block, zeros), tolerance=1e-4,
                     label=f"{bits}-{block}-{'zeros' if zeros else 'middle'}")
        for bits in (2, 4, 8) for block in (0, 16) for zeros in (False, True)
    ],
    contrib_case("QMoE", *quantized(4, 16, False, 2 * INNER), expert_weight_bits=4, block_size=16, label="gated",
                 **BITS, **GATE, tolerance=1e-4, opened={0: "T.", 1: "T."}),
    *[
        contrib_case("QMoE", *given_weights(*quantized(8, 0, False)), expert_weight_bits=8, activation_type="silu",
                     label=f"weights of their own-{normal}", normalize_routing_weights=normal, **BITS, tolerance=1e-4)
        for normal in (0, 1)
    ],
]  # fmt: skip


@each_extents(CASES)
def test_mixtures(case, opened):
    check_contrib(case, opened)


@pytest.mark.parametrize(
    ("attrs", "problem"),
    [
        ({"activation_type": "tanh"}, "the activation 'tanh'"),
        ({"activation_type": "swiglu"}, "a gate without weights for what it multiplies"),
    ],
)
def test_what_is_refused(attrs, problem):
    check_refused(contrib_case("MoE", X, SCORES, FIRST, None, SECOND, **attrs), problem)


def test_floats_of_few_bits_are_refused():
    check_refused(contrib_case("QMoE", *quantized(4, 16, False), quant_type="nvfp4", **BITS), "no integers")


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("columns", [7, 200])
def test_rows_times_the_weights_of_their_experts(kind, columns):
    x, weights = floats(5, columns), floats(3, 6, columns, seed=1)
    experts = np.array([2, 0, 0, 1, 2])
    r = lw.var("x", (5, columns), kind)
    e, w = lw.var("experts", (5,), "int64"), lw.var("w", (3, 6, columns), kind)
    cast = r.type.dtype.to_numpy()
    engine = lw.Engine(lw.compile(lw.Function([r, e, w], lw.nn.expert_dense(r, e, w))))
    (found,) = engine([x.astype(cast), experts, weights.astype(cast)])
    wanted = np.einsum(
        "rk,rnk->rn", x.astype(cast).astype(np.float64), weights.astype(cast).astype(np.float64)[experts]
    )
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=1e-2 if kind != "float32" else 1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        (((5, 8), (4,), (3, 6, 8)), "must agree"),
        (((5, 8), (5,), (3, 6, 7)), "must agree"),
        (((5, 8, 1), (5,), (3, 6, 8)), "x must be a matrix of floats"),
        (((5, 8), (5, 1), (3, 6, 8)), "experts must be a vector of int64"),
    ],
)
def test_shapes_that_do_not_fit(shapes, problem):
    x, experts, weights = (lw.var(f"v{k}", shape, "int64" if k == 1 else "float32") for k, shape in enumerate(shapes))
    with pytest.raises(lw.TypeInferenceError, match=problem):
        lw.nn.expert_dense(x, experts, weights)
