"""The packed functions of models that decode images, by Pillow, which the extra ``images`` brings."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ...base.errors import RuntimeArgumentError
from ..arrays import Array
from .packed_functions import register_func

MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""What Pillow calls the forms of pixels."""


def image_extents(encoded: Array, extents: Array) -> None:
    """Fill ``extents`` with the height and the width of an image, whose file is ``encoded``."""
    image = _opened(encoded)
    extents[...] = image.height, image.width


def decode_image(_: Array, encoded: Array, pixels: Array, pixel_format: str) -> None:
    """Fill ``pixels``, [height, width, channels], with an image; the first argument tells its shape only."""
    image = _opened(encoded)
    try:
        decoded = np.asarray(image.convert(MODES[pixel_format]))
    except (OSError, ValueError) as error:
        raise RuntimeArgumentError(f"an image cannot be decoded: {error}") from None
    decoded = decoded.reshape(*decoded.shape[:2], -1)
    pixels[...] = decoded[..., ::-1] if pixel_format == "BGR" else decoded


def _opened(encoded: Array) -> Any:
    """The image, of which only the header has been read. Raises ``RuntimeArgumentError`` for what is none, and where
    there is no Pillow."""
    try:
        from PIL import Image  # the rest of the package works without it
    except ImportError:
        raise RuntimeArgumentError("decoding images needs Pillow: pip install 'loopwright[images]'") from None
    try:
        return Image.open(io.BytesIO(encoded.tobytes()))
    except (OSError, ValueError) as error:
        raise RuntimeArgumentError(f"an image cannot be decoded: {error}") from None


register_func("loopwright.image_extents", image_extents)
register_func("loopwright.decode_image", decode_image)
