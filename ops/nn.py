"""What graphs are built with by hand: the functions that make calls, of all families. ``lw.nn`` is this module.

Given tensors of ``te`` in place of nodes, they give the tensors of the operators' definitions.
"""

import sys as _sys

from .definition.nn_module import OperatorModule as _OperatorModule
from .definition.nn_module import tell_of_parameters as _tell_of_parameters
from .families.argreduce import argmax, argmin
from .families.attention.attention import attention
from .families.binary import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    prelu,
    right_shift,
    subtract,
)
from .families.branch import cond
from .families.byte_table import byte_table
from .families.cast import bitcast, cast
from .families.col2im import col2im
from .families.concatenate import concatenate
from .families.conv.conv import conv, conv1d, conv2d, conv3d
from .families.conv.open_winograd import open_winograd_conv2d
from .families.conv.strassen import strassen_conv2d
from .families.conv.transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose, conv_transpose
from .families.conv.winograd import winograd_conv2d
from .families.coupling import coupled_probabilities
from .families.creation import arange, full, one_hot
from .families.cumsum import cumprod, cumsum
from .families.det import det
from .families.einsum import einsum
from .families.experts import expert_dense
from .families.extern import extern
from .families.fourier.complex_product import complex_multiply
from .families.fourier.dft import dft
from .families.fourier.fft import fft
from .families.fourier.frames import frames
from .families.gather import gather_elements, gather_nd, take
from .families.global_pool import global_avg_pool, global_lp_pool, global_max_pool
from .families.grid_sample import grid_sample
from .families.layout_transform import layout_transform
from .families.loops import for_loop, scan, while_loop
from .families.lp_normalize import lp_normalize
from .families.lrn import lrn
from .families.matmul.batch_matmul import batch_matmul
from .families.matmul.blockwise import blockwise_dense
from .families.matmul.matmul import dense, matmul
from .families.matmul.packed import packed_matmul
from .families.matmul.packed_blockwise import packed_blockwise
from .families.matmul.packed_bytes import packed_byte_matmul
from .families.matmul.packed_pairs import packed_pair_matmul
from .families.matmul.strassen import strassen_matmul
from .families.max_roi_pool import max_roi_pool
from .families.nms import non_max_suppression
from .families.nonzero import nonzero
from .families.norm import batch_norm, instance_norm, layer_norm, rms_norm
from .families.pad import pad
from .families.parametric import (
    celu,
    clip,
    elu,
    gelu,
    hard_sigmoid,
    isinf,
    leaky_relu,
    selu,
    shrink,
    swish,
    thresholded_relu,
)
from .families.pool import avg_pool, lp_pool, max_pool, max_pool_with_indices
from .families.quantize import dequantize, quantize
from .families.recurrent.gru import gru
from .families.recurrent.lstm import lstm
from .families.recurrent.rnn import rnn
from .families.reduce import all, any, l1, l2, log_sum, log_sum_exp, max, mean, min, prod, sum, sum_square
from .families.repeat import broadcast_to, repeat, tile
from .families.reshape import expand_dims, flatten, reshape, squeeze
from .families.resize import resize
from .families.reverse_sequence import reverse_sequence
from .families.roi import roi_align
from .families.scatter import scatter_elements, scatter_nd, tensor_scatter
from .families.select import clip_by, where
from .families.slicing import split, strided_slice
from .families.softmax import log_softmax, softmax
from .families.space_depth import depth_to_space, space_to_depth
from .families.topk import topk
from .families.transpose import transpose
from .families.tree_ensemble import tree_ensemble
from .families.trilu import trilu
from .families.unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    hard_swish,
    identity,
    isfinite,
    isnan,
    log,
    logical_not,
    mish,
    negative,
    reciprocal,
    relu,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    softplus,
    softsign,
    sqrt,
    tan,
    tanh,
    trunc,
)
from .families.unique import unique
from .numpy_api.on_tensors import on_tensors as _on_tensors

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "attention",
    "avg_pool",
    "batch_matmul",
    "batch_norm",
    "bitcast",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "blockwise_dense",
    "broadcast_to",
    "byte_table",
    "cast",
    "ceil",
    "celu",
    "clip",
    "clip_by",
    "col2im",
    "complex_multiply",
    "concatenate",
    "cond",
    "conv",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "cos",
    "cosh",
    "coupled_probabilities",
    "cumprod",
    "cumsum",
    "dense",
    "depth_to_space",
    "dequantize",
    "det",
    "dft",
    "divide",
    "einsum",
    "elu",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "expert_dense",
    "extern",
    "fft",
    "flatten",
    "floor",
    "for_loop",
    "frames",
    "full",
    "gather_elements",
    "gather_nd",
    "gelu",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "greater",
    "greater_equal",
    "grid_sample",
    "gru",
    "hard_sigmoid",
    "hard_swish",
    "identity",
    "instance_norm",
    "isfinite",
    "isinf",
    "isnan",
    "l1",
    "l2",
    "layer_norm",
    "layout_transform",
    "leaky_relu",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log_softmax",
    "log_sum",
    "log_sum_exp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lp_normalize",
    "lp_pool",
    "lrn",
    "lstm",
    "matmul",
    "max",
    "max_pool",
    "max_pool_with_indices",
    "max_roi_pool",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mish",
    "mod",
    "multiply",
    "negative",
    "non_max_suppression",
    "nonzero",
    "not_equal",
    "one_hot",
    "open_winograd_conv2d",
    "packed_blockwise",
    "packed_byte_matmul",
    "packed_matmul",
    "packed_pair_matmul",
    "pad",
    "power",
    "prelu",
    "prod",
    "quantize",
    "reciprocal",
    "relu",
    "repeat",
    "reshape",
    "resize",
    "reverse_sequence",
    "right_shift",
    "rms_norm",
    "rnn",
    "roi_align",
    "round",
    "rsqrt",
    "scan",
    "scatter_elements",
    "scatter_nd",
    "selu",
    "shrink",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "softsign",
    "space_to_depth",
    "split",
    "sqrt",
    "squeeze",
    "strassen_conv2d",
    "strassen_matmul",
    "strided_slice",
    "subtract",
    "sum",
    "sum_square",
    "swish",
    "take",
    "tan",
    "tanh",
    "tensor_scatter",
    "thresholded_relu",
    "tile",
    "topk",
    "transpose",
    "tree_ensemble",
    "trilu",
    "trunc",
    "unique",
    "where",
    "while_loop",
    "winograd_conv2d",
]

globals().update({name: _on_tensors(globals()[name]) for name in __all__})
_this = _sys.modules[__name__]
_this.__class__ = _OperatorModule
_tell_of_parameters(_this)
