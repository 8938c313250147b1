"""Mistakes in what ``lw.compile``, ``lw.load``, targets and the environment are given, and numpy in computes."""

import math
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


@pytest.fixture
def function():
    x = lw.var("x", (te.var("n"), 3))
    return lw.Function((x,), lw.nn.relu(x))


@pytest.mark.parametrize(
    "shape", [5, "ab", b"ab", None, (1.5, 3), (True, 3), ("1", "3"), ((1, 3),), te.var("n"), (te.var("n"), 3)]
)
def test_shapes_are_extents(function, shape):
    with pytest.raises(lw.ModelError, match=r"gives the input 'x' the shape .*: write its extents, as in \(1, 3\)"):
        lw.compile(function, shapes={"x": shape}, jobs=1)


@pytest.mark.parametrize("shapes", [5, "x", [("x", (1, 3))], (1, 3)])
def test_shapes_are_given_by_name(function, shapes):
    with pytest.raises(lw.ModelError, match="shapes= maps names of inputs to shapes"):
        lw.compile(function, shapes=shapes, jobs=1)


def test_shapes_of_numpy_integers_and_lists_are_shapes(function):
    for shape in ([1, 3], np.array([1, 3]), (np.int64(1), 3)):
        assert lw.compile(function, shapes={"x": shape}, jobs=1).inputs[0].shape == (1, 3)


@pytest.mark.parametrize("jobs", ["2", 0, -1, 1.5, True])
def test_jobs_are_a_number_of_processes(function, jobs):
    with pytest.raises(lw.RuntimeArgumentError, match="jobs should be a whole number of processes, at least 1, found"):
        lw.compile(function, shapes={"x": (1, 3)}, jobs=jobs)


@pytest.mark.parametrize(
    ("unfused", "error", "message"),
    [
        ("nn.matmul", lw.RuntimeArgumentError, "unfused should be a list of names of operators, found 'nn.matmul'"),
        (["nn.matmull"], lw.LoopwrightError, r"no operator 'nn\.matmull': did you mean nn\.matmul"),
    ],
)
def test_what_is_kept_from_fusion_is_a_list_of_operators(function, unfused, error, message):
    with pytest.raises(error, match=message):
        lw.compile(function, shapes={"x": (1, 3)}, unfused=unfused)


def test_systems_without_affinity_masks_compile(function, monkeypatch):
    """As macOS is: there are as many processes as cpus."""
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert lw.compile(function, shapes={"x": (1, 3)}).inputs[0].shape == (1, 3)


@pytest.mark.parametrize("path", [None, 5, b"x", ["x"]])
def test_a_library_is_loaded_from_a_path(path):
    with pytest.raises(lw.ModelError, match="a library is read from the path of its file, found"):
        lw.load(path)


@pytest.mark.parametrize("name", ["cuda", "gpu", "opencl", "llvm -mcpu=CUDA"])
def test_targets_are_cpus(name):
    with pytest.raises(lw.TargetError, match=r'loopwright compiles for CPUs, not for .*: write "native"'):
        lw.resolve_target(name)


def test_a_name_that_is_like_no_other_gets_a_short_answer():
    with pytest.raises(lw.TargetError, match=r"knows no cpu .\?{4}. for .*: there are \d+, [\w-]+ … [\w-]+$"):
        lw.resolve_target("????")


def test_a_folder_for_programs_that_cannot_be_written(monkeypatch, tmp_path):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("LOOPWRIGHT_DUMP_IR", str(file / "folder"))
    with pytest.raises(
        lw.RuntimeArgumentError, match=r"LOOPWRIGHT_DUMP_IR: .*main\.00\.realize\.txt cannot be written"
    ):
        lw.lower(lw.create_schedule(B), [A, B])


@pytest.mark.skipif(sys.platform != "linux", reason="perf is for Linux")
def test_an_unknown_way_of_telling_perf(monkeypatch):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    monkeypatch.setenv("LOOPWRIGHT_PERF", "yes")
    with pytest.raises(lw.RuntimeArgumentError, match="LOOPWRIGHT_PERF is map or jitdump, found 'yes'"):
        lw.build(lw.create_schedule(B), [A, B])


# numpy, math and operators of Python in the bodies of computes.

