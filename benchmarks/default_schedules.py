"""The default schedule beside schedules by hand: ``python benchmarks/default_schedules.py [case …] [--rounds 9]``.

By hand means: the implementation that the operator's strategy chooses (elementwise: a schedule written here). By
default means: the plainest compute of the same operator, under ``lw.default_schedule``. One thread; the ratio of
medians is to stay below 3.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import nn, te
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of
from loopwright.runtime.contenders.rounds import Contender, Facts, Run, alternate, ended, serve

LIMIT = 3.0


def _elementwise(by_hand: bool, target: lw.Target):
    n, m = 1000, 1003
    A, B = (te.placeholder((n, m), "float32", name=x) for x in "AB")
    C = te.compute((n, m), lambda i, j: te.maximum(A[i, j] * B[i, j] + 0.5, 0.0), name="C")
    if not by_hand:
        return lw.default_schedule(C, target), [A, B, C]
    s = lw.create_schedule(C)
    fused = s[C].fuse(*s[C].loops)
    _, inner = s[C].split(fused, factor=target.lanes("float32"))
    s[C].vectorize(inner)
    return s, [A, B, C]


def _scaled(by_hand: bool, target: lw.Target):
    """``relu(x * scale + offset)``, of an image with a scale a channel."""
    channels, size = 128, 14
    x = te.placeholder((1, channels, size, size), name="x")
    scale, offset = (te.placeholder((channels,), name=name) for name in ("scale", "offset"))
    scaled = te.compute(x.shape, lambda n, c, i, j: x[n, c, i, j] * scale[c], name="scaled")
    moved = te.compute(x.shape, lambda n, c, i, j: scaled[n, c, i, j] + offset[c], name="moved")
    y = te.compute(x.shape, lambda *i: te.maximum(moved[i], 0.0), name="y")
    if not by_hand:
        return lw.default_schedule(y, target), [x, scale, offset, y]
    s = lw.create_schedule(y)
    s[scaled].compute_inline()
    s[moved].compute_inline()
    n, c, i, j = s[y].loops
    _, inner = s[y].split(s[y].fuse(i, j), factor=target.lanes("float32"))
    s[y].vectorize(inner)
    s[y].parallel(s[y].fuse(n, c))
    return s, [x, scale, offset, y]


def _operator(make: Callable[..., lw.Node], *shapes: tuple[int, ...]):
    """A case of an operator of the graph: its best implementation against its plainest one."""

    def case(by_hand: bool, target: lw.Target):
        call = make(*(lw.var(f"x{k}", shape) for k, shape in enumerate(shapes)))
        selection = select_implementation(call, CompileSettings(target))
        inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, name=f"x{k}") for k, a in enumerate(call.args))
        plainest = min((c.implementation for c in selection.candidates), key=lambda i: i.plevel)
        chosen = selection.chosen if by_hand else plainest
        computed = chosen.computed(call.op.name, call.attrs, inputs, call.type)
        outputs = outputs_of(computed)
        schedule = (
            chosen.schedule(call.attrs, computed, outputs, target) if by_hand else lw.default_schedule(outputs, target)
        )
        return schedule, [*inputs, *outputs]

    return case


CASES = {
    "elementwise": _elementwise,
    "scaled images": _scaled,
    "exp": _operator(nn.exp, (512, 512)),
    "sum of rows": _operator(lambda x: nn.sum(x, axes=[1]), (512, 1000)),
    "sum of columns": _operator(lambda x: nn.sum(x, axes=[0]), (1000, 512)),
    "sum of all": _operator(lambda x: nn.sum(x, axes=[0, 1]), (512, 1000)),
    "maximum of rows": _operator(lambda x: nn.max(x, axes=[1]), (1000, 64)),
    "matmul 512": _operator(nn.matmul, (512, 512), (512, 512)),
    "matmul 100×1001×99": _operator(nn.matmul, (100, 1001), (1001, 99)),
    "matrix by vector": _operator(nn.matmul, (512, 512), (512, 1)),
    "convolution 3×3": _operator(lambda x, w: nn.conv2d(x, w, padding=1), (1, 64, 28, 28), (64, 64, 3, 3)),
    "convolution 1×1": _operator(nn.conv2d, (1, 64, 28, 28), (128, 64, 1, 1)),
    "convolution 7×7/2": _operator(lambda x, w: nn.conv2d(x, w, strides=2, padding=3), (1, 3, 112, 112), (64, 3, 7, 7)),
    "softmax of rows": _operator(nn.softmax, (512, 1000)),
    "softmax of columns": _operator(lambda x: nn.softmax(x, axis=0), (1000, 512)),
    "layer norm": _operator(nn.layer_norm, (512, 768), (768,), (768,)),
}


def contender(case: str, by_hand: bool) -> tuple[Run, Facts]:
    target = lw.resolve_target("native")
    schedule, args = CASES[case](by_hand, target)
    kernel = lw.build(schedule, args, target=target)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(e) for e in t.shape], dtype=np.float32) for t in args]
    return kernel.bind(*arrays, threads=1), {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", default=[], help=f"one of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        serve(lambda case: contender(case, options.contender == "hand"))
        return
    pair = {kind: Contender([sys.executable, __file__, "--contender", kind]) for kind in ("hand", "default")}
    with ended(pair.values()):
        for case in options.case or CASES:
            for each in pair.values():
                each.load(case)
            alternate(pair, options.rounds)
            hand, default = pair["hand"].median, pair["default"].median
            ratio = default / hand
            verdict = "" if ratio <= LIMIT else f"  more than {LIMIT:g} times"
            print(f"{case:20} by hand {hand * 1e6:7.0f} µs, by default {default * 1e6:7.0f} µs: {ratio:5.2f}{verdict}")


if __name__ == "__main__":
    main()
