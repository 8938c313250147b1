"""Programs under limits of memory; test_memory_limits.py runs each in a process of its own.

``python memory_scenarios.py <name> <MiB> …`` runs the function of that name in a child for each number, which may have
so many MiB more than what it has when it begins. It writes how the children ended: ``done``, ``OutOfMemoryError``, or
what else came out of it.
"""

import os
import resource
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright import te

TARGET = "x86-64-v2"
X = np.ones((96, 64), np.float32)


def graph(layers=2):
    x = lw.var("x", (96, 64))
    value = x
    for number in range(layers):
        there, back = np.ones((64, 65 + number), np.float32), np.ones((65 + number, 64), np.float32)
        value = lw.nn.softmax(lw.nn.matmul(lw.nn.relu(lw.nn.matmul(value, lw.const(there))), lw.const(back)))
    return lw.Function([x], value)


# What each gives is run under the limit.


def build(_):
    A = te.placeholder((1024,), "float32", name="A")
    B = te.compute((1024,), lambda i: te.exp(A[i]) * 2.0, name="B")
    schedule = lw.create_schedule(B)
    return lambda: lw.build(schedule, [A, B], target=TARGET)


def compile_here(_):
    model = graph()
    return lambda: lw.compile(model, target=TARGET, jobs=1)


def compile_in_workers(_):
    model = graph(6)
    return lambda: lw.compile(model, target=TARGET, jobs=2)


def load(path):
    return lambda: lw.Engine(lw.load(path), threads=1)([X])


def load_modules():
    """What is imported with first use, once for all children, before there is a limit."""
    for name in lw.__all__:
        getattr(lw, name)
    for name in ("llvmlite.binding", "onnx"):
        import_module(name)


def limited(scenario, path, mebibytes):
    run = scenario(path)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        run()
    except lw.OutOfMemoryError:
        return b"OutOfMemoryError"
    except BaseException as error:
        return f"{type(error).__name__}: {error}".encode()
    return b"done"


def ended(scenario, path, mebibytes):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ["LOOPWRIGHT_CACHE_DIR"] = tempfile.mkdtemp()
        os.write(write, limited(scenario, path, mebibytes))
        os._exit(0)
    os.close(write)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(read) as said:
        return said.read() if status == 0 else f"status {status}"


if __name__ == "__main__":
    path = tempfile.mkdtemp() + "/model.lwlib"
    if sys.argv[1] == "load" and os.fork() == 0:  # in a child, so that this process has no LLVM yet
        lw.compile(graph(), jobs=1).save(path)
        os._exit(0)
    if sys.argv[1] == "load":
        os.wait()
    load_modules()
    for number in map(int, sys.argv[2:]):
        sys.stdout.write(f"{ended(globals()[sys.argv[1]], path, number)}\n")
