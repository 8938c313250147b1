"""Batch normalisation disappears, and what the model computes stays."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.model.compile_model import compile_model
from loopwright.compiler.passes.simplify_inference import simplify_inference
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Call, Constant, Function, Var, tensor_type
from loopwright.graph.visit import post_order
from loopwright.ops.families.binary import add
from loopwright.ops.families.conv.conv import conv
from loopwright.ops.families.norm import batch_norm
from loopwright.ops.families.unary import relu
from loopwright.runtime.engine import Engine
from loopwright.runtime.library import Library

rng = np.random.default_rng(5)


def constant(*shape, low=-1.0, high=1.0):
    return Constant(rng.uniform(low, high, shape).astype(np.float32))


def normalised(x, channels):
    variance = constant(channels, low=0.5, high=1.5)
    return batch_norm(x, constant(channels), constant(channels), constant(channels), variance, epsilon=1e-3)


def models():
    x = Var("x", tensor_type((1, 3, 6, 5), "float32"))
    plain = conv(x, constant(4, 3, 3, 3), padding=1)
    shared = conv(x, constant(4, 3, 1, 1))
    yield "after a convolution", x, relu(normalised(plain, 4))
    yield "after a convolution with bias", x, normalised(add(plain, constant(4, 1, 1)), 4)
    yield "alone", x, normalised(relu(x), 3)
    yield "after a convolution that others read", x, add(normalised(shared, 4), shared)
    yield "after a weight with its filters last", x, normalised(conv(x, constant(3, 2, 3, 4), kernel_layout="HWIO"), 4)
    yield "over rows, as channels are last", x, normalised(conv(x, constant(6, 3, 1, 1), out_layout="NHWC"), 6)


@pytest.mark.parametrize(("x", "body"), [case[1:] for case in models()], ids=[case[0] for case in models()])
def test_batch_norm_folds_without_changing_the_result(x, body):
    function = Function([x], body)
    simplified = simplify_inference(function)
    names = [node.op.name for node in post_order(simplified.body) if isinstance(node, Call)]
    assert "nn.batch_norm" not in names
    data = rng.standard_normal((1, 3, 6, 5)).astype(np.float32)
    target = lw.resolve_target("native")
    output = Engine(Library(compile_model(simplified, CompileSettings(target), jobs=1)))([data])[0]
    np.testing.assert_allclose(output, reference(function.body, {x: data}), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mean", "variance"), [(-3e38, 1e-12), (0.0, -1.0)])
def test_statistics_that_overflow_or_have_no_root_are_no_warning(mean, variance):
    x = Var("x", tensor_type((1, 2, 3, 3), "float32"))
    ones, statistics = Constant(np.ones(2, np.float32)), (Constant(np.full(2, v, np.float32)) for v in (mean, variance))
    simplified = simplify_inference(Function([x], batch_norm(x, ones, ones, *statistics, epsilon=1e-9)))
    shift = simplified.body.args[1].value
    assert not np.isfinite(shift).any()


def reference(node, values):
    """The graph in numpy, in float64."""
    if node in values:
        return values[node]
    if isinstance(node, Constant):
        return node.value.astype(np.float64)
    args = [reference(a, values) for a in node.args]
    match node.op.name:
        case "relu":
            return np.maximum(args[0], 0)
        case "add":
            return args[0] + args[1]
        case "nn.batch_norm":
            scale, bias, mean, variance = (a.reshape(-1, 1, 1) for a in args[1:])
            return (args[0] - mean) / np.sqrt(variance + node.attrs.epsilon) * scale + bias
        case "nn.conv2d":
            x, w = args
            w = w.transpose(3, 2, 0, 1) if node.attrs.kernel_layout == "HWIO" else w
            pad = node.attrs.padding[0]
            x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
            windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
            return np.einsum(f"nchwij,kcij->{node.attrs.out.text.lower().replace('c', 'k')}", windows, w)
    raise AssertionError(node.op.name)
