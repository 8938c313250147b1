"""Engines: phases, requests, executors, the callers' buffers, and what a call costs and holds."""

import asyncio
import ctypes
import os
import struct
import sys
import threading
import time

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright.base.quantities import bytes_text
from loopwright.codegen.jit import LoadedCode
from loopwright.runtime.functions.host_call import ENTRY
from loopwright.runtime.threads.thread_pool import thread_pool_symbols

X = np.arange(-8, 8, dtype=np.float32)


@pytest.fixture(scope="module")
def library():
    """y = relu(x) + w, and z = x · x."""
    x = lw.var("x", (16,))
    w = lw.const(np.full(16, 2, np.float32))
    outputs = lw.op.Tuple([lw.nn.add(lw.nn.relu(x), w), lw.nn.multiply(x, x)])
    return lw.compile(lw.Function([x], outputs), jobs=1)


@pytest.fixture(scope="module")
def matrices():
    """Products of a batch that each run chooses, in two steps, with an intermediate."""
    x = lw.var("x", (lw.te.var("n"), 24))
    w = lw.const(np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32))
    return lw.compile(lw.Function([x], lw.nn.softmax(lw.nn.matmul(lw.nn.softmax(lw.nn.matmul(x, w)), w))), jobs=1)


def check(outputs, x=X):
    np.testing.assert_array_equal(outputs[0], np.maximum(x, 0) + 2)
    np.testing.assert_array_equal(outputs[1], x * x)


def test_requests_hold_inputs_and_outputs_of_their_own(library):
    engine = lw.Engine(library).init()
    first, second = engine.request(), engine.request()
    first.set_input("x", X)
    second.set_input(0, X + 1)
    engine.set_input("x", X + 2)
    for request in (first, second, engine):
        request.run()
    check([first.get_output(0), first.get_output("output1")])
    check([second.get_output(k) for k in range(2)], X + 1)
    check([engine.get_output(k) for k in range(2)], X + 2)
    assert "done" in repr(first)


def test_a_request_reads_its_input_when_it_runs(library):
    request = lw.Engine(library).init().request()
    x = X.copy()
    request.set_input("x", x)
    x += 3
    request.run()
    check([request.get_output(0), request.get_output(1)], x)


@pytest.mark.parametrize("executors", [1, 3])
def test_all_ways_to_call_agree(library, executors):
    engine = lw.Engine(library, executors=executors)
    check(engine({"x": X}))
    check(engine([X], threads=2))
    check(engine.submit([X]).result(timeout=60))
    check(engine.bind([X])())

    async def several():
        return await asyncio.gather(*(engine.run_async({"x": X + k}) for k in range(5)))

    for k, outputs in enumerate(asyncio.run(several())):
        check(outputs, X + k)


def test_outputs_go_to_the_callers_buffers(library):
    engine = lw.Engine(library).init()
    buffers = [np.zeros(16, np.float32) for _ in range(2)]
    outputs = engine([X], out=buffers)
    assert all(output is buffer for output, buffer in zip(outputs, buffers, strict=True))
    check(buffers)
    named = {"output1": np.empty(16, np.float32), "output0": np.empty(16, np.float32)}
    engine.submit([X + 1], out=named).result(timeout=60)
    check([named["output0"], named["output1"]], X + 1)
    engine.set_input(0, X + 2)
    engine.run(out=buffers)
    assert engine.get_output(0) is buffers[0]
    check(buffers, X + 2)


def test_arrays_of_dlpack_are_read_and_written_in_place(library):
    torch = needed_tools.module("torch", "bench")
    engine = lw.Engine(library)
    check(engine([torch.from_numpy(X)]))
    buffers = [torch.zeros(16) for _ in range(2)]
    engine([torch.from_numpy(X)], out=buffers)
    check([buffer.numpy() for buffer in buffers])


