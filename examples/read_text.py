"""Text is read from a picture by two trained models as they come out of a package, with all of their dimensions open.

The picture is one of the documentation: a table of times, of which each line has another width.
"""

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from support import ocr
from support.peers import in_onnxruntime
from support.showing import compare_times, heading

import loopwright as lw

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "explorer-product.png"
TABLE, SCALE = ocr.Box(0, 80, 480, 240), 2
TOLERANCE = 1e-4


def checked(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities that two libraries agree in."""
    np.testing.assert_allclose(ours, theirs, atol=TOLERANCE)
    return ours


heading("Text in a picture: two trained models with open shapes")
detector_file, reader_file = map(ocr.model_file, ("det", "rec"))
if detector_file is None or reader_file is None:
    print("left out: the models come with the package rapidocr-onnxruntime, which is for Python before 3.13")
    sys.exit()
begin = time.perf_counter()
detector, reader = (lw.Engine(lw.compile(file), threads=1) for file in (detector_file, reader_file))
print(f"Both compiled once, for pictures of any size, in {time.perf_counter() - begin:.1f} s.\n")
their_detector, their_reader = map(in_onnxruntime, (detector_file, reader_file))

image = ocr.picture(PICTURE, TABLE, SCALE)
whole = ocr.detector_input(image)
boxes = ocr.found_boxes(checked(detector(whole)[0], their_detector(whole)), image)
lines = [ocr.reader_input(image, box) for box in boxes]
characters = ocr.alphabet(reader_file)
words = [ocr.decoded(checked(reader(line)[0], their_reader(line)), characters) for line in lines]

print(f"{'text':20}   left    top  width  height")
for box, word in zip(boxes, words, strict=True):
    if word:
        print(f"{word:20} {box.left:6} {box.top:6} {box.right - box.left:6} {box.bottom - box.top:7}")

print(f"\nOne picture of {image.width}×{image.height}, and its {len(lines)} lines of text, on one thread each:")
compare_times(
    {
        "loopwright": lambda: [detector(whole), *map(reader, lines)],
        "onnxruntime": lambda: [their_detector(whole), *map(their_reader, lines)],
    }
)
