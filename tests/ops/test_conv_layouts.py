"""Convolutions of data whose channels or batch stand last, and depthwise ones: which implementation serves, values,
what is fused with them, symbolic extents, and their code."""

import re

import numpy as np
import pytest
import windows

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.conv.conv import conv

rng = np.random.default_rng(0)
# x, weight, the layouts of x, the weight and the result; strides, padding, dilation, groups
IN_LAYOUTS = {
    "channels last": ((2, 7, 6, 5), (3, 2, 5, 9), "NHWC HWIO NHWC", (1, 2), (1, 0, 2, 1), (1, 1), 1),
    "channels last, filters first": ((1, 5, 6, 4), (6, 4, 3, 3), "NHWC OIHW NHWC", (1, 1), (1,) * 4, (1, 1), 1),
    "channels last, to first": ((1, 5, 6, 4), (1, 1, 4, 6), "NHWC HWIO NCHW", (1, 1), (0,) * 4, (1, 1), 1),
    "channels last, grouped": ((1, 6, 5, 4), (2, 2, 2, 6), "NHWC HWIO NHWC", (1, 1), (0,) * 4, (2, 1), 2),
    "batch last": ((6, 7, 3, 5), (3, 3, 3, 4), "HWCN HWIO HWCN", (2, 1), (1,) * 4, (1, 1), 1),
    "channels last, depthwise": ((2, 7, 10, 19), (3, 3, 1, 19), "NHWC HWIO NHWC", (1, 1), (1,) * 4, (1, 1), 19),
    "depthwise, filters first": ((1, 7, 9, 5), (5, 1, 3, 2), "NHWC OIHW NHWC", (2, 2), (1, 0, 1, 1), (1, 1), 5),
    "channels last, multiplied": ((1, 5, 5, 4), (3, 3, 1, 8), "NHWC HWIO NHWC", (1, 1), (1,) * 4, (1, 1), 4),
    "depthwise, filters last": ((1, 5, 7, 9), (3, 3, 5, 1), "NCHW HWOI NCHW", (1, 1), (1,) * 4, (1, 1), 5),
    "depthwise, 1d": ((2, 9, 5), (3, 1, 5), "NWC WIO NWC", (1,), (1, 0), (2,), 5),
    "batch last, grouped": ((6, 5, 4, 19), (2, 2, 2, 6), "HWCN HWIO HWCN", (1, 1), (0, 1, 1, 0), (1, 1), 2),
    "batch last, filters first": ((3, 4, 2, 17), (5, 2, 1, 1), "HWCN OIHW HWCN", (1, 1), (0,) * 4, (1, 1), 1),
    "channels last, groups of vectors": ((1, 5, 9, 4), (2, 2, 2, 64), "NHWC HWIO NHWC", (1, 1), (1, 0) * 2, (1, 1), 2),
    "in blocks": ((2, 2, 6, 5, 4), (2, 2, 3, 3, 4, 8), "NCHW4c OIHW4i8o NCHW8c", (1, 1), (1,) * 4, (1, 1), 1),
    "1d": ((2, 9, 3), (3, 3, 4), "NWC WIO NWC", (2,), (1, 1), (1,), 1),
    "1d, batch last": ((9, 3, 16), (3, 3, 4), "WCN WIO WCN", (2,), (1, 1), (1,), 1),
    "3d": ((1, 3, 4, 5, 2), (2, 2, 3, 2, 5), "NDHWC DHWIO NDHWC", (1, 2, 1), (0, 1) * 3, (1, 1, 1), 1),
}


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("case", IN_LAYOUTS)
def test_convolutions_are_right_in_other_layouts(ops, case, native):
    x, w, layouts, strides, padding, dilation, groups = IN_LAYOUTS[case]
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    data, kernel, out = layouts.split()
    options = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    named = {"data_layout": data, "kernel_layout": kernel, "out_layout": out}
    found = ops.apply(conv, a, b, native=native, **options, **named)
    wanted = windows.conv_in(a, b, strides, padding, dilation, groups, (data, kernel, out))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


TARGETS = {name: lw.resolve_target(name) for name in ("x86-64", "x86-64-v3", "x86-64-v4")}
# x, weight, the layouts of x, the weight and the result, groups; which implementation serves, which not for fewer
CHOSEN = [
    ((1, 8, 8, 16), (3, 3, 16, 32), "NHWC HWIO NHWC", 1, "conv.channels_last"),
    ((1, 8, 8, 16), (3, 3, 16, 32), "NHWC HWIO NCHW", 1, "conv.direct"),
    ((1, 8, 8, 16), (3, 3, 8, 10), "NHWC HWIO NHWC", 2, "conv.direct"),
    ((1, 8, 8, 16), (3, 3, 8, 12), "NHWC HWIO NHWC", 2, "conv.channels_last"),
    ((1, 8, 8, 16), (3, 3, 1, 16), "NHWC HWIO NHWC", 16, "conv.depthwise_channels_last"),
    ((8, 8, 16, 64), (3, 3, 16, 32), "HWCN HWIO HWCN", 1, "conv.batch_last"),
    ((8, 8, 16, 1), (3, 3, 16, 32), "HWCN HWIO HWCN", 1, "conv.direct"),
    ((1, 16, 8, 8), (32, 1, 3, 3), "NCHW OIHW NCHW", 16, "conv.depthwise"),
    ((1, 16, 8, 8), (16, 2, 3, 3), "NCHW OIHW NCHW", 8, "conv.shifted"),
]


