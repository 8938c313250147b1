"""The models that the onnx package tests backends with, by way of `loopwright.onnx_backend`; and its interface."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

import loopwright as lw
from loopwright import onnx_backend

COUNTS = {"pytorch-operator": 35, "pytorch-converted": 82}  # in onnx 1.17 and later
CASES = {f"{kind}-{case.name}": case for kind in COUNTS for case in load_model_tests(kind=kind)}


def arrays(folder, kind):
    files = [folder / f"{kind}_{k}.pb" for k in range(len(list(folder.glob(f"{kind}_*.pb"))))]
    return [numpy_helper.to_array(TensorProto.FromString(file.read_bytes())) for file in files]


@pytest.mark.parametrize(("kind", "count"), COUNTS.items())
def test_no_model_of_the_suite_is_missing(kind, count):
    assert sum(name.startswith(kind) for name in CASES) >= count


@pytest.mark.parametrize("name", sorted(CASES))
def test_suite(name):
    case = CASES[name]
    prepared = onnx_backend.prepare(onnx.load(Path(case.model_dir) / "model.onnx"))
    folders = sorted(Path(case.model_dir).glob("test_data_set_*"))
    assert folders
    for folder in folders:
        expected = arrays(folder, "output")
        assert expected
        for found, wanted in zip(prepared.run(arrays(folder, "input")), expected, strict=True):
            assert found.dtype == wanted.dtype
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=case.rtol, atol=case.atol)


# The interface.


def infos(*names, shape=("n", 3)):
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]


def difference():
    """Two inputs, one of them an input only by old custom: its initializer is its value."""
    nodes = [helper.make_node("Sub", ["a", "b"], ["d"]), helper.make_node("Mul", ["d", "w"], ["e"])]
    w = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    graph = helper.make_graph(nodes, "difference", infos("a", "b", "w"), infos("d", "e"), [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 4, np.float32)


def test_run_model_takes_inputs_in_order_and_by_name():
    expected = A - B, (A - B) * np.array([1, 2, 3], np.float32)
    for inputs in ([A, B], (A, B), {"b": B, "a": A}):
        outputs = onnx_backend.run_model(difference(), inputs)
        assert type(outputs).__name__ == "Outputs"
        np.testing.assert_array_equal(outputs[0], expected[0])
        np.testing.assert_array_equal(outputs.e, expected[1])


def test_a_prepared_model_runs_again_with_other_values_and_shapes():
    prepared = onnx_backend.prepare(difference())
    for a, b in ((A, B), (B, A), (A[:1], B[:1]), (A.repeat(3, 0), B.repeat(3, 0)), (A, B)):
        np.testing.assert_array_equal(prepared.run([a, b]).d, a - b)


def test_arrays_that_are_not_contiguous_are_read_by_their_strides():
    a = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    assert not a.flags.c_contiguous
    np.testing.assert_array_equal(onnx_backend.run_model(difference(), [a, B]).d, a - B)


def test_a_single_array_is_a_single_input():
    graph = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "neg", infos("a"), infos("b"))
    np.testing.assert_array_equal(onnx_backend.run_model(helper.make_model(graph), A)[0], -A)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([A], "takes 2 inputs, found 1"),
        ([A, B, B], "takes 2 inputs, found 3"),
        ({"a": A}, "difference takes the inputs a, b, found a$"),
        ({"a": A, "b": B, "w": B}, "difference takes the inputs a, b, found a, b, w$"),
        ([A.astype(np.float64), B], "float32"),
        ([A, B.astype(np.int32)], "float32"),
    ],
)
def test_inputs_that_do_not_fit(inputs, message):
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        onnx_backend.run_model(difference(), inputs)


@pytest.mark.parametrize("a", [A[:, :2], A[0], A[None]])
def test_shapes_that_do_not_fit_the_model(a):
    with pytest.raises(lw.LoopwrightError, match="a"):
        onnx_backend.run_model(difference(), [np.ascontiguousarray(a), B])


def test_devices():
    assert onnx_backend.supports_device("CPU")
    assert onnx_backend.supports_device("CPU:0")
    for device in ("CUDA", "CUDA:0", "cpux", ""):
        assert not onnx_backend.supports_device(device)
        with pytest.raises(lw.TargetError, match=f"no device '{device}'"):
            onnx_backend.prepare(difference(), device)
        with pytest.raises(lw.TargetError, match="no device"):
            onnx_backend.run_model(difference(), [A, B], device)
        assert not onnx_backend.is_compatible(difference(), device)


def test_a_model_that_is_not_supported():
    model = difference()
    model.graph.node[0].op_type = "Subtract"
    assert onnx_backend.is_compatible(difference())
    assert not onnx_backend.is_compatible(model)
    with pytest.raises(lw.ModelError, match="Subtract"):
        onnx_backend.prepare(model)


# Single nodes.


def test_run_node_in_the_newest_opset():
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    (y,) = onnx_backend.run_node(node, [A, np.array([1])])
    np.testing.assert_array_equal(y, A.sum(1))


def test_run_node_in_an_opset_that_is_given():
    node = helper.make_node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)
    (y,) = onnx_backend.run_node(node, [A], opset_version=11)
    np.testing.assert_array_equal(y, A.sum(1))
    with pytest.raises(lw.ModelError, match="axes"):  # an input since version 13
        onnx_backend.run_node(node, [A], opset_version=13)


def test_run_node_takes_an_array_for_each_input():
    with pytest.raises(lw.RuntimeArgumentError, match="the node takes 2 inputs, found 1"):
        onnx_backend.run_node(helper.make_node("Add", ["x", "y"], ["z"]), [A])


def test_run_node_compiles_in_what_must_be_known():
    starts, ends, axes = np.array([1]), np.array([3]), np.array([1])
    (y,) = onnx_backend.run_node(helper.make_node("Slice", ["x", "s", "e", "a"], ["y"]), [A, starts, ends, axes])
    np.testing.assert_array_equal(y, A[:, 1:3])
    scalars = [np.array(v, np.int64) for v in (2, 11, 3)]
    (y,) = onnx_backend.run_node(helper.make_node("Range", ["start", "limit", "delta"], ["y"]), scalars)
    np.testing.assert_array_equal(y, [2, 5, 8])


def test_scalars_stay_scalars():
    (y,) = onnx_backend.run_node(helper.make_node("Neg", ["x"], ["y"]), [np.array(3, np.float32)])
    assert y.shape == ()
    assert y == -3


def test_run_node_with_inputs_left_out():
    (y,) = onnx_backend.run_node(helper.make_node("Clip", ["x", "", "high"], ["y"]), [A, np.array(2, np.float32)])
    np.testing.assert_array_equal(y, np.minimum(A, 2))


def test_run_node_with_an_input_used_twice():
    (y,) = onnx_backend.run_node(helper.make_node("Mul", ["x", "x"], ["y"]), [A, A])
    np.testing.assert_array_equal(y, A * A)


def test_run_node_with_several_outputs():
    low, high = onnx_backend.run_node(helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), [A])
    np.testing.assert_array_equal(low, A[:, :2])
    np.testing.assert_array_equal(high, A[:, 2:])


def test_run_node_with_the_wrong_number_of_inputs():
    with pytest.raises(lw.RuntimeArgumentError, match="takes 2 inputs, found 1"):
        onnx_backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [A])
    with pytest.raises(lw.RuntimeArgumentError, match="takes 1 input, found 2"):
        onnx_backend.run_node(helper.make_node("Neg", ["a"], ["c"]), [A, B])
