"""``lw.kernel``: functions of tensors that are called with arrays, and compiled for their shapes and dtypes."""

import copy
import pickle
import threading

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.kernels.kernel_function import CAPACITY

X = np.random.default_rng(1).standard_normal((3, 4), np.float32)
Y = np.arange(4, dtype=np.float32)


@lw.kernel
def scaled(x, y):
    """The exponential, times y, plus 1."""
    return np.exp(x) * y + 1


def test_a_function_of_numpy_gives_what_it_gives_for_arrays():
    np.testing.assert_allclose(scaled(X, Y), scaled.__wrapped__(X, Y), rtol=1e-6)
    assert scaled(X, Y).dtype == np.float32


def test_it_keeps_the_name_and_the_text_of_the_function():
    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "The exponential, times y, plus 1."


def test_computes_and_numpy_go_together():
    @lw.kernel
    def product(a, b):
        (n, k), m = a.shape, b.shape[1]
        r = te.reduce_axis((0, k), name="r")
        c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
        return np.maximum(c, 0) @ b.T

    b = np.random.default_rng(2).standard_normal((4, 5), np.float32)
    np.testing.assert_allclose(product(X, b), np.maximum(X @ b, 0) @ b.T, rtol=1e-4, atol=1e-5)


def test_each_set_of_shapes_and_dtypes_is_compiled_once():
    traced = []

    @lw.kernel
    def twice(x):
        traced.append(repr(x))
        return x * 2

    for array in (X, X + 1, Y, X.astype(np.float64), Y):
        np.testing.assert_array_equal(twice(array), array * 2)
    assert traced == ["x: float32[3, 4]", "x: float32[4]", "x: float64[3, 4]"]
    assert [each.inputs[0].ndim for each in twice.specializations] == [2, 2, 1]


def test_numbers_of_python_are_constants_and_those_of_numpy_are_arrays():
    traced = []

    @lw.kernel
    def power(x, exponent, *, offset=0.0):
        traced.append(exponent)
        return x**exponent + offset

    np.testing.assert_allclose(power(Y, 3), Y**3)
    np.testing.assert_allclose(power(Y, 2, offset=1.0), Y**2 + 1)
    for exponent in (np.float32(0.5), np.float32(1.5), np.asarray(2.5, np.float32)):
        np.testing.assert_allclose(power(Y, exponent), Y**exponent, rtol=1e-6)
    assert traced[:2] == [3, 2]
    assert repr(traced[2:]) == "[exponent: float32[]]"


@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), (0.0, -0.0), ((1, 2), (1, 2.0))])
def test_constants_that_are_equal_but_not_the_same_are_told_apart(pair):
    seen = []

    @lw.kernel
    def noted(x, constant):
        seen.append(constant)
        return x + 1

    for constant in pair:
        noted(Y, constant)
        noted(Y, constant)
    assert list(map(repr, seen)) == list(map(repr, pair))


def test_several_outputs_are_a_tuple():
    @lw.kernel
    def statistics(x):
        return x.mean(axis=1), [x.max(), x.min()][0], x

    mean, largest, same = statistics(X)
    np.testing.assert_allclose(mean, X.mean(axis=1), rtol=1e-5)
    assert largest.shape == ()
    assert largest == X.max()
    np.testing.assert_array_equal(same, X)


def test_outputs_may_be_inputs_the_same_twice_or_parts_of_each_other():
    same, doubled, again, more = lw.kernel(lambda x: (x, d := x * 2, d, d + 1))(Y)
    for found, expected in ((same, Y), (doubled, Y * 2), (again, Y * 2), (more, Y * 2 + 1)):
        np.testing.assert_array_equal(found, expected)


def test_an_argument_need_not_be_used():
    np.testing.assert_array_equal(lw.kernel(lambda x, y: y + 1)(X, Y), Y + 1)


def test_arguments_are_passed_as_to_any_function():
    @lw.kernel
    def all_kinds(a, /, b, *rest, c=1.0, **more):
        return a + b + rest[0] * 2 + c + more["d"] * 3

    expected = Y + Y + Y * 2 + 5.0 + Y * 3
    np.testing.assert_allclose(all_kinds(Y, Y, Y, c=5.0, d=Y), expected)


def test_outputs_are_written_into_arrays_of_the_caller():
    out = np.empty((3, 4), np.float32)
    assert scaled(X, Y, out=out) is out
    np.testing.assert_allclose(out, np.exp(X) * Y + 1, rtol=1e-6)
    pair = np.empty((4,), np.float32), np.empty((), np.float32)
    assert lw.kernel(lambda y: (y * 2, y.sum()))(Y, out=pair) is pair
    np.testing.assert_array_equal(pair[0], Y * 2)
    assert pair[1] == Y.sum()


@pytest.mark.parametrize(
    "view",
    [X.T, X[:, ::2], X[::-1], X.astype(">f4"), np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32)],
)
def test_any_view_of_memory_is_an_input(view):
    np.testing.assert_allclose(lw.kernel(lambda x: x * 2)(view), view.astype(np.float32) * 2)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool"])
