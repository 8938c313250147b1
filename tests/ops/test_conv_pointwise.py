"""Pointwise convolutions whose weights stand in panels of filters: values against slow numpy, who takes them, the code
of the inner loop."""

import re

import numpy as np
import pytest
import windows

import loopwright as lw
from loopwright.compiler.layout.layout_planning import plan_layouts
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.conv.conv import conv, conv2d

rng = np.random.default_rng(0)
TARGET = "x86-64-v3"
# x, weight, strides, groups, layouts of x, weight and result
CASES = {
    "a last tile of less than a vector": ((2, 6, 13, 13), (12, 6, 1, 1, 8), 1, 1, "NCHW OIHW8o NCHW"),
    "an odd number of channels": ((1, 7, 8, 8), (5, 7, 1, 1, 8), 1, 1, "NCHW OIHW8o NCHW"),
    "many positions": ((1, 4, 40, 43), (5, 4, 1, 1, 8), 1, 1, "NCHW OIHW8o NCHW"),
    "few filters": ((1, 10, 9, 20), (2, 10, 1, 1, 6), 1, 1, "NCHW OIHW6o NCHW"),
    "one position": ((3, 10, 1, 1), (2, 10, 1, 1, 8), 1, 1, "NCHW OIHW8o NCHW"),
    "packed by each task for a few panels": ((1, 6, 13, 13), (4, 6, 1, 1, 8), 1, 1, "NCHW OIHW8o NCHW"),
    "strided": ((1, 8, 15, 14), (8, 8, 1, 1, 4), 2, 1, "NCHW OIHW4o NCHW"),
    "grouped": ((2, 12, 7, 9), (10, 6, 1, 1, 4), 1, 2, "NCHW OIHW4o NCHW"),
    "one axis": ((2, 8, 100), (4, 8, 1, 8), 1, 1, "NCW OIW8o NCW"),
    "three axes": ((1, 4, 3, 4, 5), (5, 4, 1, 1, 1, 8), 1, 1, "NCDHW OIDHW8o NCDHW"),
}


def attributes(strides, groups, layouts):
    data, kernel, out = layouts.split()
    return {
        "strides": strides,
        "groups": groups,
        "data_layout": data,
        "kernel_layout": kernel,
        "out_layout": out,
    }


@pytest.mark.parametrize("case", CASES)
def test_panels_of_filters_are_right_native(ops, case):
    x, w, strides, groups, layouts = CASES[case]
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    rank = len(layouts.split()[0]) - 2
    call = conv(ops.var(x), ops.var(w), **attributes(strides, groups, layouts))
    assert (
        select_implementation(call, CompileSettings(lw.resolve_target(TARGET))).chosen.name == "conv.pointwise_packed"
    )
    found = ops.apply(conv, a, b, native=True, target=TARGET, **attributes(strides, groups, layouts))
    ones = (1,) * rank
    wanted = windows.conv_in(a, b, (strides,) * rank, (0,) * 2 * rank, ones, groups, layouts.split())
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_an_unknown_number_of_images_is_served():
    n = lw.te.var("n")
    w = rng.normal(size=(32, 8, 1, 1)).astype(np.float32)
    x = lw.var("x", (n, 8, 13, 13))
    library = lw.compile(lw.Function([x], lw.nn.relu(conv2d(x, lw.const(w)))))
    a = rng.normal(size=(3, 8, 13, 13)).astype(np.float32)
    (found,) = lw.Engine(library)([a])
    wanted = windows.conv(a, w, (1, 1), (0,) * 4, (1, 1), 1)
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