def test_inputs_are_never_written_and_outputs_lie_elsewhere():
    """Also where a result could take an input's place: of what is elementwise, a view, or the input itself."""
    x = lw.var("x", (4, 6))
    results = lw.op.Tuple([lw.nn.relu(x), lw.nn.reshape(x, (6, 4)), x])
    engine = lw.Engine(lw.compile(lw.Function([x], results), jobs=1))
    given = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    before = given.copy()
    for writeable in (False, True):
        given.flags.writeable = writeable
        outputs = engine([given])
        for found, wanted in zip(outputs, [np.maximum(before, 0), before.reshape(6, 4), before], strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert not np.shares_memory(found, given)
        np.testing.assert_array_equal(given, before)


def test_large_outputs_begin_on_cache_lines(matrices):
    rows = np.ones((1000, 24), np.float32)
    outputs = [lw.Engine(matrices)([rows]) for _ in range(4)]
    assert not any(output.ctypes.data % 64 for (output,) in outputs)
    assert all(output.flags.c_contiguous and output.flags.writeable for (output,) in outputs)


def test_buffers_have_the_shapes_that_the_inputs_lead_to(matrices):
    engine = lw.Engine(matrices)
    x = np.ones((5, 24), np.float32)
    out = [np.empty((5, 24), np.float32)]
    assert engine([x], out=out)[0] is out[0]
    with pytest.raises(lw.RuntimeArgumentError, match=r"output0 should have shape \(6, 24\), found \(5, 24\)"):
        engine([np.ones((6, 24), np.float32)], out=out)


def test_executors_serve_as_many_calls_at_once_and_others_wait(library):
    """Executors that are held by hand: further calls end only when one is given back."""
    engine = lw.Engine(library, executors=2).init()
    release, inside, ended = threading.Event(), threading.Barrier(3), []

    def hold(executor):
        inside.wait(timeout=60)
        release.wait(timeout=60)
        return executor

    holders = [threading.Thread(target=lambda: ended.append(engine._executors.use(hold))) for _ in range(2)]
    for holder in holders:
        holder.start()
    inside.wait(timeout=60)
    waiting = engine.submit([X])
    time.sleep(0.05)
    assert not waiting.done()
    release.set()
    check(waiting.result(timeout=60))
    for holder in holders:
        holder.join()
    assert len(set(ended)) == 2


def test_executors_give_what_one_gives_and_share_the_weights(matrices):
    x = np.random.default_rng(1).standard_normal((40, 24)).astype(np.float32)
    (wanted,) = lw.Engine(matrices, threads=1)([x])
    engine = lw.Engine(matrices, executors=[lw.ExecutorConfig(threads=n) for n in (1, 2, 3)]).init()
    for executor in engine._executors.executors:
        np.testing.assert_array_equal(executor.run([x])[0], wanted)
    addresses = {executor._loaded.constant_addresses for executor in engine._executors.executors}
    assert len(addresses) == 1


def test_threads_come_from_the_config_then_the_engine_then_the_environment(library, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", "6")

    def threads(**given):
        return [config.threads for config in lw.Engine(library, **given)._configs]

    assert threads() == [6]
    assert threads(executors=4) == [1, 1, 1, 1]
    assert threads(executors=2) == [3, 3]
    assert threads(executors=2, threads=5) == [5, 5]
    assert threads(executors=[lw.ExecutorConfig(threads=2), lw.ExecutorConfig()], threads=4) == [2, 4]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity masks")
def test_threads_stay_on_cores_only_where_a_list_of_them_is_given(library):
    core = max(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    seen = []
    for cores in ((core,), ()):
        engine = lw.Engine(library, executors=[lw.ExecutorConfig(cores=cores)]).init()
        (executor,) = engine._executors.executors
        native = executor._loaded.entry
        executor._loaded.entry = lambda *slots, native=native: (seen.append(os.sched_getaffinity(0)), native(*slots))[1]
        executor._entry = executor._entry if cores else executor._loaded.entry
        check(engine([X]))
    assert seen == [{core}, before]
    assert os.sched_getaffinity(0) == before


def test_memory_is_known_before_a_run(library, matrices):
    use = lw.Engine(library, threads=1, executors=2).planned_memory()
    assert use.outputs == 2 * 2 * 64
    assert use.code == sum(len(f.object) for f in library.functions) + len(library.model.entry_object)
    assert use.peak == use.weights + use.arena + use.code + use.outputs + use.kernels
    engine = lw.Engine(matrices)
    use = engine.planned_memory({"x": (100, 24)})
    assert engine.planned_memory({"x": np.array([100, 24])}) == engine.planned_memory({"x": iter((100, 24))}) == use
    assert use.weights == sum(constant.nbytes for constant in matrices.model.constants) > 0
    assert use.outputs == 100 * 24 * 4
    engine([np.ones((100, 24), np.float32)])
    assert engine._executors.executors[0].arena_bytes == use.arena > 0
    assert f"at most {bytes_text(use.peak)}" in str(use)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_kernels_take_while_they_run_is_known_before(threads):
    """Panels of a product, which are packed when it runs: each allocation is noted on its way to the library of C."""
    n = lw.te.var("n")
    a, b = lw.var("a", (n, 320)), lw.var("b", (320, 256))
    library = lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)), jobs=1)
    (function,) = library.functions
    taken, peak = {}, 0

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    def allocate(alignment, size):
        nonlocal peak
        at = libc.aligned_alloc(alignment, size)
        taken[at] = size
        peak = max(peak, sum(taken.values()))
        return at

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def release(at):
        taken.pop(at)
        libc.free(at)

    libc = ctypes.CDLL(None)
    libc.aligned_alloc.restype, libc.aligned_alloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 2
    libc.free.argtypes = [ctypes.c_void_p]
    own = {name: ctypes.cast(f, ctypes.c_void_p).value for name, f in (("aligned_alloc", allocate), ("free", release))}
    code = LoadedCode(function.symbol, [function.object], library.model.target, {**thread_pool_symbols(), **own})
    arrays = [np.ones(shape, np.float32) for shape in ((300, 320), (320, 256), (300, 256))]
    slots = struct.pack("4q", *(array.ctypes.data for array in arrays), 300)
    assert ENTRY(code.address())(struct.pack("q", threads), slots) == 0
    assert taken == {}
    known = lw.Engine(library, threads=threads).planned_memory({"a": (300, 320)}).kernels
    assert 0 < peak <= known
    if threads == 1:
        assert peak == known