def test_every_dtype_is_an_input(kind):
    x = np.ones(5, te.placeholder((1,), kind).dtype)
    np.testing.assert_array_equal(lw.kernel(lambda x: np.where(x.astype("bool"), x, x))(x), x)


def test_arrays_of_other_libraries_are_inputs():
    class Other:
        def __dlpack__(self, **options):
            return X.__dlpack__(**options)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    np.testing.assert_allclose(scaled(Other(), Y), np.exp(X) * Y + 1, rtol=1e-6)


def test_empty_arrays_give_empty_arrays():
    assert scaled(X[:0], Y).shape == (0, 4)


def tiled(s):
    s["C"].split("j", 8)
    s["C"].vectorize("j_inner")
    s["C"].parallel("i")


def test_a_function_schedules_by_the_names_of_stages_and_loops():
    @lw.kernel(schedule=tiled)
    def added(a, b):
        return te.compute(a.shape, lambda i, j: a[i, j] + b[i, j], name="C")

    a = np.ones((6, 16), np.float32)
    np.testing.assert_array_equal(added(a, a), a + a)
    made = added.specialize(a, a)
    assert [str(step) for step in made.schedule.trace][1:] == ['s["C"].vectorize("C#3")', 's["C"].parallel("C#0")']
    assert "vectorized(8)" in str(made.schedule)
    assert "ramp(i * 16 + j_outer * 8, 1, 8)" in made.kernel.loop_ir


def test_a_function_may_give_another_schedule():
    def by_default(s):
        return lw.default_schedule([stage.op.outputs[0] for stage in s.stages if stage.name == "multiply"])

    made = lw.kernel(schedule=by_default)(lambda x: x * 2).specialize(Y)
    assert "vectorized" in str(made.schedule)


def test_a_specialization_has_the_kernel_and_the_schedule():
    made = scaled.specialize(X, Y)
    assert made.kernel.name == "scaled"
    assert "vectorized" in str(made.schedule)
    assert "scaled" in made.kernel.assembly
    assert made.kernel.vector_report().loops
    assert repr(made.inputs) == "(x: float32[3, 4], y: float32[4])"
    assert repr(made.outputs) == "(add: float32[3, 4],)"
    assert scaled.specialize(X, Y) is made


def test_it_compiles_for_a_target():
    made = lw.kernel(target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")(lambda x: x * 2).specialize(Y)
    assert made.kernel.target.arch == "aarch64"
    assert "fmul" in made.kernel.assembly or "fadd" in made.kernel.assembly


def test_strict_precision_folds_in_the_order_of_the_definition():
    x = np.random.default_rng(5).standard_normal(1000, np.float32)
    total = np.float32(0)
    for value in x:
        total = np.float32(total + value)
    assert lw.kernel(precision="strict")(lambda x: x.sum())(x) == total


def test_one_kernel_calls_another_on_tensors():
    @lw.kernel
    def shifted(x, y):
        return scaled(x, y) - scaled(x, y=y)

    np.testing.assert_array_equal(shifted(X, Y), np.zeros((3, 4)))
    assert len(shifted.specializations) == 1


def test_a_kernel_of_a_kernel_has_options_of_its_own():
    again = lw.kernel(schedule=lambda s: s["add"].vectorize("i1"))(scaled)
    np.testing.assert_allclose(again(X, Y), scaled(X, Y), rtol=1e-6)
    assert "vectorized(4)" in str(again.specialize(X, Y).schedule)


def test_only_the_last_specialisations_are_kept():
    counted = lw.kernel(target="llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64")(lambda x, k: x + k)
    for k in range(CAPACITY + 2):
        counted.specialize(Y, k)
    assert len(counted.specializations) == CAPACITY
    last = counted.specializations[-1]
    assert counted.specialize(Y, CAPACITY + 1) is last


def test_threads_that_ask_for_one_specialisation_make_it_once():
    traced, results = [], []
    barrier = threading.Barrier(6)

    @lw.kernel
    def doubled(x):
        traced.append(x)
        return x * 2

    def call(k):
        barrier.wait()
        results.append((k, doubled(Y + k % 2)))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traced) == 1
    assert len(results) == 6
    for k, found in results:
        np.testing.assert_array_equal(found, (Y + k % 2) * 2)


def test_a_failed_specialisation_is_tried_again():
    outcomes = iter([None, "tensor"])

    @lw.kernel
    def flaky(x):
        return None if next(outcomes) is None else x * 2

    with pytest.raises(lw.ExpressionError, match="returned nothing"):
        flaky(Y)
    np.testing.assert_array_equal(flaky(Y), Y * 2)


def test_a_copy_is_the_kernel_itself():
    assert copy.copy(scaled) is scaled
    assert copy.deepcopy(scaled) is scaled
    assert pickle.loads(pickle.dumps(scaled)) is scaled


def test_a_method_is_no_kernel_of_its_object_but_of_its_arguments():
    class Model:
        weight = Y

        def __init__(self):
            self.run = lw.kernel(self.forward)

        def forward(self, x):
            return x * 3

    np.testing.assert_array_equal(Model().run(X), X * 3)