def test_a_constant_weight_is_put_in_panels_and_what_follows_is_computed_on_the_tile():
    x, other = lw.var("x", (1, 64, 14, 14)), lw.var("y", (1, 128, 14, 14))
    w, bias = (rng.normal(size=s).astype(np.float32) for s in ((128, 64, 1, 1), (128, 1, 1)))
    body = lw.nn.relu(lw.nn.add(lw.nn.add(conv2d(x, lw.const(w)), lw.const(bias)), other))
    library = lw.compile(lw.Function([x, other], body))
    assert [f.name for f in library.functions] == ["fused_nn_conv2d_add_add_relu"]
    a, b = (rng.normal(size=(1, c, 14, 14)).astype(np.float32) for c in (64, 128))
    wanted = windows.conv(a, w, (1, 1), (0,) * 4, (1, 1), 1) + bias + b
    (found,) = lw.Engine(library)([a, b])
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_the_planner_puts_constant_weights_in_panels_that_fill_the_registers(target):
    x = lw.var("x", (1, 64, 28, 28))
    f = lw.Function([x], conv2d(x, lw.const(rng.normal(size=(96, 64, 1, 1)).astype(np.float32))))
    made = lw.resolve_target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={target}")
    planned = plan_layouts(f, CompileSettings(made)).function.body
    assert planned.attrs.out_layout in ("", "NCHW")
    rows = planned.attrs.kernel.factor("O")
    assert rows > 1
    assert 96 % rows == 0
    assert select_implementation(planned, CompileSettings(made)).chosen.name == "conv.pointwise_packed"


@pytest.mark.parametrize(("filters", "loops"), [(32, [4]), (256, [256, 8])])
def test_few_panels_of_filters_go_with_tiles_one_by_one_and_many_share_the_vectors_equally(filters, loops):
    """Threads have as much to do as each other: tiles of three vectors of the eleven, or panels for all of them."""
    x = lw.var("x", (1, 256, 13, 13))
    w = lw.const(rng.normal(size=(filters // 8, 256, 1, 1, 8)).astype(np.float32))
    call = conv2d(x, w, **attributes(1, 1, "NCHW OIHW8o NCHW"))
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4")
    text = lw.compile(lw.Function([x], call), target=target).functions[0].loop_ir
    assert [int(extent) for extent in re.findall(r"parallel\((\d+)\)", text)] == loops


@pytest.mark.parametrize(
    ("x", "w", "groups", "layouts"),
    [
        ((1, 8, 4, 4), (2, 8, 3, 3, 8), 1, "NCHW OIHW8o NCHW"),
        ((1, 8, 4, 4), (1, 4, 1, 1, 8), 2, "NCHW OIHW8o NCHW"),
        ((1, 4, 4, 8), (2, 8, 1, 1, 8), 1, "NHWC OIHW8o NHWC"),
        ((1, 8, 4, 4), (2, 1, 1, 1, 8, 8), 1, "NCHW OIHW8i8o NCHW"),
        ((1, 8, 4, 4), (1, 8, 1, 1, 36), 1, "NCHW OIHW36o NCHW"),  # more sums than there are registers
    ],
)
def test_other_windows_and_layouts_are_left_to_the_definition(ops, x, w, groups, layouts):
    call = conv2d(ops.var(x), ops.var(w), **attributes(1, groups, layouts))
    target = lw.resolve_target("x86-64-v4")  # where 8 filters fill no vector, which would make it a matter of others
    assert select_implementation(call, CompileSettings(target)).chosen.name == "conv.direct"


def test_the_inner_loop_spills_nothing():
    """24 sums, three vectors and a weight: 24 multiply-adds and 8 broadcasts a step, of which there are two."""
    target = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4")
    x, w = lw.te.placeholder((1, 64, 28, 28), name="x"), lw.te.placeholder((8, 64, 1, 1, 8), name="w")
    layouts = attributes(1, 1, "NCHW OIHW8o NCHW")
    call = conv2d(lw.var("x", (1, 64, 28, 28)), lw.var("w", (8, 64, 1, 1, 8)), **layouts)
    chosen = select_implementation(call, CompileSettings(target)).chosen
    computed = chosen.computed(call.op.name, call.attrs, (x, w), call.type)
    (y,) = outputs_of(computed)
    kernel = lw.build(chosen.schedule(call.attrs, computed, (y,), target), [x, w, y], target=target)
    loop = max(kernel.assembly.split(".LBB"), key=lambda block: block.count("vfmadd"))
    assert loop.count("vfmadd") == 2 * 24
    assert loop.count("vbroadcastss") == 2 * 8
    assert "(%rsp)" not in loop
