"""Operators on signals, in each version, against the reference."""

import numpy as np
import onnx
import pytest
from onnx_cases import case, check, each_version, floats, make_model

import loopwright as lw


def number(value, kind=np.int64):
    return np.array(value, kind)


SPECTRUM = floats(2, 6, 5, 2)
ROWS = floats(1, 40, 3, 1)
STFT = {"const": (1, 3), "tolerance": 1e-4}
HANN = np.hanning(64).astype(np.float32)
CASES = [
    case("DFT", (17,), ROWS, axis=1),
    case("DFT", (17,), floats(3, 70, 2), number(64), const=(1,), label="cut"),
    case("DFT", (17,), SPECTRUM, axis=2, inverse=1, label="inverse"),
    case("DFT", (17,), SPECTRUM, axis=1, inverse=1, onesided=1, label="to_reals"),
    case("DFT", (20,), ROWS, None, number(1), const=(2,), onesided=1),
    case("DFT", (20,), floats(2, 128, 1), label="last"),
    case("DFT", (20,), floats(2, 127, 1), number(131), number(-2), const=(1, 2), label="filled"),
    case("STFT", (17,), floats(2, 300, 1), number(16), HANN, None, **STFT),
    case("STFT", (17,), floats(1, 300, 1), number(50), None, number(128), label="no_window", **STFT),
    case("STFT", (17,), floats(1, 200, 2), number(7), None, number(30), onesided=0, label="complex", **STFT),
    case(
        "MelWeightMatrix", (17,), number(8), number(64), number(8192), number(0, np.float32), number(4096, np.float32)
    ),
    case(
        "MelWeightMatrix",
        (17,),
        *(number(value) for value in (40, 512, 16000)),
        *(number(value, np.float32) for value in (20, 7600)),
        const=(0, 1, 2, 3, 4),
        output_datatype=onnx.TensorProto.DOUBLE,
        tolerance=1e-6,
        label="known",
    ),
]


@each_version(CASES)
def test_agrees_with_the_reference(case, version):
    check(case, version)


def stft(signal, constants, **attrs):
    names = ["x", "step", "window", "length"]
    node = onnx.helper.make_node("STFT", [n if n == "x" or n in constants else "" for n in names], ["y"], **attrs)
    return make_model([node], {"x": (np.float32, signal)}, ["y"], 17, constants)


def test_an_open_signal_of_two_axes():
    model = stft(("batch", "time"), {"step": number(160), "window": np.hanning(400).astype(np.float32)})
    engine = lw.Engine(lw.compile(lw.from_onnx(model)))
    for batch, time in ((1, 400), (2, 1000), (1, 16000)):
        x = floats(batch, time)
        frames = np.lib.stride_tricks.sliding_window_view(x.astype(float), 400, 1)[:, ::160] * np.hanning(400)
        wanted = np.fft.rfft(frames)
        np.testing.assert_allclose(engine([x])[0], np.stack([wanted.real, wanted.imag], -1), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"step": number(0), "length": number(8)}, "the step of frames must be 1 or more, found 0"),
        ({"step": number(4), "length": number(8), "window": HANN}, "the window must have the 8 elements of a frame"),
    ],
)
def test_misuse_is_told(constants, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(stft((1, 300, 1), constants))