X = np.array([-1.5, 0.25, 0.5, 1.0, 2.0, 3.5, 0.75, 9.0], np.float32)
BODIES = {
    "exp": np.exp,
    "sqrt of abs": lambda x: np.sqrt(np.abs(x)),
    "rint": np.rint,
    "arctan": np.arctan,
    "square": lambda x: x**2,
    "np.square": np.square,
    "cube": lambda x: abs(x) ** 3,
    "power of 2": lambda x: 2**x,
    "np.power": lambda x: np.power(abs(x), np.float32(0.5)),
    "a factor of numpy": lambda x: np.float32(2) * x + np.float32(1),
    "maximum": lambda x: np.maximum(x, 0),
    "minimum": lambda x: np.minimum(np.float32(1), x),
    "copysign": lambda x: np.copysign(np.float32(2), x),
    "plus": lambda x: +x - np.negative(x),
}


@pytest.mark.parametrize("case", BODIES)
def test_numpys_functions_and_pythons_operators_apply_to_expressions(case):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: BODIES[case](A[i]), name="B")
    found = np.zeros(8, np.float32)
    lw.interpret(lw.lower(lw.create_schedule(B), [A, B]))(X, found)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, BODIES[case](X), rtol=1e-6)


def test_comparisons_with_numbers_of_numpy_are_expressions():
    A = te.placeholder((8,), "int32", name="A")
    B = te.compute((8,), lambda i: te.select(np.int32(3) <= A[i], np.left_shift(A[i], 1), np.invert(A[i])), name="B")
    a, found = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    lw.interpret(lw.lower(lw.create_schedule(B), [A, B]))(a, found)
    np.testing.assert_array_equal(found, np.where(a >= 3, a << 1, ~a))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda A, i: np.sum(A[i]), "np.add.reduce does not apply .*: reductions are te.sum, te.max"),
        (lambda A, i: np.cbrt(A[i]), "np.cbrt does not apply to symbolic expressions: use the functions of te"),
        (lambda A, i: np.exp(A[i], dtype="float32"), "np.exp does not apply"),
        (lambda A, i: np.ones(3) * A[i], "cannot use a ndarray"),
        (lambda A, i: np.exp(i), "exp takes float values of one dtype, found index"),
        (lambda A, i: math.exp(A[i]), "`A\\[i\\]` has no value while the program is being built: .*instead of .*math"),
        (lambda A, i: A[int(i)], "`i` has no value .*te.cast instead of int"),
        (lambda A, i: [A[0], A[1]][i], "`i` has no value"),
        (lambda A, i: A + A[i], r"np.add: A: float32\[8\] is a whole tensor, and `A\[i\]` one element"),
        (lambda A, i: np.exp(A), r"the function of B returned the whole tensor exp: float32\[8\]: return one element"),
    ],
)
def test_what_does_not_apply_says_what_does(body, message):
    A = te.placeholder((8,), name="A")
    with pytest.raises(lw.ExpressionError, match=message):
        te.compute((8,), lambda i: body(A, i), name="B")


@pytest.mark.parametrize(
    "body",
    [
        lambda A, r, q: A[r],
        lambda A, r, q: te.select(r < 3, A[0], 0.0),
        lambda A, r, q: te.sum(A[r] * A[q], axis=r),
        lambda A, r, q: te.sum(A[r], axis=r, where=q < 4),
    ],
)
def test_reduce_axes_must_be_reduced_over(body):
    A, r, q = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), name="r"), te.reduce_axis((0, 8), name="q")
    with pytest.raises(lw.ExpressionError, match=r"B uses the reduce axis [rq] without reducing over it: te.sum"):
        te.compute((8,), lambda i: body(A, r, q), name="B")


def test_two_outputs_of_one_name():
    x = lw.var("x", (3,))
    results = lw.op.Tuple((x, lw.nn.relu(x)))
    with pytest.raises(lw.TypeInferenceError, match="the output name 'y' stands for two results: give each a name"):
        lw.Function([x], results, output_names=("y", "y"))
    with pytest.raises(lw.TypeInferenceError, match=r"output_names are a tuple of names, found 'y'"):
        lw.Function([x], x, output_names="y")


def test_one_output_may_be_given_twice_by_one_name():
    x = lw.var("x", (3,))
    y = lw.nn.relu(x)
    engine = lw.Engine(lw.compile(lw.Function([x], lw.op.Tuple((y, y)), output_names=("y", "y")), jobs=1))
    first, second = engine(np.ones(3, np.float32))
    np.testing.assert_array_equal(first, second)


def test_a_variable_that_is_no_parameter():
    x, other = lw.var("x", (3,)), lw.var("other", (3,))
    with pytest.raises(lw.ModelError, match=r"other: float32\[3\] is used, but is none of the parameters of model"):
        lw.compile(lw.Function([x], lw.nn.add(x, other)), jobs=1)
