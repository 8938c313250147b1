"""The published pipelines in Halide, scheduled by its Adams2019 autoscheduler without measuring."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import halide as hl
from stencil_peers.halide_bilateral import bilateral_grid

from .computes import GAUSSIAN, GRAY, SOBEL
from .shapes import CHANNELS, INPUTS, MARGIN, OUTPUTS, SIZE, arrays_of

X, Y, C, N = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("n")
SCHEDULER = "Adams2019"


def _sum(terms: list[hl.Expr]) -> hl.Expr:
    return functools.reduce(lambda a, b: a + b, terms)


def blur(image: hl.ImageParam) -> hl.Func:
    across, output = hl.Func("blur_x"), hl.Func("blur_y")
    across[X, Y] = (image[X, Y] + image[X + 1, Y] + image[X + 2, Y]) / hl.u16(3)
    output[X, Y] = (across[X, Y] + across[X, Y + 1] + across[X, Y + 2]) / hl.u16(3)
    return output


def harris(image: hl.ImageParam) -> hl.Func:
    gray, dx, dy = hl.Func("gray"), hl.Func("dx"), hl.Func("dy")
    gray[X, Y] = _sum([image[X + MARGIN, Y + MARGIN, c] * hl.f32(w) for c, w in enumerate(GRAY)])
    dy[X, Y] = _sum([gray[X + a, Y + b] * hl.f32(w) for a, b, w in SOBEL])
    dx[X, Y] = _sum([gray[X + b, Y + a] * hl.f32(w) for a, b, w in SOBEL])

    def summed(a: hl.Func, b: hl.Func, name: str) -> hl.Func:
        product, window = hl.Func(f"{name}_product"), hl.Func(name)
        product[X, Y] = a[X, Y] * b[X, Y]
        window[X, Y] = _sum([product[X + i, Y + j] for j in (-1, 0, 1) for i in (-1, 0, 1)])
        return window

    xx, yy, xy = summed(dx, dx, "xx"), summed(dy, dy, "yy"), summed(dx, dy, "xy")
    det, trace, output = hl.Func("det"), hl.Func("trace"), hl.Func("corner")
    det[X, Y] = xx[X, Y] * yy[X, Y] - xy[X, Y] * xy[X, Y]
    trace[X, Y] = xx[X, Y] + yy[X, Y]
    output[X, Y] = det[X, Y] - hl.f32(0.04) * trace[X, Y] * trace[X, Y]
    return output


def unsharp(image: hl.ImageParam) -> hl.Func:
    edged = hl.BoundaryConditions.repeat_edge(image)
    gray, down, both, ratio, output = (hl.Func(name) for name in ("gray", "blur_y", "blur_x", "ratio", "output"))
    gray[X, Y] = _sum([edged[X, Y, c] * hl.f32(w) for c, w in enumerate(GRAY)])

    def windowed(at: Callable[[int], hl.Expr]) -> hl.Expr:
        return _sum([at(0) * hl.f32(GAUSSIAN[0]), *((at(-k) + at(k)) * hl.f32(GAUSSIAN[k]) for k in (1, 2, 3))])

    down[X, Y] = windowed(lambda k: gray[X, Y + k])
    both[X, Y] = windowed(lambda k: down[X + k, Y])
    ratio[X, Y] = (gray[X, Y] * hl.f32(2.0) - both[X, Y]) / gray[X, Y]
    output[X, Y, C] = ratio[X, Y] * image[X, Y, C]
    return output


def bilateral(image: hl.ImageParam) -> hl.Func:
    return bilateral_grid(hl.BoundaryConditions.repeat_edge(image), None)


def conv_layer(image: hl.ImageParam, weight: hl.ImageParam, bias: hl.ImageParam) -> hl.Func:
    r = hl.RDom([(0, CHANNELS), (0, 3), (0, 3)])
    conv, output = hl.Func("conv"), hl.Func("relu")
    conv[C, X, Y, N] = bias[C]
    conv[C, X, Y, N] += weight[C, r.y, r.z, r.x] * image[r.x, X + r.y, Y + r.z, N]
    output[C, X, Y, N] = hl.max(hl.f32(0.0), conv[C, X, Y, N])
    return output


def matmul(left: hl.ImageParam, right: hl.ImageParam) -> hl.Func:
    r = hl.RDom([(0, SIZE)])
    product, output = hl.Func("product"), hl.Func("output")
    product[X, Y] = hl.f32(0.0)
    product[X, Y] += left[r.x, Y] * right[X, r.x]
    output[X, Y] = product[X, Y]
    return output


PIPELINES: Mapping[str, Callable[..., hl.Func]] = dict(
    zip(INPUTS, (blur, harris, unsharp, bilateral, conv_layer, matmul), strict=True)
)
TYPES = {"uint16": hl.UInt(16), "float32": hl.Float(32)}


def prepare(name: str, threads: int) -> tuple[Callable[[], object], object]:
    """What to call, and the array that it fills."""
    os.environ["HL_NUM_THREADS"] = str(threads)
    hl.load_plugin(str(next(Path(hl.__file__).parent.glob(f"lib*/libautoschedule_{SCHEDULER.lower()}.*"))))
    params = [hl.ImageParam(TYPES[dtype], len(shape)) for dtype, shape in INPUTS[name]]
    output = PIPELINES[name](*params)
    for param, (_, shape) in zip(params, INPUTS[name], strict=True):
        param.set_estimates([(0, extent) for extent in reversed(shape)])
    output.set_estimates([(0, extent) for extent in reversed(OUTPUTS[name][1])])
    target = hl.get_host_target()
    pipeline = hl.Pipeline(output)
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(SCHEDULER, {"parallelism": str(threads)}))
    pipeline.compile_jit(target)
    arrays, result = arrays_of(name)
    buffers = [hl.Buffer(array) for array in arrays]
    for param, buffer in zip(params, buffers, strict=True):
        param.set(buffer)
    into = hl.Buffer(result)

    def run(_held: object = (arrays, buffers)) -> None:  # a Buffer does not keep its array alive
        pipeline.realize(into)

    return run, result
