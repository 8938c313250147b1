"""Mistakes that are refused where an argument is first looked at: by dtypes, targets, expressions and operators."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ops import nn
from loopwright.ops.definition.registry import get_op
from loopwright.ops.families.einsum import EinsumAttrs
from loopwright.ops.families.fourier.fft import FftAttrs
from loopwright.ops.families.repeat import BroadcastToAttrs
from loopwright.ops.families.state_writes import AppendRowsAttrs
from loopwright.ops.gradients.backward import gradients

A = te.placeholder((8, 4), name="A")


def var(*shape, kind="float32", name="x"):
    return lw.var(name, shape, kind)


IMAGE, WEIGHT = var(1, 4, 8, 8), var(4, 4, 3, 3, name="weight")
WINOGRAD = var(1, 2, 8, 8, 8), var(2, 6, 6, 16, 8), var(2, 2, 3, 3, 8, 4)
OPEN_IMAGE = var(1, 4, te.var("height"), 8)


def fold(**options):
    r = te.reduce_axis((0, 4), name="r")
    return te.compute((8,), lambda i: te.sum(A[i, r], axis=r, **options), name="B")


def scanned(inits):
    state = te.scan_state((8, 4), name="state")
    first = [te.compute((1, 4), lambda t, i: A[0, i], name=f"first{k}") for k in range(inits)]
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + A[t, i], name="update")
    return te.scan(first, update, state)


def reads_what_is_not_given(ins, outs):
    ib = te.IRBuilder()
    other = te.extern((4,), [], lambda _, made: filled(te.IRBuilder(), made[0]), name="other", dtype="float32")
    ib.buffer_ptr(outs[0])[0] = ib.buffer_ptr(other.op.func.params[0])[0]
    return ib.get()


def filled(ib, buffer):
    ib.buffer_ptr(buffer)[0] = 1.0
    return ib.get()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: te.placeholder((4,), object), "<class 'object'> is no dtype: write its name, as 'float32'"),
        (lambda: te.placeholder((4,), "float32x4"), "a tensor's elements are scalars, not float32x4"),
        (lambda: te.max_value("index"), "index has no smallest and no largest value"),
        (lambda: fold(lanes=4, neighbours=1), "sum: neighbours is True or False, found 1"),
        (lambda: te.scan(3, A, A), "init, update and state are tensors, or sequences of tensors, found 3"),
        (lambda: scanned(2), "1 states, 2 inits and 1 updates: one each"),
        (lambda: te.extern((4,), [A], reads_what_is_not_given, name="E"), "the statement of E"),
    ],
)
def test_of_tensor_expressions(build, message):
    with pytest.raises(lw.ExpressionError, match=message):
        build()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("llvm -mcp=znver4", "'-mcp=znver4' is no option; there are -mtriple=, -mcpu=, -mattr=, -threads=, -libs="),
        ("llvm -threads=two", "-threads takes a number, not 'two'"),
        ("llvm -mattr=avx2", "write [+]avx2 or -avx2 in -mattr"),
    ],
)
def test_of_targets(line, message):
    with pytest.raises(lw.TargetError, match=message):
        lw.resolve_target(line)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.einsum(3, [var(2, 2)]), "the equation is text, as in 'ij,jk->ik', found 3"),
        (lambda: nn.arange(0, float("inf")), "arange: stop must be finite, found inf"),
        (lambda: nn.conv(IMAGE, WEIGHT, kernel_layout=3), "kernel_layout is text, as 'OIHW', found 3"),
        (lambda: nn.conv(IMAGE, WEIGHT, data_layout=3), "a layout is text, as 'NCHW', found 3"),
        (lambda: nn.col2im(var(1, 4, 8), (4, 4), (2, 2)), r"x has 8 windows, but the image \(4, 4\) has \(3, 3\)"),
        (
            lambda: nn.conv_transpose(OPEN_IMAGE, WEIGHT, output_shape=(8, 8)),
            r"output_shape needs known spatial extents, found float32\[1, 4, height, 8\]",
        ),
        (
            lambda: nn.resize(IMAGE, (4, 4), regions=[(0, 1, 2), (0, 1)]),
            r"a region has a begin and an end, found \(0, 1, 2\)",
        ),
        (
            lambda: nn.open_winograd_conv2d(*WINOGRAD, size=4, group=8, data_layout="NCHW8c"),
            r"weight must be float32\[2, 2, 3, 3, 8, 8\], as OIHW8i8o says",
        ),
        (lambda: nn.resize(IMAGE, (4, 4), mode=3), "modes are texts, found 3"),
        (lambda: nn.while_loop(lambda x: (x, x), lambda x: x, var(4)), "a condition is one bool, found 2 values"),
        (lambda: nn.tree_ensemble(var(4, 4), 3, np.zeros((2, 1)), 1), "tables should be what tree_tables makes"),
        (lambda: gradients(nn.topk(IMAGE, 2)[0], [IMAGE]), "a gradient goes through no tuples"),
    ],
)
def test_of_functions_of_operators(build, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        build()


@pytest.mark.parametrize(
    ("name", "arguments", "attrs", "message"),
    [
        ("add", [var(4), var(4)], 3, "add has no attributes, found 3"),
        ("append_rows", [var(4), var(4)], None, "append_rows needs its attributes as AppendRowsAttrs, found None"),
        ("append_rows", [var(4, 4), var(4)], AppendRowsAttrs(), "rows of rank 1 cannot follow those of"),
        ("box_indices", [var(4, 4), var(4)], None, r"chosen must be int32\[batch, classes, boxes\], found float32"),
        ("einsum", [var(2, 2)], EinsumAttrs(("ij", "jk"), "ik"), "the equation has 2 terms for 1 tensors"),
        ("nn.fft", [var(2, 8, 2), var(2, 8)], FftAttrs(9), "rows of 8 elements have no 9 results"),
        ("broadcast_to", [var(2, 2)], BroadcastToAttrs(("x0_0 +", 2)), "'x0_0 [+]' is no formula for an extent"),
    ],
)
def test_of_calls_by_hand(name, arguments, attrs, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        get_op(name)(*arguments, attrs=attrs)


def test_of_gradients_of_convolutions_in_groups():
    with pytest.raises(lw.TypeInferenceError, match="in groups, or with channels last,"):
        gradients(nn.conv(IMAGE, var(4, 2, 3, 3), groups=2), [IMAGE])


def test_of_functions_that_two_share_a_name():
    first, second = var(4), var(8, name="y")
    model = lw.Function([first, second], lw.op.Tuple((nn.sqrt(first), nn.sqrt(second))))
    with pytest.raises(lw.RuntimeArgumentError, match="several functions are called"):
        lw.function_schedules(model, "fused_sqrt")
