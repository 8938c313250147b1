"""Placeholders that nothing reads, among the arguments of a function: taken, and not touched."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

n = te.var("n")
A = te.placeholder((8,), "float32", name="A")
B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
UNUSED = te.placeholder((n, 3), "int8", name="unused")
ARGS = [A, UNUSED, B]


def arrays():
    return np.arange(8, dtype=np.float32), np.full((5, 3), 7, np.int8), np.empty(8, np.float32)


def schedules():
    naive, vector = lw.create_schedule(B), lw.create_schedule(B)
    vector[B].vectorize(B.op.axis[0])
    parallel = lw.create_schedule(B)
    parallel[B].parallel(B.op.axis[0])
    return {"naive": naive, "vector": vector, "parallel": parallel, "default": lw.default_schedule(B, "x86-64-v3")}


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"line_tables": True}])
@pytest.mark.parametrize("name", schedules())
def test_kernels_take_the_array_and_leave_it_alone(name, options):
    kernel = lw.build(schedules()[name], ARGS, target="x86-64-v3", **options)
    a, unused, b = arrays()
    kernel(a, unused, b)
    np.testing.assert_array_equal(b, a * 2)
    assert (unused == 7).all()
    kernel.bind(a, unused, b)()
    with pytest.raises(lw.RuntimeArgumentError, match="unused"):
        kernel(a, a, b)
    if not options:
        assert kernel.vector_report()


def test_the_interpreter_mlir_and_exports_take_it(tmp_path):
    for s in schedules().values():
        func = lw.lower(s, ARGS)
        a, unused, b = arrays()
        lw.interpret(func)(a, unused, b)
        np.testing.assert_array_equal(b, a * 2)
        assert "%unused: memref<?x3xi8>" in lw.emit_mlir(func)
        assert "%unused: tensor<?x3xi8>" in lw.emit_mlir(func, level="linalg")
    header = lw.build(lw.create_schedule(B), ARGS, name="double_it").export(tmp_path).header.read_text()
    assert "const float *A, const int8_t *unused, float *B, int64_t n" in header


def test_a_name_may_be_that_of_another():
    twin = te.placeholder((8,), "float32", name="A")
    a, b = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
    lw.build(lw.create_schedule(B), [twin, A, B], target="x86-64-v3")(np.full(8, 5, np.float32), a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_what_is_computed_for_nobody_is_refused():
    other = te.compute((8,), lambda i: A[i] + 1.0, name="other")
    with pytest.raises(lw.ScheduleError, match=r"argument other: float32\[8\] is not part of the schedule"):
        lw.lower(lw.create_schedule(B), [A, other, B])
    for given in (A, None, "AB", 3):
        with pytest.raises(lw.ScheduleError, match="arguments are tensors, in a list, found"):
            lw.lower(lw.create_schedule(B), given)
