"""What can be pickled and copied, and works afterwards; and what says why not."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

A_ = np.arange(24, dtype=np.float32).reshape(4, 6)


def scheduled():
    """A schedule with all kinds of things in its state: tails, caches, layouts, notes, inlined stages."""
    A = te.placeholder((4, 6), "float32", name="A")
    B = te.compute((4, 6), lambda i, j: A[i, j] + 1.0, name="B")
    r = te.reduce_axis((0, 6), name="r")
    C = te.compute((4,), lambda i: te.sum(B[i, r], axis=r), name="C")
    D = te.compute((4,), lambda i: C[i] * 2.0, name="D")
    s = lw.create_schedule(D)
    copied = s.cache_read(A, "global", [B])
    s[copied].transform_layout(lambda i, j: (j, i))
    s[B].compute_inline()
    outer, inner = s[D].split(D.op.axis[0], factor=3, tail="peel")
    s[D].vectorize(inner)
    s[D].annotate(outer, "mine.note", "by hand")
    s[C].compute_at(s[D], outer)
    return s, A, D


EXPECTED = 2 * (A_ + 1).sum(axis=1)


def run(kernel):
    result = np.empty(4, np.float32)
    kernel(A_, result)
    return result


def test_schedules_are_pickled_with_their_tensors():
    s, A, D = scheduled()
    again, a, d = pickle.loads(pickle.dumps((s, A, D)))
    assert str(again) == str(s)
    assert again.trace == s.trace
    assert again.trace.python() == s.trace.python()
    np.testing.assert_allclose(run(lw.build(again, [a, d], target="x86-64-v3")), EXPECTED)
    again[d].unroll("D#1")
    assert len(again.trace) == len(s.trace) + 1
    assert again.diff()
    assert str(pickle.loads(pickle.dumps(s[D]))) == str(s[D])


def test_copies_of_schedules_are_of_the_same_tensors_and_go_their_own_way():
    s, A, D = scheduled()
    before = str(s)
    for made in (copy.copy(s), copy.deepcopy(s)):
        made[D].unroll("D#1")
        assert str(made) != before
        assert str(s) == before
        np.testing.assert_allclose(run(lw.build(made, [A, D], target="x86-64-v3")), EXPECTED)


def test_traces_are_pickled():
    s, _, _ = scheduled()
    again = pickle.loads(pickle.dumps(s.trace))
    assert again == s.trace
    assert again.python() == s.trace.python()
    other, _, _ = scheduled()
    fresh = lw.create_schedule(other.state.stage("D").tensors[0])
    fresh.replay(again)
    assert str(fresh) == str(s)


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"line_tables": True}, {"precision": "strict"}])
def test_kernels_are_pickled(options):
    s, A, D = scheduled()
    kernel = lw.build(s, [A, D], target="x86-64-v3", name="twice", **options)
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_allclose(run(again), EXPECTED)
    assert (again.loop_ir, again.llvm_ir, again.assembly) == (kernel.loop_ir, kernel.llvm_ir, kernel.assembly)
    assert str(again.vector_report()) == str(kernel.vector_report())
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy(kernel) is kernel


def test_kernels_go_to_other_processes(tmp_path):
    s, A, D = scheduled()
    path = tmp_path / "kernel"
    path.write_bytes(pickle.dumps(lw.build(s, [A, D], target="x86-64-v3")))
    code = (
        "import pickle, sys, pathlib, numpy as np\n"
        "kernel = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "c = np.empty(4, np.float32)\n"
        "kernel(np.arange(24, dtype=np.float32).reshape(4, 6), c)\n"
        "sys.stdout.write(str(c.tolist()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    assert done.stdout == str(EXPECTED.tolist())


def engine():
    x = lw.var("x", (4,))
    return lw.Engine(lw.compile(lw.Function([x], lw.nn.relu(x)), target="x86-64-v3", jobs=1))


def bound():
    s, A, D = scheduled()
    return lw.build(s, [A, D], target="x86-64-v3").bind(A_, np.empty(4, np.float32))


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (engine, "pickle engine.library, or library.save.path. and lw.load.path., and make an engine of the library"),
        (lambda: engine().request(), "make one by engine.request"),
        (lambda: engine().bind([np.ones(4, np.float32)]), "pickle or copy engine.library"),
        (bound, "pickle or copy the kernel, and bind it"),
    ],
    ids=["engine", "request", "bound_engine", "bound_kernel"],
)
def test_what_belongs_to_a_process_says_what_to_pickle(make, advice, attempt):
    with pytest.raises(lw.RuntimeArgumentError, match=advice):
        attempt(make())


def test_libraries_are_pickled():
    again = lw.Engine(pickle.loads(pickle.dumps(engine().library)))
    np.testing.assert_array_equal(again([np.array([-1, 2, -3, 4], np.float32)])[0], [0, 2, 0, 4])
