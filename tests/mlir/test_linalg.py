"""The level linalg: what becomes an operand, what is extracted, and that the schedule does not count."""

import mlir_tools as tools
import numpy as np

import loopwright as lw
from loopwright import te


def text_of(output, *inputs):
    return lw.emit_mlir(lw.lower(lw.create_schedule(output), [*inputs, output], name="f"), "linalg")


def matmul():
    A, B = te.placeholder((8, 6), name="A"), te.placeholder((6, 5), name="B")
    k = te.reduce_axis((0, 6), name="k")
    return te.compute((8, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"), A, B


def test_maps_have_the_names_of_the_axes():
    text = text_of(*matmul())
    for results in ("(i, k)", "(k, j)", "(i, j)"):
        assert f"affine_map<(i, j, k) -> {results}>" in text
    assert 'iterator_types = ["parallel", "parallel", "reduction"]' in text
    assert "tensor.extract" not in text


def test_the_schedule_does_not_count():
    C, A, B = matmul()
    assert lw.emit_mlir(lw.lower(lw.default_schedule(C), [A, B, C], name="f"), "linalg") == text_of(C, A, B)


def test_guarded_reads_are_extracted_under_their_guard():
    A = te.placeholder((8,), name="A")
    padded = te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, i < 9), A[i - 1], 0.0), name="padded")
    text = text_of(padded, A)
    assert text.index("scf.if") < text.index("tensor.extract %A")
    assert " ins(" not in text


def test_a_window_has_an_operand_for_its_extent():
    A = te.placeholder((10,), name="A")
    k = te.reduce_axis((0, 3), name="k")
    text = text_of(te.compute((8,), lambda i: te.max(A[i + k], axis=k), name="peaks"), A)
    assert "affine_map<(i, k) -> (i + k)>" in text
    assert "tensor.empty() : tensor<3xf32>" in text


def results_of(output, inputs, arrays, shape, folder):
    """What the bufferized module computes."""
    passes = f"{tools.BUFFERIZATION},{tools.LOWERING}"
    out = np.zeros(shape, output.dtype.to_numpy())
    return tools.run_all({"f": text_of(output, *inputs)}, {"f": [*arrays, out]}, folder, passes)["f"][-1]


@tools.needs_mlir
def test_symbolic_dimensions_and_conditions_run(tmp_path):
    n = te.var("n")
    A = te.placeholder((n, 7), name="A")
    k = te.reduce_axis((1, 7), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k] * 2.0, axis=k, where=A[i, k] > 0.0), name="B")
    a = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    wanted = np.where(a[:, 1:] > 0, 2 * a[:, 1:], 0).sum(axis=1)
    np.testing.assert_allclose(results_of(B, [A], [a], (5,), tmp_path), wanted, rtol=1e-6)
