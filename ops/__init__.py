"""Operators: one file a family, with all steps of each operator; and what they share.

Importing this package registers them all.
"""

from . import (
    binary,
    concatenate,
    creation,
    gather,
    pad,
    repeat,
    reshape,
    slicing,
    space_depth,
    transpose,
    trilu,
    unary,
)

__all__ = [
    "binary",
    "concatenate",
    "creation",
    "gather",
    "pad",
    "repeat",
    "reshape",
    "slicing",
    "space_depth",
    "transpose",
    "trilu",
    "unary",
]
