"""Models with symbolic dimensions: one library serves all shapes, saved and loaded too; its plans are bounded."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.model.compile_model import compile_model
from loopwright.compiler.settings import CompileSettings
from loopwright.runtime.plans import MAX_PLANS

RNG = np.random.default_rng(5)
N, H, W = te.var("N"), te.var("H"), te.var("W")


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True)) if x.size else x
    return e / e.sum(-1, keepdims=True)


W1, B1, W2 = normal(20, 24), normal(24), normal(24, 5)


@pytest.fixture(scope="module")
def perceptron():
    x = lw.var("x", (N, 20))
    hidden = lw.nn.relu(lw.nn.add(lw.nn.matmul(x, lw.const(W1)), lw.const(B1)))
    return lw.compile(lw.Function([x], lw.nn.softmax(lw.nn.matmul(hidden, lw.const(W2)))), jobs=1)


@pytest.fixture(params=["compiled", "loaded"])
def library(request, perceptron, tmp_path):
    if request.param == "compiled":
        return perceptron
    perceptron.save(tmp_path / "perceptron.lwlib")
    return lw.load(tmp_path / "perceptron.lwlib")


def test_one_library_serves_every_batch(library):
    engine = lw.Engine(library)
    for batch in (1, 7, 0, 64, 1):
        x = normal(batch, 20)
        expected = softmax(np.maximum(x @ W1 + B1, 0) @ W2)
        np.testing.assert_allclose(engine({"x": x})[0], expected, rtol=1e-4, atol=1e-6)


def test_a_bound_engine_runs_on_its_arrays_again_whatever_shapes_come_between(perceptron):
    engine = lw.Engine(perceptron)
    x = normal(3, 20)
    run = engine.bind({"x": x})
    (first,) = run()
    np.testing.assert_array_equal(first, engine([x])[0])
    x[:] = normal(3, 20)
    expected = lw.Engine(perceptron)([x])[0]
    engine([normal(64, 20)])  # another plan and a larger arena
    (again,) = run()
    assert again is first
    np.testing.assert_array_equal(again, expected)


def test_specs_show_dimensions_by_name(library):
    assert str(library) == "<Library model(x: float32[N, 20]) -> (output0: float32[N, 5]), 3 functions>"
    assert library.inputs[0].shape == ("N", 20)


def test_given_shapes_make_a_model_of_numbers(perceptron):
    x = lw.var("x", (N, 4))
    made = lw.compile(lw.Function([x], lw.nn.relu(x)), shapes={"x": (3, 4)}, jobs=1)
    assert (made.model.dims, made.inputs[0].shape) == ((), (3, 4))


def test_part_of_a_shape_may_be_given():
    x = lw.var("x", (N, H, W))
    made = lw.compile(lw.Function([x], lw.nn.relu(x)), shapes={"x": (None, 5, None)}, jobs=1)
    assert made.inputs[0].shape == ("N", 5, "W")


def test_outputs_have_formulas_of_dimensions():
    x, weight = lw.var("x", (N, 3, H, W)), normal(4, 3, 3, 3)
    conv = lw.nn.relu(lw.nn.conv2d(x, lw.const(weight), strides=2, padding=1))
    pooled = lw.nn.mean(conv, axes=(2, 3))
    library = lw.compile(lw.Function([x], lw.op.Tuple((conv, pooled))), jobs=1)
    assert str(library.outputs[0]) == "output0: float32[N, 4, (H + 1) // 2, (W + 1) // 2]"
    engine = lw.Engine(library)
    for n, h, w in [(1, 8, 8), (2, 7, 10), (3, 1, 1)]:
        x = normal(n, 3, h, w)
        got, mean = engine([x])
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
        expected = np.maximum(np.einsum("nchwrs,kcrs->nkhw", windows, weight), 0)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(mean, expected.mean((2, 3)), rtol=1e-4, atol=1e-5)


def test_functions_that_differ_in_the_names_of_dimensions_are_compiled_once():
    a, b = lw.var("a", (N, 4)), lw.var("b", (H, 4))
    library = lw.compile(lw.Function([a, b], lw.op.Tuple((lw.nn.relu(a), lw.nn.relu(b)))), jobs=1)
    assert len(library.functions) == 1
    one, other = lw.Engine(library)([normal(2, 4), -np.ones((3, 4), np.float32)])
    assert one.shape == (2, 4)
    np.testing.assert_array_equal(other, np.zeros((3, 4)))


def test_two_dimensions_of_one_name_stay_two():
    a, b = lw.var("a", (te.var("n"),)), lw.var("b", (te.var("n"),))
    library = lw.compile(lw.Function([a, b], lw.nn.concatenate([a, b])), jobs=1)
    assert [spec.shape for spec in library.inputs] == [("n",), ("n_1",)]
    assert lw.Engine(library)([normal(2), normal(5)])[0].shape == (7,)


def test_inputs_and_constants_handed_on_have_symbolic_shapes_too():
    x = lw.var("x", (N, 3))
    (got,) = lw.Engine(lw.compile(lw.Function([x], x), jobs=1))([np.ones((4, 3), np.float32)])
    np.testing.assert_array_equal(got, np.ones((4, 3)))


def test_the_plans_of_the_last_shapes_are_kept(perceptron):
    engine = lw.Engine(perceptron)
    for batch in range(MAX_PLANS + 9):
        assert engine([normal(batch, 20)])[0].shape == (batch, 5)
    assert f"plans for {MAX_PLANS} of at most {MAX_PLANS} sets of shapes" in repr(engine)


def test_the_phases_of_a_run_bind_dimensions_when_it_runs(perceptron):
    engine = lw.Engine(perceptron).init()
    for batch in (2, 3):
        engine.set_input("x", normal(batch, 20))
        engine.run()
        assert engine.get_output(0).shape == (batch, 5)


def test_steps_are_timed_for_the_shapes_of_the_inputs(perceptron):
    assert len(lw.Engine(perceptron).time_steps([normal(3, 20)])) == 3


def test_worker_processes_compile_symbolic_functions_to_the_same_code():
    x = lw.var("x", (N, H))
    y = lw.op.Tuple(tuple(op(x) for op in (lw.nn.relu, lw.nn.negative, lw.nn.abs, lw.nn.floor, lw.nn.ceil, lw.nn.sqrt)))
    texts = []
    for jobs in (1, 2):
        options = CodegenOptions(cache=False)
        made = compile_model(lw.Function([x], y), CompileSettings(lw.resolve_target("x86-64-v3"), options), jobs=jobs)
        texts.append([made.entry_llvm_ir, *(f.llvm_ir for f in made.functions)])
    assert texts[0] == texts[1]


def test_a_dimension_that_an_operator_fixes_is_that_number():
    k, m = te.var("k"), te.var("m")
    x, bias = lw.var("x", (N, k)), lw.var("bias", (m,))
    y = lw.nn.relu(lw.nn.add(lw.nn.matmul(x, lw.const(W1)), bias))
    library = lw.compile(lw.Function([x, bias], y), jobs=1)
    inputs, outputs = "x: float32[N, 20], bias: float32[24]", "output0: float32[N, 24]"
    assert str(library) == f"<Library model({inputs}) -> ({outputs}), 1 functions>"


def test_two_dimensions_that_one_operator_fixes():
    h, w = te.var("h"), te.var("w")
    x = lw.var("x", (N, h, w))
    library = lw.compile(lw.Function([x], lw.nn.add(x, lw.const(normal(6, 7)))), jobs=1)
    assert library.inputs[0].shape == ("N", 6, 7)


def test_a_dimension_that_broadcasts_with_a_number_is_that_number_rather_than_1():
    x, condition = lw.var("x", (H,)), lw.const(np.array([[True], [False]]))
    library = lw.compile(lw.Function([x], lw.nn.where(condition, x, lw.const(normal(2, 3)))), jobs=1)
    assert library.inputs[0].shape == (3,)


def chosen(library):
    return [c.implementation for f in library.functions for c in f.choices]


def test_convolutions_of_an_open_batch_take_what_a_known_one_would(convolutions):
    open_batch, known = (lw.compile(convolutions(n), jobs=1, layouts="keep") for n in (N, 3))
    names = ["conv.shifted", "relu.generic", "conv.depthwise", "conv.pointwise", "conv_transpose.phased"]
    assert chosen(open_batch) == chosen(known) == names
    engine, expected = lw.Engine(open_batch), lw.Engine(known)
    x = normal(3, 8, 9, 9)
    np.testing.assert_allclose(engine([x])[0], expected([x])[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(engine([x[:1]])[0], expected([x])[0][:1], rtol=1e-4, atol=1e-4)
    assert engine([x[:0]])[0].shape == (0, 4, 10, 10)


@pytest.fixture(scope="module")
def convolutions():
    weights = [lw.const(normal(*s)) for s in ((16, 8, 3, 3), (16, 1, 3, 3), (8, 16, 1, 1), (8, 4, 3, 3))]

    def network(batch):
        x = lw.var("x", (batch, 8, 9, 9))
        y = lw.nn.relu(lw.nn.conv2d(x, weights[0], padding=1))
        y = lw.nn.conv2d(y, weights[1], padding=1, strides=2, groups=16)
        y = lw.nn.conv2d(y, weights[2])
        return lw.Function([x], lw.nn.conv_transpose(y, weights[3], strides=2, padding=(0, 0, 1, 1)))

    return network


def test_rows_of_open_length_are_folded_in_lanes_where_they_are_long():
    x = lw.var("x", (N, W))
    library = lw.compile(lw.Function([x], lw.op.Tuple((lw.nn.softmax(x), lw.nn.sum(x, -1)))), jobs=1)
    assert chosen(library) == ["softmax.rows", "softmax.short_rows", "sum.rows", "sum.short_rows"]
    assert library.functions[0].choices[0].reason == "where n1 >= 64: priority 10"
    engine = lw.Engine(library)
    for shape in [(3, 1), (2, 63), (2, 64), (1, 97), (0, 70), (2, 0)]:
        x = normal(*shape)
        got, total = engine([x])
        np.testing.assert_allclose(got, softmax(x), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(total, x.sum(-1), rtol=1e-4, atol=1e-5)


def test_extents_of_two_axes_that_meet_rounded_up_stay_open():
    """As where a pyramid of images meets itself: every second row and column, each twice, beside the image."""
    h, w = te.var("h"), te.var("w")
    x = lw.var("x", (1, h, w))
    half = lw.nn.strided_slice(x, [0, 0], [2**62, 2**62], [1, 2], [2, 2])
    twice = lw.nn.repeat(lw.nn.repeat(half, 2, 1), 2, 2)
    library = lw.compile(lw.Function([x], lw.nn.concatenate([x, twice], 0)), jobs=1)
    assert [str(extent) for extent in library.inputs[0].shape] == ["1", "h", "w"]
    engine = lw.Engine(library)
    for shape in ((1, 4, 6), (1, 10, 2), (1, 256, 8)):
        value = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        wanted = np.concatenate([value, value[:, ::2, ::2].repeat(2, 1).repeat(2, 2)])
        np.testing.assert_array_equal(engine([value])[0], wanted)
    with pytest.raises(lw.RuntimeArgumentError, match="should be"):
        engine([np.zeros((1, 5, 6), np.float32)])
