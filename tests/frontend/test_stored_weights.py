"""Large weights of a model in a file stay there until they are used, and what is compiled is free of the file."""

import mmap

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.frontend.stored_weights import LEAST_BYTES, parse_without_weights
from loopwright.graph.node import Constant
from loopwright.graph.visit import post_order

rng = np.random.default_rng(0)
LARGE = rng.standard_normal((256, 128)).astype(np.float32)
SMALL = rng.standard_normal(128).astype(np.float32)


def model_proto():
    weights = [numpy_helper.from_array(LARGE, "large"), numpy_helper.from_array(SMALL, "small")]
    nodes = [helper.make_node("MatMul", ["x", "large"], ["y"]), helper.make_node("Add", ["y", "small"], ["z"])]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (2, 256)), ("z", (2, 128)))]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights), ir_version=10)


@pytest.fixture
def path(tmp_path):
    onnx.save(model_proto(), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def bases(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def test_only_large_weights_are_left_in_the_file(path):
    model = parse_without_weights(path)
    large, small = model.graph.initializer
    assert LARGE.nbytes >= LEAST_BYTES > SMALL.nbytes
    assert large.data_location == TensorProto.EXTERNAL
    assert not large.HasField("raw_data")
    assert numpy_helper.to_array(small).tobytes() == SMALL.tobytes()
    stored = {entry.key: entry.value for entry in large.external_data}
    begin, length = int(stored["offset"]), int(stored["length"])
    assert path.read_bytes()[begin : begin + length] == LARGE.tobytes()


def test_the_rest_of_the_model_is_as_it_was(path):
    model = parse_without_weights(path)
    del model.graph.initializer[:]
    whole = model_proto()
    del whole.graph.initializer[:]
    assert model == whole


def test_a_graph_holds_the_same_weights_mapped_or_not(path):
    for mapped in (False, True):
        graph = lw.from_onnx(path, mapped=mapped)
        found = {n.name: n.value for n in post_order(graph.body) if isinstance(n, Constant)}
        np.testing.assert_array_equal(found["large"], LARGE)
        assert isinstance(bases(found["large"]), mmap.mmap) is mapped


def test_a_compiled_model_does_not_need_the_file(path):
    x = rng.standard_normal((2, 256)).astype(np.float32)
    library = lw.compile(path, jobs=1)
    path.write_bytes(b"")
    assert not any(isinstance(bases(constant), mmap.mmap) for constant in library.model.constants)
    np.testing.assert_allclose(lw.Engine(library)([x])[0], x @ LARGE + SMALL, rtol=1e-4, atol=1e-4)


def test_weights_that_are_not_packed_do_not_need_the_file_either(path):
    x = rng.standard_normal((2, 256)).astype(np.float32)
    library = lw.compile(path, jobs=1, layouts="keep")
    path.write_bytes(b"")
    assert not any(isinstance(bases(constant), mmap.mmap) for constant in library.model.constants)
    np.testing.assert_allclose(lw.Engine(library)([x])[0], x @ LARGE + SMALL, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [0, 1, 20, LARGE.nbytes // 2, LARGE.nbytes + 300])
def test_a_truncated_file_is_left_to_the_parser(path, length):
    path.write_bytes(path.read_bytes()[:length])
    assert parse_without_weights(path) is None
    with pytest.raises(lw.ModelError, match=r"model\.onnx"):
        lw.compile(path)


def test_a_model_by_a_link_finds_its_weights(path):
    link = path.parent / "elsewhere" / "link.onnx"
    link.parent.mkdir()
    link.symlink_to(path)
    graph = lw.from_onnx(link, mapped=True)
    assert any(np.array_equal(n.value, LARGE) for n in post_order(graph.body) if isinstance(n, Constant))


def test_weights_of_the_wrong_size_are_refused(path):
    model = model_proto()
    model.graph.initializer[0].dims[0] = 255
    onnx.save(model, path)
    with pytest.raises(lw.ModelError, match="'large' should have"):
        lw.compile(path)


def test_numbers_that_do_not_end_are_no_model(tmp_path):
    (tmp_path / "endless.onnx").write_bytes(b"\xff" * 100_000)
    with pytest.raises(lw.ModelError, match="no ONNX model"):
        lw.compile(tmp_path / "endless.onnx")


def test_changes_of_a_mapped_array_of_the_caller_stay(tmp_path):
    np.save(tmp_path / "w.npy", np.zeros((64, 64), np.float32))
    weight = np.load(tmp_path / "w.npy", mmap_mode="c")
    weight[...] = 1.0
    x = lw.var("x", (2, 64))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.matmul(x, lw.const(weight))), jobs=1))
    np.testing.assert_array_equal(engine([np.ones((2, 64), np.float32)])[0], np.full((2, 64), 64.0, np.float32))
    assert weight.min() == 1.0
