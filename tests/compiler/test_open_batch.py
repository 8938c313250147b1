"""``batch_invariant=True``: compilations for different batches give a sample the same bits."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright import te
from loopwright.cli import main

nn = lw.nn
TARGET = "x86-64-v3"
SIZES = (1, 2, 7, 32)


def weight(*shape):
    return lw.const(np.random.default_rng(np.prod(shape, dtype=int)).standard_normal(shape).astype(np.float32))


def normal(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def pooled(x):
    return nn.avg_pool(nn.relu(nn.conv2d(x, weight(16, 8, 3, 3), padding=1)), 7, 1)


def flattened(x):
    """As models have it whose exporter knew the batch: its size stands in the shapes of reshapes."""
    size = int(x.type.shape[0])
    rows = nn.matmul(nn.reshape(x, (size * 10, 32)), weight(32, 32))
    heads = nn.transpose(nn.reshape(rows, (size, 10, 2, 16)), (0, 2, 1, 3))
    return nn.reshape(nn.softmax(nn.matmul(heads, nn.transpose(heads, (0, 1, 3, 2)))), (size, -1))


GRAPHS = {"pooled": (pooled, (8, 7, 7)), "flattened": (flattened, (10, 32))}


def function_of(name, size):
    make, shape = GRAPHS[name]
    x = lw.var("x", (size, *shape))
    return lw.Function([x], make(x))


def first_sample(library, *inputs):
    return lw.Engine(library, threads=1)(list(inputs))[0][0].tobytes()


@pytest.mark.parametrize("name", GRAPHS)
def test_compilations_for_different_batches_give_a_sample_the_same_bits(name):
    samples = normal(max(SIZES), *GRAPHS[name][1])
    made = {n: lw.compile(function_of(name, n), target=TARGET, jobs=1, batch_invariant=True) for n in SIZES}
    assert len({first_sample(library, samples[:n]) for n, library in made.items()}) == 1
    whole = lw.Engine(made[32])([samples])[0]
    reference = lw.Engine(lw.compile(function_of(name, 32), target=TARGET, jobs=1, precision="strict"))([samples])[0]
    np.testing.assert_allclose(whole, reference, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch_invariant", [False, True])
def test_without_it_they_may_differ(batch_invariant):
    """Few rows are summed in lanes, and many term by term, unless nothing is chosen by their number."""
    samples, w, bits = normal(32, 100), normal(30, 100), set()
    for size in (1, 32):
        x, y = lw.var("x", (size, 100)), lw.var("y", (30, 100))
        f = lw.Function([x, y], nn.dense(x, y))
        library = lw.compile(f, target=TARGET, jobs=1, batch_invariant=batch_invariant)
        bits.add(first_sample(library, samples[:size], w))
    assert len(bits) == (1 if batch_invariant else 2)


def test_a_run_takes_the_batch_that_it_was_compiled_for_which_the_code_knows():
    library = lw.compile(function_of("pooled", 2), target=TARGET, jobs=1, batch_invariant=True)
    assert repr(library).endswith("batch-invariant>")
    assert str(library.inputs[0]) == "x: float32[2, 8, 7, 7]"
    assert library.outputs[0].shape == (2, 16, 1, 1)
    with pytest.raises(lw.RuntimeArgumentError, match=r"should have shape \(2, 8, 7, 7\), found \(3, 8, 7, 7\)"):
        lw.Engine(library)([normal(3, 8, 7, 7)])
    assert all("if n0 == 2:" in f.loop_ir for f in library.functions if "conv" in f.name)


def test_it_is_saved_and_loaded(tmp_path):
    made = lw.compile(function_of("pooled", 2), target=TARGET, jobs=1, batch_invariant=True)
    made.save(tmp_path / "a.lwlib")
    x = normal(2, 8, 7, 7)
    assert first_sample(made, x) == first_sample(lw.load(tmp_path / "a.lwlib"), x)


def test_inputs_that_are_no_samples_stay_as_they_are():
    """Also where they happen to be as long as the batch."""
    x, y, w = lw.var("x", (32, 32)), lw.var("y", (32, 32)), lw.var("w", (32, 32))
    f = lw.Function([x, w, y], nn.add(nn.matmul(x, w), y))
    library = lw.compile(f, target=TARGET, jobs=1, batch_invariant=True)
    calls = {choice.call for function in library.functions for choice in function.choices if choice.anchor}
    assert calls == {"nn.matmul(float32[n0, 32], float32[32, 32])"}
    a, b, c = normal(3, 32, 32)
    np.testing.assert_allclose(lw.Engine(library)([a, b, c])[0], a @ b + c, rtol=1e-4, atol=1e-4)


def test_an_open_batch_stays_open():
    x = lw.var("x", (te.var("n"), 8, 7, 7))
    library = lw.compile(lw.Function([x], pooled(x)), target=TARGET, jobs=1, batch_invariant=True)
    assert library.inputs[0].shape == ("n", 8, 7, 7)


@pytest.fixture
def model(tmp_path):
    """An open batch, flattened by what its shape is computed to be, in a file."""
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", ("n", 8, 7, 7)), ("y", None))]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("AveragePool", ["c"], ["p"], kernel_shape=[7, 7]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    w = numpy_helper.from_array(normal(16, 8, 3, 3), "w")
    made = helper.make_model(
        helper.make_graph(nodes, "g", infos[:1], infos[1:], [w]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(made, tmp_path / "a.onnx")
    return tmp_path / "a.onnx"


def test_models_whose_batch_is_given_by_shapes(model):
    samples, bits = normal(32, 8, 7, 7), set()
    for size in SIZES:
        shapes = {"x": (size, 8, 7, 7)}
        library = lw.compile(model, TARGET, shapes, jobs=1, batch_invariant=True)
        assert library.inputs[0].shape == (size, 8, 7, 7)
        bits.add(first_sample(library, samples[:size]))
    open_one = lw.compile(model, TARGET, jobs=1)
    assert bits == {first_sample(open_one, samples)}


def test_commands_take_it(model, tmp_path, capsys):
    options = ["--target", TARGET, "--shape", "x=2,8,7,7", "--batch-invariant"]
    assert main(["run", str(model), *options, "--check"]) == 0
    assert main(["compile", str(model), "-o", str(tmp_path / "a.lwlib"), *options]) == 0
    assert repr(lw.load(tmp_path / "a.lwlib")).endswith("batch-invariant>")
    assert main(["explain", str(model), *options]) == 0
    assert main(["dump", str(model), *options, "--stage", "te"]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "a.lwlib"), "--batch-invariant"]) == 1
    assert "it takes no --batch-invariant" in capsys.readouterr().err


def test_a_function_that_holds_for_one_batch_only_is_refused():
    x = lw.var("x", (4, 4))
    f = lw.Function([x], nn.matmul(nn.transpose(x), weight(4, 4)))
    with pytest.raises(lw.ModelError, match=r"model holds for a batch of 4 only.*Leave out batch_invariant"):
        lw.compile(f, target=TARGET, batch_invariant=True)


def test_a_model_whose_open_batch_meets_a_number_is_refused():
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    constant = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "sum", ends[:1], ends[1:], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(lw.ModelError, match=r"for a batch of 4 only.*: its operators ask for it\. Leave out"):
        lw.compile(model, target=TARGET, shapes={"x": (4, 4)}, batch_invariant=True)


def test_shapes_that_contradict_the_model_are_refused_as_ever():
    f = function_of("pooled", 2)
    with pytest.raises(lw.ModelError, match=r"input x is declared as float32\[2, 8, 7, 7\], which .* 3 contradicts"):
        lw.compile(f, target=TARGET, shapes={"x": (3, 8, 7, 7)}, batch_invariant=True)


def test_blas_promises_nothing():
    with pytest.raises(lw.TargetError, match=r"cblas sums in orders of its own: take a target without -libs"):
        lw.compile(function_of("pooled", 2), target="llvm -mcpu=x86-64-v3 -libs=cblas", batch_invariant=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": te.var("n")}, "batch is a tuple of symbolic dimensions, as te.var makes them, found n"),
        ({"batch": (4,)}, r"batch is a tuple of symbolic dimensions, .* found \(4,\)"),
        ({"batch_size": -1}, "batch_size is a whole number of samples, 0 or more, found -1"),
        ({"batch_size": "2"}, "batch_size is a whole number of samples, 0 or more, found '2'"),
    ],
)
def test_what_is_no_batch_is_refused(given, message):
    x = lw.var("x", (te.var("n"), 3))
    with pytest.raises(lw.TypeInferenceError, match=message):
        lw.Function([x], nn.relu(x), **given)
