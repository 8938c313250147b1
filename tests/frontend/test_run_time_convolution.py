"""Convolutions by weights that are inputs, any of whose extents may be open, against onnx's reference evaluator."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

rng = np.random.default_rng(5)
KINDS = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8}


def model_of(op, kind="float32", bias=True, **dims):
    names = list(dims) + (["b"] if bias else [])
    attributes = {name: dims.pop(name) for name in list(dims) if name not in ("x", "w", "zero")}
    names = [name for name in names if name not in attributes]
    given = [helper.make_tensor_value_info(n, KINDS[kind], dims.get(n, ["filters"])) for n in names]
    node = helper.make_node(op, names, ["y"], name="the_node", **attributes)
    made = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph([node], "g", given, [made])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(model, *runs):
    """One compilation for all of these inputs."""
    engine, reference = lw.Engine(lw.compile(model, jobs=1), threads=1), ReferenceEvaluator(model)
    for feeds in runs:
        (found,), (wanted,) = engine(feeds), reference.run(None, feeds)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return engine


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


FORMS = {
    "plain": {},
    "strides and pads": {"strides": [2, 3], "pads": [1, 0, 1, 2]},
    "groups": {"dilations": [2, 1], "group": 2},
    "same": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    "same, rather before": {"auto_pad": "SAME_LOWER", "strides": [1, 2]},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", [(3, 2), ("kh", "kw")], ids=["known_window", "open_window"])
def test_filters_of_a_run(form, window):
    own = 4 // FORMS[form].get("group", 1)
    model = model_of("Conv", x=["n", 4, "h", "w"], w=["filters", "own", *window], **FORMS[form])
    runs = []
    for filters, taps, extents in (
        (6, (3, 2), (8, 9)),
        (2, (3, 2), (5, 4)),
        (18, (3, 2), (17, 5)),
        (4, (1, 4), (7, 7)),
    ):
        if taps == (3, 2) or window == ("kh", "kw"):
            runs.append({"x": floats(2, 4, *extents), "w": floats(filters, own, *taps), "b": floats(filters)})
    check(model, *runs)


def test_all_extents_of_a_run():
    model = model_of("Conv", x=["n", "c", "h"], w=["filters", "own", "k"], bias=False)
    engine = check(
        model,
        {"x": floats(2, 3, 8), "w": floats(5, 3, 3)},
        {"x": floats(1, 1, 4), "w": floats(1, 1, 1)},
        {"x": floats(1, 17, 9), "w": floats(33, 17, 9)},
    )
    with pytest.raises(lw.RuntimeArgumentError, match=r"input w: .* dimension 1, found 2 .*dimension 1 of input x"):
        engine({"x": floats(1, 3, 4), "w": floats(1, 2, 1)})


def test_a_window_that_an_attribute_says():
    model = model_of("Conv", x=["n", 3, "h", "w"], w=[4, 3, "kh", "kw"], bias=False, kernel_shape=[3, 3])
    engine = check(model, {"x": floats(1, 3, 6, 7), "w": floats(4, 3, 3, 3)})
    assert engine.outputs[0].shape[1] == 4
    with pytest.raises(lw.RuntimeArgumentError, match="w"):
        engine({"x": floats(1, 3, 6, 7), "w": floats(4, 3, 2, 3)})


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_integers_by_filters_of_a_run(kind):
    def numbers(*shape):
        return rng.integers(0, 100, shape).astype(kind)

    dims = {"x": ["n", "c", "h", "w"], "w": ["filters", "own", "kh", "kw"], "zero": []}
    model = model_of("ConvInteger", kind=kind, bias=False, **dims)
    engine = lw.Engine(lw.compile(model, jobs=1), threads=1)
    for filters, taps in ((5, (3, 3)), (17, (1, 2))):
        x, w, zero = numbers(2, 3, 8, 7), numbers(filters, 3, *taps), numbers()
        (found,) = engine({"x": x, "w": w, "zero": zero})
        windows = np.lib.stride_tricks.sliding_window_view(x.astype(int) - int(zero), taps, (2, 3))
        np.testing.assert_array_equal(found, np.einsum("nchwij,fcij->nfhw", windows, w.astype(int)))


def transposed(x, w, bias, strides=(1, 1), pads=(0, 0, 0, 0), output_padding=(0, 0), dilations=(1, 1), group=1):
    """Each tap of a window, added where it lies."""
    (batch, _, *extents), (_, own, *taps) = x.shape, w.shape
    reach = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(extents, strides, taps, dilations, strict=True)]
    whole = np.zeros((batch, group, own, *(r + more for r, more in zip(reach, output_padding, strict=True))))
    parts, weights = x.reshape(batch, group, -1, *extents), w.reshape(group, -1, own, *taps)
    for i, j in np.ndindex(*taps):
        at = (
            slice(k * d, k * d + (e - 1) * s + 1, s)
            for k, d, e, s in zip((i, j), dilations, extents, strides, strict=True)
        )
        whole[:, :, :, *at] += np.einsum("ngchw,gcf->ngfhw", parts, weights[..., i, j])
    rows, columns = (slice(pads[d], whole.shape[3 + d] - pads[2 + d]) for d in range(2))
    kept = whole[..., rows, columns]
    return kept.reshape(batch, group * own, *kept.shape[3:]) + bias[:, None, None]


TRANSPOSED = {
    "plain": {"strides": [2, 2]},
    "pads": {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 2]},
    "groups": {"dilations": [2, 1], "group": 2},
}


@pytest.mark.parametrize("form", TRANSPOSED)
@pytest.mark.parametrize("window", [(3, 2), ("kh", "kw")], ids=["known_window", "open_window"])
def test_transposed_by_filters_of_a_run(form, window):
    groups = TRANSPOSED[form].get("group", 1)
    model = model_of("ConvTranspose", x=["n", "c", "h", "w"], w=["c", "own", *window], **TRANSPOSED[form])
    engine = lw.Engine(lw.compile(model, jobs=1), threads=1)
    for own, taps, extents in ((3, (3, 2), (5, 6)), (1, (3, 2), (1, 4)), (9, (3, 2), (7, 3)), (2, (4, 3), (5, 5))):
        if taps == (3, 2) or window == ("kh", "kw"):
            feeds = {"x": floats(2, 4, *extents), "w": floats(4, own, *taps), "b": floats(own * groups)}
            np.testing.assert_allclose(
                engine(feeds)[0], transposed(*feeds.values(), **TRANSPOSED[form]), rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(
    ("x", "w"), [([1, 3, 8], []), ([1, 3, 8], [4]), ([1, 3, 8], [4, 3]), ([1, 3], [3, 3]), ([], [4, 3, 3])], ids=str
)
def test_weights_of_another_rank_are_refused(op, x, w):
    with pytest.raises(lw.LoopwrightError, match=r"a weight float32.* does not fit float32"):
        lw.compile(model_of(op, x=x, w=w, bias=False))
