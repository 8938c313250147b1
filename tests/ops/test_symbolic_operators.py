"""Operators on symbolic extents: the interpreter agrees with numpy on the schedules that are chosen without knowing
them, or the operator says what it must know. One operator stands for all that share a type relation."""

import numpy as np
import pytest
from test_every_operator import CASES, exact, same

import loopwright as lw
from loopwright import te
from loopwright.compiler.fusion.closed_function import as_function
from loopwright.compiler.fusion.partition import partition
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.passes.constraints import settle_dimensions
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.types import TupleType
from loopwright.ops.definition.registry import get_op

TARGET = lw.resolve_target("x86-64-v3")
NEED_NUMBERS = {
    "byte_table": "an element for each of 256 bytes",
    "col2im": "axis 1 of x must be known",
    "complex_multiply": "x must be floats […, n, 1] or pairs […, n, 2]".replace("[", r"\["),
    "count_pieces": "must be of int32 and have 256 columns",
    "gather_nd": "the last axis of indices must be known",
    "grid_sample": "must have a coordinate for each axis",
    "ngram_counts": "as long as a power of two",
    "nn.attention": "the size of heads is not known, so give scale",
    "nn.blockwise_dense": "the extents of codes must be known",
    "nn.conv1d": "known extents",
    "nn.conv1d_transpose": "known extents",
    "nn.conv2d": "known extents",
    "nn.conv2d_transpose": "known extents",
    "nn.conv3d": "known extents",
    "nn.conv3d_transpose": "known extents",
    "nn.fft": "the length of the rows of x must be known",
    "nn.gru_steps": "with known extents",
    "nn.lstm_steps": "with known extents",
    "nn.max_roi_pool": "a matrix with 5 columns",
    "nn.masked_attention": "the size of heads is not known, so give scale",
    "nn.open_fft": r"roots must be \[2, elements\]",
    "nn.open_winograd_conv2d": "has blocks of 2c",
    "nn.packed_blockwise": "columns do not fill",
    "nn.packed_byte_matmul": "columns do not fill",
    "nn.packed_matmul": "columns do not fill",
    "nn.packed_pair_matmul": "columns do not fill",
    "nn.peephole_lstm_steps": "with known extents",
    "nn.resample": "the first axis of indices, how many are summed, must be known",
    "nn.reset_after_gru_steps": "with known extents",
    "nn.roi_align": "a matrix with 4 columns",
    "nn.rnn_steps": "with known extents",
    "nn.strassen_conv2d": "all known, not 0",
    "nn.strassen_matmul": "all known, not 0",
    "nn.tree_ensemble": "must be of int32 and have three columns",
    "nn.winograd_conv2d": "has blocks of 2c",
    "reshape": "do not fill the shape",
    "scatter_nd": "the last axis of indices must be known",
    "string_case": "table must be a vector of",
    "string_index": "as long as a power of two",
    "string_matches": "must be of int32 and have 256 columns",
    "string_pieces": "must be of int32 and have 256 columns",
}
"""What operators say where not even the extents of their weights are known."""


def function_of(make, arrays):
    """The operator on tensors all of whose extents above 1 are symbolic, the same symbol for the same number."""
    symbols = {}
    params = []
    for k, a in enumerate(arrays):
        shape = [symbols.setdefault(n, te.var(f"s{n}")) if n > 1 else n for n in a.shape]
        params.append(lw.var(f"x{k}", shape, a.dtype.name))
    return settle_dimensions(lw.Function(params, make(*params)))


NO_KERNEL_OF_ALL = {"assume_extent", "born_extents", "scatter_elements"}
"""The first is gone once dimensions are settled, the second makes dimensions of the values of a constant, and the case
of the third has fewer rows of indices than of data, where open ones have to be equal."""
FAMILIES = {get_op(name).relation.__code__: name for name in sorted(set(CASES) - set(NEED_NUMBERS) - NO_KERNEL_OF_ALL)}


@pytest.mark.parametrize("name", sorted(FAMILIES.values()))
def test_the_interpreter_agrees_with_numpy_where_no_extent_is_known(name):
    make, oracle, *arrays = CASES[name][0]
    arrays = [np.asarray(a) for a in arrays]
    function = function_of(make, arrays)
    kind = function.body.type
    wanted = oracle(*map(exact, arrays))
    wanted, kinds = (wanted, kind.fields) if isinstance(kind, TupleType) else ((wanted,), (kind,))
    results = [np.zeros(np.shape(w), k.dtype.to_numpy()) for w, k in zip(wanted, kinds, strict=True)]
    (group,) = partition(function)
    func, *_ = lower_function(as_function(group)[0], CompileSettings(TARGET), "main")
    lw.interpret(func)(*arrays, *results)
    for found, expected in zip(results, wanted, strict=True):
        same(found, expected)


@pytest.mark.parametrize("name", sorted(NEED_NUMBERS))
def test_operators_that_need_numbers_say_so(name):
    make, _, *arrays = CASES[name][0]
    with pytest.raises((lw.TypeInferenceError, lw.ModelError), match=NEED_NUMBERS[name]):
        function_of(make, [np.asarray(a) for a in arrays])
