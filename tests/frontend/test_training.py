"""Optimizers and batch normalisation in training, in each version, against formulas in numpy."""

import numpy as np
import pytest
from onnx import helper
from onnx_cases import case, check, each_version, floats, make_model

import loopwright as lw

PREVIEW = {"domain": "ai.onnx.preview.training"}
RATE = np.float32(0.1)
STEPS = (np.int64(0), np.int64(3))


def momentum(rate, steps, *tensors, mode="standard", alpha=0.9, beta=0.8, norm=0.01):
    count = len(tensors) // 3
    xs, gs, vs = (tensors[k * count : (k + 1) * count] for k in range(3))
    new_x, new_v = [], []
    for x, g, v in zip(xs, gs, vs, strict=True):
        slope = norm * x + g
        velocity = alpha * v + (beta if steps > 0 else 1) * slope
        change = slope + alpha * velocity if mode == "nesterov" else velocity
        new_x.append((x - rate * change).astype(x.dtype))
        new_v.append(velocity.astype(x.dtype))
    return (*new_x, *new_v)


def adagrad(rate, steps, x, g, h):
    g = 0.02 * x + g
    h = h + g * g
    return (x - rate / (1 + steps * 0.1) * g / (np.sqrt(h) + 1e-3)).astype(x.dtype), h.astype(x.dtype)


def adam(rate, steps, x, g, v, h):
    g = 0.02 * x + g
    v, h = 0.95 * v + 0.05 * g, 0.8 * h + 0.2 * g * g
    rate = rate * np.sqrt(1 - 0.8**steps) / (1 - 0.95**steps) if steps > 0 else rate
    return tuple(a.astype(x.dtype) for a in (0.9 * (x - rate * v / (np.sqrt(h) + 1e-3)), v, h))


def states(count, kind=np.float32):
    """A tensor, its gradient, and states, which are not negative."""
    given = [floats(3, 4, seed=k, kind=kind) for k in range(2 + count)]
    return [*given[:2], *map(abs, given[2:])]


def batch_norm(x, scale, bias, mean, variance, share=0.8, epsilon=1e-3, saved=False):
    axes = tuple(a for a in range(x.ndim) if a != 1)
    now = x.mean(axes), x.var(axes)
    shape = (-1, *[1] * (x.ndim - 2))
    y = (x - now[0].reshape(shape)) / np.sqrt(now[1].reshape(shape) + epsilon)
    y = y * scale.reshape(shape) + bias.reshape(shape)
    updated = tuple(share * a + (1 - share) * b for a, b in zip((mean, variance), now, strict=True))
    return tuple(v.astype(x.dtype) for v in (y, *updated, *(now if saved else ())))


def norm_case(versions, shape, saved, **attrs):
    channels = [floats(shape[1], seed=k) for k in range(3)]
    return case(
        "BatchNormalization", versions, floats(*shape), *channels, abs(floats(shape[1], seed=4)), momentum=0.8,
        epsilon=1e-3, outputs=5 if saved else 3, expected=lambda *x: batch_norm(*x, saved=saved), **attrs,
        label=f"{len(shape)}d",
    )  # fmt: skip


CASES = [
    *(
        case("Momentum", (1,), RATE, steps, *states(1), outputs=2, alpha=0.9, beta=0.8, norm_coefficient=0.01,
             mode=mode, label=f"{mode}_{steps}", **PREVIEW,
             expected=lambda *x, mode=mode: momentum(*x, mode=mode))
        for mode in ("standard", "nesterov") for steps in STEPS
    ),
    case("Momentum", (1,), RATE, np.int64(3), *states(4), outputs=4, alpha=0.9, beta=0.8, norm_coefficient=0.01,
         mode="standard", label="two", expected=momentum, **PREVIEW),
    *(
        case("Adagrad", (1,), RATE, steps, *states(1), outputs=2, norm_coefficient=0.02, decay_factor=0.1,
             epsilon=1e-3, label=str(steps), expected=adagrad, **PREVIEW)
        for steps in STEPS
    ),
    *(
        case("Adam", (1,), RATE, steps, *states(2, kind), outputs=3, norm_coefficient=0.02, alpha=0.95, beta=0.8,
             norm_coefficient_post=0.1, epsilon=1e-3, label=f"{steps}_{kind.__name__}", expected=adam, **PREVIEW)
        for steps in STEPS for kind in (np.float32, np.float64)
    ),
    norm_case((9,), (4, 3, 5), saved=True),
    norm_case((1, 6, 7), (2, 3, 4, 5), saved=True),
    norm_case((14, 15), (2, 3, 4, 5), saved=False, training_mode=1),
    norm_case((15,), (6, 3), saved=False, training_mode=1),
]  # fmt: skip


@each_version(CASES)
def test_agrees_with_the_formulas(case, version):
    check(case, version)


def test_an_open_batch_is_normalised():
    names = ["x", "s", "b", "m", "v"]
    given = {n: floats(3, seed=k) for k, n in enumerate(names[1:])} | {"v": np.ones(3, np.float32)}
    node = helper.make_node("BatchNormalization", names, ["y", "m1", "v1"], training_mode=1, momentum=0.8, epsilon=1e-3)
    model = make_model([node], {"x": (np.float32, ("n", 3, 7))}, ["y", "m1", "v1"], 15, given)
    engine = lw.Engine(lw.compile(lw.from_onnx(model), jobs=1))
    for batch in (1, 5):
        x = floats(batch, 3, 7)
        for found, wanted in zip(engine([x]), batch_norm(x, *given.values()), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_number_of_inputs_that_does_not_divide():
    nodes = [helper.make_node("Adagrad", ["r", "t", "x", "g"], ["y", "h"], **PREVIEW)]
    given = {"r": np.array(RATE), "t": np.array(0), "x": floats(2), "g": floats(2)}
    with pytest.raises(lw.ModelError, match="4 inputs, which are not 2 and 3 for each tensor"):
        lw.from_onnx(make_model(nodes, given, ["y", "h"], 1, domain="ai.onnx.preview.training"))
