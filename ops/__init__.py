"""Operators: one file a family, with all steps of each operator; and what they share.

Importing this package registers them all.
"""

from . import (
    argreduce,
    binary,
    concatenate,
    conv,
    conv_transpose,
    creation,
    gather,
    global_pool,
    matmul,
    norm,
    pad,
    pool,
    reduce,
    repeat,
    reshape,
    select,
    slicing,
    space_depth,
    transpose,
    trilu,
    unary,
)

__all__ = [
    "argreduce",
    "binary",
    "concatenate",
    "conv",
    "conv_transpose",
    "creation",
    "gather",
    "global_pool",
    "matmul",
    "norm",
    "pad",
    "pool",
    "reduce",
    "repeat",
    "reshape",
    "select",
    "slicing",
    "space_depth",
    "transpose",
    "trilu",
    "unary",
]
