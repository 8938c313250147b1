"""Everything public is called with values of wrong types: an error of ours says so, at once, or the value is taken.

The names are found by introspection, so that new ones are covered. Values take turns: in place of all arguments; in
place of all but the first, which is a tensor or a node; and of each argument beside good ones, where ``GOOD`` has them.
"""

import inspect
import math
import time

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

TARGET = "x86-64"
SECONDS = 5
"""Of the processor's time, that a call may take at most."""

A = te.placeholder((8, 4), "float32", name="A")
B = te.compute((8, 4), lambda i, j: A[i, j] * 2.0, name="B")
K = te.reduce_axis((0, 4), name="k")
C = te.compute((8,), lambda i: te.sum(B[i, K], axis=K), name="C")
X = lw.var("x", (2, 3, 4, 4))
W = lw.var("w", (4, 3, 3, 3))
WRONG = {
    "none": None,
    "text": "wrong",
    "int": 3,
    "negative": -1,
    "huge": 10**30,
    "nan": math.nan,
    "infinity": math.inf,
    "list": [1, "a"],
    "empty": [],
    "tuple": (None,),
    "dict": {"a": 1},
    "array": np.zeros((2, 2)),
    "tensor": A,
    "node": X,
    "axis": te.reduce_axis((0, 4)),
    "object": object(),
    "bytes": b"ab",
    "type": int,
    "function": lambda *given: None,
}


def schedule():
    s = lw.create_schedule(C)
    s[B].split("B#0", factor=4)
    return s


KERNEL = lw.build(lw.create_schedule(B), [A, B], target=TARGET)
LIBRARY = lw.compile(lw.Function([X], lw.nn.relu(X)), target=TARGET, jobs=1)
OBJECTS = {
    "Schedule": schedule,
    "StageView": lambda: schedule()[B],
    "Kernel": lambda: KERNEL,
    "BoundKernel": lambda: KERNEL.bind(np.zeros((8, 4), np.float32), np.zeros((8, 4), np.float32)),
    "Engine": lambda: lw.Engine(LIBRARY),
    "Request": lambda: lw.Engine(LIBRARY).request(),
    "Library": lambda: LIBRARY,
    "Trace": lambda: schedule().trace,
    "TuningRecords": lw.TuningRecords,
    "TacticRegistry": lw.TacticRegistry,
}
OF_PYTHON = {"Trace.index", "Trace.count"}
"""What comes from ``collections.abc``, with errors of its own."""

GOOD = {
    "lw.build": (lw.create_schedule(B), [A, B]),
    "lw.lower": (lw.create_schedule(B), [A, B]),
    "lw.compile": (lw.Function([X], lw.nn.relu(X)),),
    "lw.explain": (lw.Function([X], lw.nn.relu(X)),),
    "lw.dump": (lw.Function([X], lw.nn.relu(X)), "graph"),
    "lw.Function": ([X], lw.nn.relu(X)),
    "lw.var": ("x", (2, 3)),
    "te.placeholder": ((4, 4),),
    "te.compute": ((4, 4), lambda i, j: i + j),
    "te.sum": (A[0, K], K),
    "te.reduce_axis": ((0, 4),),
    "nn.conv2d": (X, W),
    "nn.max_pool": (X, (2, 2)),
    "nn.reshape": (X, (6, 16)),
    "nn.pad": (X, (0, 0, 1, 1), (0, 0, 1, 1)),
    "nn.split": (X, (1, 2), 1),
    "nn.concatenate": ([X, X],),
    "nn.matmul": (X, X),
    "nn.full": ((2, 3), 1.0),
    "nn.strided_slice": (X, (0,), (1,)),
    "nn.resize": (X, (8, 8)),
    "nn.one_hot": (lw.var("i", (3,), "int64"), lw.const(np.float32(0)), lw.const(np.float32(1)), 4),
    "Schedule.cache_read": (A, "global", [B]),
    "Schedule.cache_write": (B, "global"),
    "Schedule.rfactor": (C, "C#1"),
    "StageView.split": ("B#1", 2),
    "StageView.tile": ("B#1", "B#2", 2, 2),
    "StageView.fuse": ("B#1", "B#2"),
    "StageView.reorder": ("B#3", "B#1"),
    "StageView.accumulate": ("B#3",),
    "StageView.vectorize": ("B#3",),
    "StageView.compute_at": ("C", "C#0"),
    "StageView.annotate": ("B#3", "mine.note", "text"),
    "StageView.prefetch": (A, "B#1", 2),
    "StageView.storage_align": (0, 8),
    "Kernel.bind": (np.zeros((8, 4), np.float32), np.zeros((8, 4), np.float32)),
    "Kernel.time": (np.zeros((8, 4), np.float32), np.zeros((8, 4), np.float32)),
    "Engine.set_input": ("x", np.zeros((2, 3, 4, 4), np.float32)),
    "Engine.bind": ([np.zeros((2, 3, 4, 4), np.float32)],),
}


def _is_never_called(kind):
    """Whether a class is one of errors, or has no objects of its own: an abstract class, or a protocol."""
    return issubclass(kind, BaseException) or inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)


def public():
    """The functions and classes of each public module, and the methods of what users hold, by name."""
    for prefix, module in (("lw", lw), ("te", te), ("nn", lw.nn)):
        for name in dict.fromkeys(module.__all__):
            found = getattr(module, name)
            if callable(found) and not (inspect.isclass(found) and _is_never_called(found)):
                yield f"{prefix}.{name}", lambda found=found: found
    for kind, make in OBJECTS.items():
        for name, _ in inspect.getmembers(type(make()), inspect.isfunction):
            if not name.startswith("_") and not inspect.iscoroutinefunction(getattr(type(make()), name)):
                yield f"{kind}.{name}", lambda make=make, name=name: getattr(make(), name)


PUBLIC = {name: get for name, get in public() if name not in OF_PYTHON}


MEANT = {("Kernel.time", "huge"), ("lw.compile", "type")}
"""What takes its time because it was asked for, and what calls the caller's function, whose errors are the caller's."""


def calls(name, function):
    """Arguments by position and by name, with a text that says which."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    by_name = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
    options = [p.name for p in parameters if p.default is not p.empty]
    count = len(needed) - len(by_name)
    first = {"te": A, "nn": X}.get(name.partition(".")[0])
    for label, value in WRONG.items():
        if (name, label) in MEANT:
            continue
        named = dict.fromkeys(by_name, value)
        yield f"all {label}", [value] * count, named
        if first is not None and count > 1:
            yield f"all but the first {label}", [first] + [value] * (count - 1), named
        good = list(GOOD.get(name, [value if first is None else first] * count))
        for option in options[max(0, len(good) - count) :]:
            yield f"{option} {label}", good, {**named, option: value}
        for at in range(len(good)) if name in GOOD else ():
            yield f"argument {at} {label}", [*good[:at], value, *good[at + 1 :]], named


@pytest.mark.parametrize("name", PUBLIC)
def test_wrong_types_are_errors_of_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what takes a path may write there
    found = []
    for how, given, named in calls(name, PUBLIC[name]()):
        start = time.process_time()
        try:
            PUBLIC[name]()(*given, **named)
        except lw.InternalError as error:
            found.append((how, error))
        except lw.LoopwrightError:
            pass
        except Exception as error:
            found.append((how, error))
        if time.process_time() - start > SECONDS:
            found.append((how, "took too long"))
    assert not found
