"""docs/walks.md: what it names is called in the order in which it stands there."""

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import candidates_of
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "walks.md").read_text(encoding="utf-8")
TARGET = "x86-64-v3"


def steps(title):
    """The functions of a walk, as (file, name), from top to bottom."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return [(file, name) for name, file in re.findall(r"(?m)^\| `([\w.]+)` \| `([\w./]+\.py)` \|", section)]


def calls(run):
    """The functions of the package that are called, here and in threads that start, as (file, name), in order."""
    found = []
    root = Path(lw.__file__).resolve().parent

    def note(frame, event, _):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path not in known:
                resolved = path.resolve()
                known[path] = str(resolved.relative_to(root)) if resolved.is_relative_to(root) else None
            if known[path] is not None:
                found.append((known[path], frame.f_code.co_qualname))

    known = {}
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def check(title, run):
    expected, made = steps(title), iter(calls(run))
    assert len(expected) > 15
    for number, step in enumerate(expected):
        assert step in made, f"{step} is not called behind {expected[max(number - 1, 0)]}"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))


def test_an_onnx_node_becomes_machine_code():
    weights = np.random.default_rng(0).standard_normal((11, 5, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5, 9, 19])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "walk", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    check("An ONNX Conv node becomes machine code", lambda: lw.compile(model, TARGET, jobs=1))


def traced(product):
    """The trace of a schedule by hand, of the plain product by itself."""
    offered = candidates_of(product, CompileSettings(lw.resolve_target(TARGET)))
    direct = next(c.implementation for c in offered if c.implementation.name == "matmul.direct")
    inputs = tuple(te.placeholder(v.type.shape, v.type.dtype, f"p{k}") for k, v in enumerate(product.args))
    (made,) = outputs_of(direct.compute(product.attrs, inputs, product.type))
    schedule = lw.create_schedule(made)
    schedule[made].tile(*made.op.axis, 4, 8)
    return schedule.trace


def test_a_tuning_record_becomes_the_chosen_schedule(tmp_path):
    a, b = lw.var("a", (19, 23)), lw.var("b", (23, 29))
    product = lw.nn.matmul(a, b)
    path = tmp_path / "records.jsonl"
    record = lw.TuningRecord.of(product, TARGET, "matmul.direct", [1e-6], trace=traced(product))
    lw.TuningRecords.append(path, record)
    libraries = []

    def run():
        libraries.append(lw.compile(lw.Function([a, b], product), TARGET, records=path, jobs=1))

    check("A tuning record becomes the chosen schedule", run)
    ((choice,),) = (function.choices for function in libraries[0].functions)
    assert choice.reason.startswith("recorded on this target")
    assert not choice.notes