def test_a_call_makes_few_calls_of_its_own(library):
    """What a call costs is what Python does in it, which is counted: times would be the machine's. docs/runtime.md has
    what was measured."""
    engine = lw.Engine(library, threads=1).init()
    inputs = {"x": X}
    engine(inputs)
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    try:
        engine(inputs)
    finally:
        sys.setprofile(None)
    calls, native = seen.count("call"), seen.count("c_call")
    assert calls <= 12
    assert native <= 20


@pytest.mark.parametrize("precision", ["strict", "standard"])
def test_results_do_not_depend_on_the_number_of_threads(precision):
    """To the last bit: of a convolution, a product, means, the sum of everything, softmax."""
    rng = np.random.default_rng(0)
    x = lw.var("x", (2, 16, 28, 28))
    w = lw.const(rng.standard_normal((32, 16, 3, 3)).astype(np.float32))
    v = lw.const(rng.standard_normal((28, 70)).astype(np.float32))
    y = lw.nn.relu(lw.nn.conv2d(x, w, padding=1))
    product = lw.nn.matmul(y, v)
    results = [lw.nn.softmax(product), lw.nn.mean(product, axes=(2, 3)), lw.nn.sum(product), lw.nn.max(y, axes=(1,))]
    library = lw.compile(lw.Function([x], lw.op.Tuple(results)), precision=precision)
    inputs = [rng.standard_normal((2, 16, 28, 28)).astype(np.float32)]
    parallel = [function.name for function in library.functions if "lw_parallel_for" in function.llvm_ir]
    assert len(parallel) >= 5, parallel
    alone = lw.Engine(library, threads=1)(inputs)
    for threads in (2, 3, 7):
        for found, wanted in zip(lw.Engine(library, threads=threads)(inputs), alone, strict=True):
            np.testing.assert_array_equal(found, wanted)
