"""ImageDecoder: forms of pixels, sizes that only a run knows, and files that are no images."""

import numpy as np
import pytest
from needed_tools import module
from onnx_cases import case, each_version, model_of

import loopwright as lw

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)


def encoded(pixels):
    """An image in the format of portable pixmaps, which has pixels as they are."""
    height, width, _ = pixels.shape
    return np.frombuffer(f"P6 {width} {height} 255\n".encode() + pixels.tobytes(), np.uint8)


def luma(pixels):
    """As Rec. 601 has it, in 16 bits."""
    weighted = pixels.astype(np.int64) @ [19595, 38470, 7471] + 0x8000
    return (weighted >> 16).astype(np.uint8)[..., None]


CASES = [
    case("ImageDecoder", (20,), encoded(PIXELS), expected=lambda x: PIXELS),
    case("ImageDecoder", (20,), encoded(PIXELS), pixel_format="BGR", label="BGR", expected=lambda x: PIXELS[..., ::-1]),
    case("ImageDecoder", (20,), encoded(PIXELS), pixel_format="Grayscale", label="L", expected=lambda x: luma(PIXELS)),
]


@pytest.fixture(autouse=True)
def _pillow():
    module("PIL.Image")


@each_version(CASES)
def test_pixels(case, version):
    (found,) = lw.Engine(lw.compile(model_of(case, version), jobs=1))(case.fed)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, case.expected(None))


def test_images_of_all_sizes_by_one_engine(tmp_path):
    made = model_of(CASES[0], 20)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    lw.compile(made).save(tmp_path / "decoder.lwlib")
    library = lw.load(tmp_path / "decoder.lwlib")
    engine = lw.Engine(library)
    assert engine.outputs[0].shape == ("height", "width", 3)
    for shape in ((1, 1, 3), (30, 20, 3), (5, 7, 3)):
        pixels = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
        np.testing.assert_array_equal(engine([encoded(pixels)])[0], pixels)


def test_what_is_no_image_is_refused():
    engine = lw.Engine(lw.compile(model_of(CASES[0], 20)))
    for damaged in (np.zeros_like(encoded(PIXELS)), encoded(PIXELS)[::-1].copy()):
        with pytest.raises(lw.LoopwrightError, match="an image cannot be decoded: cannot identify image file"):
            engine([damaged])
    with pytest.raises(lw.ModelError, match="the pixel_format 'HSV', which is none of RGB, BGR, Grayscale, is not"):
        lw.from_onnx(model_of(case("ImageDecoder", (20,), encoded(PIXELS), pixel_format="HSV"), 20))
