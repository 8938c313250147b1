"""Transforms whose axis, length or step only a run knows, or of an open axis, against numpy."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pairs import each_value

import loopwright as lw

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def engine_of(op, inputs, outputs=("y",), opset=20, **attributes):
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs if name]
    node = helper.make_node(op, [name for name, _, _ in inputs], list(outputs), name="transform", **attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return lw.Engine(lw.compile(model, jobs=1, progress=False))


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def pairs(z, kind=np.float32):
    return np.stack([z.real, z.imag], -1).astype(kind)


def transformed(x, axis, length, inverse, onesided, kind=np.float32):
    z = x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None].astype(kind)
    if onesided:
        return pairs(np.fft.rfft(z, length, axis), kind)
    return pairs(np.fft.ifft(z, length, axis) if inverse else np.fft.fft(z, length, axis), kind)


FORMS = {"forward": (1, 0, 0), "pairs": (2, 0, 0), "inverse": (2, 1, 0), "half": (1, 0, 1), "back": (2, 1, 1)}


@pytest.mark.parametrize("form", FORMS)
def test_an_axis_and_a_length_of_the_run(form):
    components, inverse, onesided = FORMS[form]
    inputs = [("x", FLOAT, ["b", "n", "m", components]), ("length", INT, []), ("axis", INT, [])]
    engine = engine_of("DFT", inputs, inverse=inverse, onesided=onesided)
    for shape, axis, length in (((2, 5, 3), 1, 5), ((2, 5, 3), 2, 7), ((1, 6, 4), -2, 3), ((3, 2, 8), 0, 4)):
        x = numbers(*shape, components)
        (found,) = engine({"x": x, "length": np.array(length), "axis": np.array(axis)})
        at = axis if axis >= 0 else axis + 4
        wanted = transformed(x, at, length, inverse, onesided)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=2e-5)
    for axis in (3, -1, -5):
        with pytest.raises(lw.RuntimeArgumentError, match="axis of a transform"):
            engine({"x": numbers(1, 2, 2, components), "length": np.array(2), "axis": np.array(axis)})


@pytest.mark.parametrize("onesided", [0, 1])
def test_real_numbers_have_a_real_result_for_the_highest_frequency(onesided):
    inputs = [("x", FLOAT, ["b", "n", 1]), ("", INT, []), ("axis", INT, [])]
    engine = engine_of("DFT", inputs, onesided=onesided)
    for length in (1, 2, 5, 8, 10, 11, 12, 22, 100):
        (found,) = engine({"x": numbers(3, length, 1), "axis": np.array(1)})
        assert not found[:, 0, 1].any()
        assert length % 2 or not found[:, length // 2, 1].any()


def test_an_open_axis():
    engine = engine_of("DFT", [("x", FLOAT, ["b", "n", 1])], opset=17, axis=1, onesided=1)
    for shape in ((1, 8, 1), (3, 13, 1)):
        x = numbers(*shape)
        np.testing.assert_allclose(engine({"x": x})[0], transformed(x, 1, None, 0, 1), atol=2e-5)


LENGTHS = (*range(1, 41), 97, 100, 243, 375, 400, 401, 441, 512, 1021, 1023, 2048)


@each_value(form=FORMS, kind=["float32", "float64", "float16"])
def test_every_length_of_an_open_axis(form, kind):
    """Lengths of small prime factors, and others, which are made of longer ones."""
    components, inverse, onesided = FORMS[form]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    engine = engine_of(
        "DFT", [("x", number, [2, "n", components])], opset=17, axis=1, inverse=inverse, onesided=onesided
    )
    for length in LENGTHS:
        extent = length // 2 + 1 if inverse and onesided else length
        if inverse and onesided and length % 2:
            continue  # the default length of a result is even
        x = np.random.default_rng(length).normal(size=(2, extent, components)).astype(kind)
        wanted = transformed(x.astype(np.float64), 1, length, inverse, onesided, np.float64)
        (found,) = engine({"x": x})
        assert found.dtype == kind
        assert found.shape == wanted.shape
        limit = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}[kind]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=limit * max(1, np.abs(wanted).max()))


def test_nothing_is_transformed_to_nothing():
    engine = engine_of("DFT", [("x", FLOAT, ["b", "n", 1])], opset=17, axis=1, onesided=1)
    np.testing.assert_array_equal(engine({"x": numbers(2, 0, 1)})[0], np.zeros((2, 1, 2), np.float32))
    assert engine({"x": numbers(0, 12, 1)})[0].shape == (0, 7, 2)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_components_of_the_run(axis):
    """Of numbers along an open last axis a run tells whether they have an imaginary part."""
    last = [("axis", INT, [])] if axis is None else []
    inputs = [("x", FLOAT, ["b", "n", "c"])]
    engine = (
        engine_of("DFT", [*inputs, ("", None, None), *last]) if last else engine_of("DFT", inputs, opset=17, axis=axis)
    )
    at = 1 if axis is None else axis
    feeds = {"axis": np.array(at)} if last else {}
    for shape in ((2, 8, 1), (3, 7, 2), (1, 1, 1)):
        x = numbers(*shape)
        np.testing.assert_allclose(engine({"x": x, **feeds})[0], transformed(x, at, None, 0, 0), atol=2e-5)
    with pytest.raises(lw.RuntimeArgumentError, match="the components of a number"):
        engine({"x": numbers(2, 3, 3), **feeds})


@pytest.mark.parametrize("window", [False, True])
def test_frames_of_a_step_and_a_length_of_the_run(window):
    last = [("w", FLOAT, ["m"])] if window else [("", None, None), ("length", INT, [])]
    engine = engine_of("STFT", [("x", FLOAT, ["b", "n", 1]), ("step", INT, []), *last], opset=17)
    for batch, extent, step, length in ((1, 40, 8, 16), (2, 33, 5, 9), (1, 8, 3, 8)):
        x, w = numbers(batch, extent, 1), np.hanning(length).astype(np.float32)
        given = {"w": w} if window else {"length": np.array(length)}
        (found,) = engine({"x": x, "step": np.array(step), **given})
        frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], length, axis=1)[:, ::step]
        wanted = pairs(np.fft.rfft(frames * w if window else frames, axis=-1))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=2e-5)
    with pytest.raises(lw.RuntimeArgumentError, match="number of frames"):
        engine({"x": numbers(1, 8, 1), "step": np.array(0), **given})
