"""Schedules that fit any compute, and the check that a kernel agrees with the interpreter and with numpy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.te import ComputeOp

TARGETS = ("x86-64", "x86-64-v3", "native")
HERE = [target for target in TARGETS if lw.resolve_target(target).features <= lw.resolve_target("native").features]


def naive(outputs):
    return lw.create_schedule(outputs)


def computed(s):
    return [stage for stage in s.stages if isinstance(stage.op, ComputeOp)]


def spatial_loops(stage):
    return list(stage.loops)[: len(stage.op.axis)]


def guarded(outputs):
    """Vectors of 4 with a guarded tail under a parallel loop, in every stage."""
    s = lw.create_schedule(outputs)
    for stage in computed(s):
        loops = spatial_loops(stage)
        if loops:
            outer, inner = stage.split(loops[-1], factor=4)
            stage.reorder(*loops[:-1], outer, *stage.loops[len(loops) + 1 :], inner)
            stage.vectorize(inner)
            stage.parallel(loops[0] if len(loops) > 1 else outer)
    return s


def unrolled(outputs):
    """Loops fused and unrolled by 3, the tail guarded; reductions split by 2, the parts unrolled."""
    s = lw.create_schedule(outputs)
    for stage in computed(s):
        loops = spatial_loops(stage)
        if loops:
            _, inner = stage.split(stage.fuse(*loops), factor=3)
            stage.unroll(inner)
        for axis in stage.op.reduce_axis:
            _, inner = stage.split(axis, factor=2)
            stage.unroll(inner)
    return s


def cached(outputs):
    """Tiles of the last output computed in memory of their own, from copies of what they read."""
    s = lw.create_schedule(outputs)
    last = computed(s)[-1].op.outputs[0]
    if not last.shape:
        return s
    inside = s.cache_write(last, "local")
    loops = spatial_loops(s[last])
    outer, _ = s[last].split(loops[-1], nparts=2)
    s[inside].compute_at(s[last], outer)
    for tensor in s[inside].op.inputs:
        copy = s.cache_read(tensor, "global", [inside])
        s[copy].compute_at(s[last], outer)
    own = spatial_loops(s[inside])
    _, lanes = s[inside].split(own[-1], factor=8)
    s[inside].vectorize(lanes)
    s[last].parallel(loops[0] if len(loops) > 1 else outer)
    return s


def inlined(outputs):
    """Everything that may be put into its readers is."""
    s = lw.create_schedule(outputs)
    written = set(outputs)
    for stage in computed(s):
        if not stage.op.reduce_axis and not written.intersection(stage.op.outputs):
            stage.compute_inline()
        elif loops := spatial_loops(stage):
            outer, inner = stage.split(stage.fuse(*loops), factor=16)
            stage.vectorize(inner)
            stage.parallel(outer)
    return s


def by_general_rules(outputs):
    """The default schedule, which leaves sums in their order, as strict precision asks."""
    return lw.default_schedule(outputs, reassociate=False)


SCHEDULES = {
    "naive": naive,
    "default": by_general_rules,
    "guarded": guarded,
    "unrolled": unrolled,
    "cached": cached,
    "inlined": inlined,
}
ALWAYS, IN_TURN = ("naive", "default"), ("guarded", "unrolled", "cached", "inlined")


def canary(tensor, shape):
    return np.full(shape, 77, np.float64).astype(tensor.dtype.to_numpy())


class Checker:
    """Builds kernels of some tensors by several schedules, and compares. Mutable: schedules by hand and targets take
    turns, by a count that begins anew in each test."""

    def __init__(self, turn):
        self._turn = turn

    def __call__(self, inputs, outputs, cases, schedules=None, close=None):
        """``cases``: pairs of input arrays and expected outputs. ``close``: rtol and atol of floats, or None."""
        turn = [IN_TURN[(self._turn + k) % len(IN_TURN)] for k in range(2)]
        for name in schedules or (*ALWAYS, *turn):
            self._turn += 1
            target = HERE[self._turn % len(HERE)]
            kernel = lw.build(
                SCHEDULES[name](list(outputs)), [*inputs, *outputs], target=target, name=name, precision="strict"
            )
            for arrays, expected in cases:
                message = f"schedule {name}, target {target}\n{kernel.loop_ir}"
                found = [canary(t, e.shape) for t, e in zip(outputs, expected, strict=True)]
                kernel(*arrays, *found)
                self._compare(found, expected, close, message)
                interpreted = [canary(t, e.shape) for t, e in zip(outputs, expected, strict=True)]
                lw.interpret(kernel.func)(*arrays, *interpreted)
                self._compare(interpreted, expected, close, "interpreted: " + message)
                self._compare(found, interpreted, close and (4e-6, 1e-6), "native, interpreted: " + message)

    def _compare(self, found, expected, close, message):
        for x, y in zip(found, expected, strict=True):
            assert x.dtype == y.dtype, message
            if x.dtype.kind in "biu":
                np.testing.assert_array_equal(x, y, err_msg=message)
            else:
                rtol, atol = close or (0, 0)
                wide = (a.astype(np.float64) for a in (x, y))  # numpy knows no NaN of bfloat16
                np.testing.assert_allclose(*wide, rtol=rtol, atol=atol, err_msg=message)


@pytest.fixture
def check(request):
    return Checker(sum(map(ord, request.node.name)))  # the same whichever tests run


@pytest.fixture(scope="session")
def sample():
    """``sample(shape, dtype, seed, low, high)``: whole numbers, which all dtypes hold and add without rounding."""

    def make(shape, kind, seed=0, low=-4, high=4):
        numpy_type = lw.te.placeholder((1,), kind).dtype.to_numpy()
        low = 0 if numpy_type.kind in "bu" else low
        return np.random.default_rng(seed).integers(low, high, shape, endpoint=True).astype(numpy_type)

    return make


@pytest.fixture(scope="session")
def example_kernels(private_cache):
    """``example_kernels(target, *modules to import first, **environment)``: what the script of that name prints."""

    def run(spec, *modules, **environment):
        script = Path(__file__).with_name("example_kernels.py")
        command = [sys.executable, str(script), spec, *modules]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
        assert done.returncode == 0, f"{spec}: {done.stderr[-3000:]}"
        return json.loads(done.stdout)

    return run
