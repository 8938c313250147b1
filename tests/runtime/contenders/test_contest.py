"""Our model beside other libraries: who agrees, who fails, and what is left behind."""

import ml_dtypes
import needed_tools
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright.runtime.contenders.contest import ROUNDS, Contest, Rounds, output_difference, require_packages
from loopwright.runtime.contenders.stored_arrays import read_arrays, write_arrays

BRIEF = Rounds(warmup=0.0, seconds=0.0)


def relu_model(kind=TensorProto.FLOAT, batch=2):
    ends = [helper.make_tensor_value_info(name, kind, [batch, 3]) for name in ("a file/x:0", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["a file/x:0"], ["y"])], "small", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compared(folder, model, inputs, peers):
    onnx.save(model, folder / "model.onnx")
    return Contest(lw.compile(model, jobs=1), {"a file/x:0": inputs}, folder / "model.onnx", peers)


def test_ours_alone_is_measured_in_rounds(tmp_path):
    with compared(tmp_path, relu_model(), np.ones((2, 3), np.float32), []) as contest:
        (ours,) = contest.measure(1, BRIEF)
        held = contest._folder
        assert held.is_dir()
    assert not held.exists()
    assert (ours.contender, ours.problem, len(ours.rounds)) == ("loopwright", "", ROUNDS)
    assert ours.median > 0


@pytest.mark.parametrize(("package", "extra"), [("onnxruntime", "dev"), ("openvino", "bench")])
def test_a_peer_gives_what_ours_gives(tmp_path, package, extra):
    needed_tools.module(package, extra)
    inputs = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    with compared(tmp_path, relu_model(batch="N"), inputs, [package]) as contest:
        ours, theirs = contest.measure(1, BRIEF)
    assert theirs.problem == ""
    assert (theirs.difference, theirs.agrees) == (0.0, True)
    assert len(theirs.rounds) == len(ours.rounds) == ROUNDS


def test_a_peer_that_refuses_the_model_says_why_and_ours_goes_on(tmp_path):
    """onnxruntime has no kernel for Relu of bfloat16."""
    needed_tools.module("onnxruntime")
    inputs = np.ones((2, 3), ml_dtypes.bfloat16)
    with compared(tmp_path, relu_model(TensorProto.BFLOAT16), inputs, ["onnxruntime"]) as contest:
        ours, theirs = contest.measure(1, BRIEF)
    assert "Relu" in theirs.problem
    assert theirs.samples == ()
    assert ours.median > 0


def test_a_model_that_does_not_run_here_cannot_be_measured(tmp_path):
    with (
        compared(tmp_path, relu_model(), np.ones((3, 3), np.float32), []) as contest,
        pytest.raises(lw.RuntimeArgumentError, match=r"model\.onnx cannot be measured: .*shape \(2, 3\)"),
    ):
        contest.measure(1, BRIEF)


def test_a_package_that_is_missing_is_named_with_how_to_install_it():
    with pytest.raises(lw.RuntimeArgumentError, match=r"nonsense_a cannot be measured.*: pip install nonsense_a$"):
        require_packages(["numpy", "nonsense_a"])
    with pytest.raises(lw.RuntimeArgumentError, match="pip install nonsense_a nonsense_b"):
        require_packages(["nonsense_a", "nonsense_b"])


def stored(folder, name, *arrays):
    write_arrays(folder / f"{name}.npz", {str(k): array for k, array in enumerate(arrays)})


def test_the_difference_is_that_of_the_output_that_is_the_furthest_beyond_its_tolerance(tmp_path):
    floats, counts = np.array([4.0, 2.0], np.float32), np.array([1, 2, 3, 4])
    stored(tmp_path, "loopwright", floats, counts)
    stored(tmp_path, "near", floats + np.float32(2e-4), counts)
    stored(tmp_path, "wrong", floats, np.array([1, 2, 3, 5]))
    stored(tmp_path, "shapes", floats[:1], counts)
    stored(tmp_path, "fewer", floats)
    assert output_difference(tmp_path, "near") == (pytest.approx(5e-5, rel=1e-2), 1e-4)
    assert output_difference(tmp_path, "wrong") == (0.25, 0.0)
    assert output_difference(tmp_path, "shapes")[0] == np.inf
    assert output_difference(tmp_path, "fewer")[0] == np.inf


def test_arrays_come_back_by_any_name_and_of_any_dtype(tmp_path):
    arrays = {
        "file": np.arange(3),
        "a/b:0": np.ones((2, 0), np.float16),
        "bf": np.array([1.5, -2], ml_dtypes.bfloat16),
        "scalar": np.array(2.0),
    }
    write_arrays(tmp_path / "arrays.npz", arrays)
    found = read_arrays(tmp_path / "arrays.npz")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
