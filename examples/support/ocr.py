"""What stands before and behind the two models that read text: pictures in, boxes and words out.

The models are PaddleOCR's, out of the package rapidocr-onnxruntime, as they come: a detector of lines, for pictures of
any height and width, and a reader, of a line of any length.
"""

# The packages for pictures have no types, or incomplete ones.
# pyright: basic

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

Floats = NDArray[np.float32]

DETECTOR_STEP = 32
"""Heights and widths of its pictures are multiples of this."""
READER_HEIGHT = 48
TEXT, LINE = 0.3, 0.6
"""How probable a pixel has to be text, and the pixels of a line in the mean."""
GROWTH = 1.6
"""The detector finds the core of a line, which has to grow by its area times this over its perimeter."""


@dataclass(frozen=True)
class Box:
    """A part of a picture, in pixels."""

    left: int
    top: int
    right: int
    bottom: int


def model_file(part: str) -> Path | None:
    """The file of the detector (``det``) or the reader (``rec``). The package is only found, not imported."""
    package = find_spec("rapidocr_onnxruntime")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "models" / f"ch_PP-OCRv4_{part}_infer.onnx"


def picture(path: Path, box: Box, scale: int) -> Image.Image:
    """A part of a picture in a file, enlarged."""
    part = Image.open(path).convert("RGB").crop((box.left, box.top, box.right, box.bottom))
    return part.resize((part.width * scale, part.height * scale), Image.Resampling.LANCZOS)


def detector_input(image: Image.Image) -> Floats:
    """A picture as (1, 3, height, width), numbers from -1 to 1, filled up to the detector's steps with its own edge."""
    fill = [(0, -length % DETECTOR_STEP) for length in (image.height, image.width)]
    return _normalized(np.pad(np.asarray(image), (*fill, (0, 0)), mode="edge"))


def found_boxes(probabilities: Floats, image: Image.Image) -> list[Box]:
    """The lines in what the detector says of each pixel, (1, 1, height, width), from top to bottom."""
    text = probabilities[0, 0]
    labels = np.empty(text.shape, np.int32)
    ndimage.label(text > TEXT, output=labels)
    boxes = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        if text[labels == number].mean() < LINE:
            continue
        grown = round(height * width * GROWTH / (2 * (height + width)))
        left, top = max(columns.start - grown, 0), max(rows.start - grown, 0)
        right, bottom = min(columns.stop + grown, image.width), min(rows.stop + grown, image.height)
        boxes.append(Box(left, top, right, bottom))
    return sorted(boxes, key=lambda box: (round((box.top + box.bottom) / READER_HEIGHT), box.left))


def reader_input(image: Image.Image, box: Box) -> Floats:
    """A line as (1, 3, 48, width)."""
    line = image.crop((box.left, box.top, box.right, box.bottom))
    width = max(1, round(line.width * READER_HEIGHT / line.height))
    return _normalized(np.asarray(line.resize((width, READER_HEIGHT), Image.Resampling.BILINEAR)))


def alphabet(reader: Path) -> list[str]:
    """What each class of the reader stands for: nothing, one of the characters that its file lists, or a space."""
    (characters,) = (p.value for p in onnx.load(reader).metadata_props if p.key == "character")
    return ["", *characters.split("\n"), " "]


def decoded(classes: Floats, characters: Sequence[str]) -> str:
    """The text of (1, steps, classes): the likeliest class of each step, and of equal neighbours one (CTC)."""
    best = classes[0].argmax(axis=1)
    first = np.append(True, best[1:] != best[:-1])
    return "".join(characters[int(k)] for k in best[first])


def _normalized(pixels: NDArray[np.uint8]) -> Floats:
    return np.ascontiguousarray((pixels.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None])
