"""Why the importer refuses something, as errors of its own: they tell the kind of a problem where all are listed."""

from __future__ import annotations

from ..base.errors import ModelError, TypeInferenceError


class UnknownValueError(ModelError):
    """A value or an extent would have to be known when the model is compiled."""


class UnknownLengthError(TypeInferenceError):
    """How many elements a value has would have to be known; the importer adds the node, and makes it an
    ``UnknownValueError``."""


class UnsupportedTypeError(ModelError):
    """An element type, or a kind of value, is not supported."""


class ConsequentError(ModelError):
    """A value is missing since something else was refused: no problem of its own."""


class RanksDifferError(ModelError):
    """The branches of a node, or the iterations of a loop and what is before it, give tensors of different ranks for a
    result."""


class MadeBytesError(ModelError):
    """Strings are of bytes that an iteration of a loop makes."""
