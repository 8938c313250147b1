"""What counts as a difference from the reference, and what listings are shortened to."""

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from loopwright import ModelError
from loopwright.cli import reference
from loopwright.cli.reference import CheckError, Reference, check_outputs, largest_error, load_reference
from loopwright.cli.shorten import hot_block, shorten
from loopwright.runtime.measure import widened_model


def error(a, b):
    return largest_error(["y"], [np.asarray(a)], [np.asarray(b)], "an oracle")


def test_the_error_is_relative_to_the_largest_magnitude():
    assert error([1000.0, 0.01], [1000.0, 0.02]) == pytest.approx(1e-5)
    with pytest.raises(CheckError, match=r"output y differs from an oracle's by 5\.0e-01"):
        error([1.0, -2.0], [1.0, -4.0])


def test_equal_infinities_and_nans_agree_and_others_do_not():
    assert error([np.inf, -np.inf, np.nan, 1.0], [np.inf, -np.inf, np.nan, 1.0]) == 0
    for a, b in [(np.inf, -np.inf), (1.0, np.nan), (np.nan, 1.0), (1.0, np.inf), (np.inf, 1.0)]:
        with pytest.raises(CheckError):
            error([a, 1.0], [b, 1.0])


def test_narrow_floats_may_differ_by_some_roundings():
    a = np.array([1.0, 1.0], np.float16)
    assert 0 < error(a, np.array([1.0, 1.004], np.float16)) < 0.01
    with pytest.raises(CheckError):
        error(a, np.array([1.0, 1.1], np.float16))


@pytest.fixture
def scaled_model(tmp_path):
    """0.1 · x, by float32, with a cast and a constant of its own."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    nodes = [
        helper.make_node("Constant", [], ["c"], value_float=0.1),
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "c"], ["y"]),
    ]
    save(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), tmp_path / "scaled.onnx")
    return tmp_path / "scaled.onnx"


X = np.array([1.0, 2.0, 3.0], np.float32)
GOOD, NEAR, FAR = (np.array(v, np.float32) for v in ([0.1, 0.2, 0.3], [0.1, 0.2, 0.301], [0.1, 0.2, 0.7]))


@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.parametrize(("ours", "theirs"), [(GOOD, FAR), (NEAR, FAR)])
def test_a_difference_is_not_ours_where_the_reference_is_further_from_float64(
    scaled_model, monkeypatch, installed, ours, theirs
):
    if installed and not reference.onnxruntime_installed():
        installed = False
    monkeypatch.setattr(widened_model, "onnxruntime_installed", lambda: installed)
    peer = Reference(lambda inputs: [theirs], "an oracle")
    checked = check_outputs(scaled_model, ["y"], [ours], {"x": X}, peer)
    exact = np.float64(np.float32(0.1)) * X
    assert checked.exact == pytest.approx([np.abs(a - exact).max() / 0.3 for a in (ours, theirs)], rel=1e-6)


def test_a_difference_is_ours_where_float64_says_so(scaled_model):
    peer = Reference(lambda inputs: [NEAR], "an oracle")
    told = r"differs from an oracle's by .*Beside float64 our largest error is 1\.3e\+00, that of an oracle 3\.3e-03"
    with pytest.raises(CheckError, match=told):
        check_outputs(scaled_model, ["y"], [FAR], {"x": X}, peer)
    broken = np.array([0.1, np.nan, 0.3], np.float32)
    with pytest.raises(CheckError, match="our largest error is inf, that of an oracle 3"):
        check_outputs(scaled_model, ["y"], [broken], {"x": X}, peer)


def test_where_float64_cannot_tell_a_difference_counts(scaled_model, monkeypatch):
    def fails(*args):
        raise ModelError("no kernel")

    monkeypatch.setattr(reference, "exact_outputs", fails)
    with pytest.raises(CheckError, match="is allowed; whose error that is cannot be told: no kernel"):
        check_outputs(scaled_model, ["y"], [GOOD], {"x": X}, Reference(lambda inputs: [FAR], "an oracle"))


def test_integers_bools_shapes_and_dtypes_must_be_the_same():
    assert error(np.array([True, False]), np.array([True, False])) == 0
    with pytest.raises(CheckError, match="in 1 of 2 elements"):
        error(np.array([1, 2]), np.array([1, 3]))
    with pytest.raises(CheckError, match=r"output y is float64\[2\], but float64\[1, 2\]"):
        error([1.0, 2.0], [[1.0, 2.0]])
    with pytest.raises(CheckError, match="float32"):
        error(np.ones(2), np.ones(2, np.float32))


def test_empty_outputs_agree():
    assert error(np.empty((0, 3)), np.empty((0, 3))) == 0
    assert largest_error([], [], [], "an oracle") == 0


@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15])
def test_without_onnxruntime_batch_normalisation_uses_the_stored_statistics(opset, tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "onnxruntime_installed", lambda: False)
    values = {"scale": 2.0, "bias": 1.0, "mean": 3.0, "variance": 4.0}
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 1, 3]) for name in "xy")
    node = helper.make_node("BatchNormalization", ["x", *values], ["y"], epsilon=0.0)
    weights = [helper.make_tensor(name, TensorProto.FLOAT, [1], [value]) for name, value in values.items()]
    graph = helper.make_graph([node], "norm", [x], [y], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), tmp_path / "norm.onnx")
    value = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    (found,) = load_reference(tmp_path / "norm.onnx", 1, ()).run({"x": value})
    np.testing.assert_allclose(found, (value - 3) / 2 * 2 + 1, rtol=1e-6)


def test_lines_that_differ_in_numbers_only_are_folded():
    lines = ["for i in range(4):", *(f"    a[{k}] = b[i + {k}]" for k in range(9)), "end"]
    assert shorten("\n".join(lines), 10).splitlines() == [*lines[:3], "    … 7 more like this", "end"]


def test_listings_are_cut_in_length_and_width():
    shown = shorten("\n".join("x" * (200 + k) for k in range(5)), 3).splitlines()
    assert shown[-1] == "… 2 more lines"
    assert all(line.endswith("…") and len(line) <= 140 for line in shown[:-1])


LLVM_IR = """\
define i32 @f() {
entry:
  %a = add i64 1, 2
  %b = add i64 1, 2
  %c = add i64 1, 2
  %d = add i64 1, 2
  br label %"loop"
loop:
  %e = add i64 1, 2
  br i1 %x, label %"loop", label %"exit"
exit:
  ret i32 0
}
"""


def test_the_hot_block_is_a_loop_or_else_the_longest():
    assert hot_block(LLVM_IR).startswith("loop:\n")
    assert "br i1" in hot_block(LLVM_IR)
    assert hot_block(LLVM_IR.replace('label %"loop", label', 'label %"exit", label')).startswith("entry:\n")


def unknown_model():
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Unheard", ["x"], ["y"], domain="of.nobody")], "m", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*d) for d in (("", 17), ("of.nobody", 1))])


def test_a_reference_says_that_it_cannot_load_a_model(tmp_path):
    save(unknown_model(), tmp_path / "unknown.onnx")
    with pytest.raises(CheckError, match=r"(onnxruntime|evaluator) cannot load the model: .*Unheard"):
        load_reference(tmp_path / "unknown.onnx", 1, [None])


def test_a_model_that_nobody_knows_has_no_value_in_float64():
    with pytest.raises(ModelError, match=r"the model cannot be evaluated in float64: .*Unheard"):
        widened_model.exact_outputs(unknown_model(), {"x": np.zeros(3, np.float32)})