def options(layouts, **rest):
    data, kernel, out = layouts.split()
    return {"data_layout": data, "kernel_layout": kernel, "out_layout": out, **rest}


@pytest.mark.parametrize(("x", "w", "layouts", "groups", "name"), CHOSEN)
def test_which_implementation_serves(ops, x, w, layouts, groups, name):
    call = conv(ops.var(x), ops.var(w), groups=groups, **options(layouts))
    for target in TARGETS.values():
        assert select_implementation(call, CompileSettings(target)).chosen.name == name


# x, weight, strides, groups, layouts: of 3x3 windows, and 1x1
MODELS = {
    "channels last": ((1, 9, 8, 5), (3, 3, 5, 19), 1, 1, "NHWC HWIO NHWC"),
    "channels last, pointwise": ((2, 5, 7, 9), (1, 1, 9, 40), 1, 1, "NHWC HWIO NHWC"),
    "channels last, depthwise": ((1, 9, 8, 19), (3, 3, 1, 19), 2, 19, "NHWC HWIO NHWC"),
    "batch last": ((7, 6, 5, 18), (3, 3, 5, 7), 1, 1, "HWCN HWIO HWCN"),
}


@pytest.mark.parametrize("precision", ["strict", "standard"])
@pytest.mark.parametrize("case", MODELS)
def test_what_follows_is_fused_and_right_in_any_precision(case, precision):
    x, w, strides, groups, layouts = MODELS[case]
    pad = w[0] // 2
    call = conv(lw.var("x", x), lw.var("w", w), strides, pad, groups=groups, **options(layouts))
    residual = lw.var("r", call.type.static_shape)
    bias = (w[-1], 1) if layouts.startswith("HWCN") else (w[-1],)
    body = lw.nn.relu(lw.nn.add(lw.nn.add(call, lw.var("b", bias)), residual))
    parameters = [*call.args, body.args[0].args[0].args[1], residual]
    library = lw.compile(lw.Function(parameters, body), precision=precision)
    assert [f.name for f in library.functions] == ["fused_nn_conv2d_add_add_relu"]
    arrays = [rng.normal(size=v.type.static_shape).astype(np.float32) for v in parameters]
    sums = windows.conv_in(*arrays[:2], (strides,) * 2, (pad,) * 4, (1, 1), groups, layouts.split())
    (found,) = lw.Engine(library)(arrays)
    np.testing.assert_allclose(found, np.maximum(sums + arrays[2] + arrays[3], 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("window", "strides", "padding"), [(1, 1, 0), (3, 1, 1), (3, 2, 0), (1, 2, 0)])
def test_batch_and_spatial_extents_may_be_symbolic(ops, window, strides, padding):
    x, w = ops.var((te.var("n"), te.var("h"), te.var("w"), 5)), ops.var((window, window, 5, 9))
    call = conv(x, w, strides, padding, **options("NHWC HWIO NHWC"))
    assert (
        select_implementation(call, CompileSettings(lw.resolve_target("x86-64-v3"))).chosen.name == "conv.channels_last"
    )
    b = rng.normal(size=(window, window, 5, 9)).astype(np.float32)
    a = rng.normal(size=(2, 4, 9, 5)).astype(np.float32)
    wanted = windows.conv_in(a, b, (strides,) * 2, (padding,) * 4, (1, 1), 1, ("NHWC", "HWIO", "NHWC"))
    found = ops.evaluate(call, {x: a, w: b}, native=True, target="x86-64-v3")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


VECTORS = [
    ((1, 14, 14, 32), (3, 3, 1, 32), "NHWC HWIO NHWC", 1, 32),
    ((1, 14, 14, 32), (3, 3, 1, 32), "NHWC HWIO NHWC", 2, 32),
    ((1, 8, 32, 32), (8, 1, 3, 3), "NCHW OIHW NCHW", 1, 8),
    ((1, 8, 32, 32), (8, 1, 3, 3), "NCHW OIHW NCHW", 2, 8),
    ((1, 14, 14, 16), (3, 3, 16, 32), "NHWC HWIO NHWC", 1, 1),
    ((6, 6, 8, 32), (3, 3, 8, 6), "HWCN HWIO HWCN", 1, 1),
]


@pytest.mark.parametrize(("x", "w", "layouts", "strides", "groups"), VECTORS)
def test_sums_are_of_vectors_without_gathers(ops, x, w, layouts, strides, groups):
    target = TARGETS["x86-64-v3"]
    call = conv(ops.var(x), ops.var(w), strides, 1, groups=groups, **options(layouts))
    chosen, tensors, computed = ops.implement(call, target)
    outputs = outputs_of(computed)
    schedule = chosen.schedule(call.attrs, computed, outputs, target)
    assembly = lw.build(schedule, [*tensors, *outputs], target=target).assembly
    assert len(re.findall(r"vfmadd\d+ps", assembly)) >= 4
    assert not re.search(r"vfmadd\d+ss|vgather", assembly)
