"""A seeded detector, from image to crops: convolutions, boxes over a grid, suppression, the best of what stays, and
what the features have inside of it. One compilation serves images of all sizes; it is saved and loaded."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

CLASSES, FEATURES, BEST = 3, 8, 6
SETTINGS = [(1, 32, 48), (2, 24, 24), (1, 40, 16), (3, 12, 20), (1, 4, 4)]
"""Images, rows and columns."""


class Model:
    """Nodes and weights of a graph. Mutable: they are added one by one."""

    def __init__(self, seed):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def const(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op}_{len(self.nodes)}", **attributes))
        return name

    def conv(self, x, inputs, outputs, size=3, stride=1):
        weight = self.rng.standard_normal((outputs, inputs, size, size)) * (2 / (inputs * size * size)) ** 0.5
        edge = size // 2
        return self.add("Conv", x, self.const(weight.astype(np.float32)), pads=[edge] * 4, strides=[stride] * 2)

    def grid(self, head, axis):
        """0, 1, … along an axis of a head, shaped so that it broadcasts."""
        extent = self.add("Squeeze", self.add("Shape", head, start=axis, end=axis + 1))
        numbers = self.add("Range", self.const(np.int64(0)), extent, self.const(np.int64(1)))
        shape = self.const(np.array([1, 1, -1, 1] if axis == 2 else [1, 1, 1, -1]))
        return self.add("Reshape", self.add("Cast", numbers, to=TensorProto.FLOAT), shape)

    def channels(self, x, begin, end):
        return self.add("Slice", x, *(self.const(np.array([v])) for v in (begin, end, 1)))


def detector(seed=0):
    m = Model(seed)
    features = m.add(
        "Relu", m.conv(m.add("Relu", m.conv("image", 3, FEATURES, stride=2)), FEATURES, FEATURES, stride=2)
    )
    head = m.conv(features, FEATURES, 4, 1)
    columns = m.add("Add", m.channels(head, 0, 1), m.grid(head, 3))
    rows = m.add("Add", m.channels(head, 1, 2), m.grid(head, 2))
    sizes = m.add("Exp", m.channels(head, 2, 4))
    boxes = m.add("Reshape", m.add("Concat", columns, rows, sizes, axis=1), m.const(np.array([0, 4, -1])))
    boxes = m.add("Transpose", boxes, perm=[0, 2, 1])
    classes = m.add("Softmax", m.conv(features, FEATURES, CLASSES, 1), axis=1)
    scores = m.add("Reshape", classes, m.const(np.array([0, CLASSES, -1])))
    chosen = m.add("NonMaxSuppression", boxes, scores, "most", "overlap", "least", center_point_box=1)
    sample, of_class, box = (m.add("Gather", chosen, m.const(np.array([k])), axis=1) for k in range(3))
    place = m.add("Concat", sample, box, axis=1)
    found = m.add("GatherND", boxes, place)
    confidence = m.add("GatherND", scores, m.add("Concat", sample, of_class, box, axis=1))
    count = m.add("Min", m.add("Shape", confidence), m.const(np.array([BEST])))
    m.nodes.append(helper.make_node("TopK", [confidence, count], ["confidence", "order"], axis=0))
    best, of = (m.add("Gather", value, "order") for value in (found, m.add("Squeeze", sample, m.const(np.array([1])))))
    middle, half = m.channels(best, 0, 2), m.add("Div", m.channels(best, 2, 4), m.const(np.float32(2)))
    corners = m.add("Concat", m.add("Sub", middle, half), m.add("Add", middle, half), axis=1)
    m.nodes.append(
        helper.make_node("RoiAlign", [features, corners, of], ["crops"], output_height=3, output_width=2, mode="avg")
    )
    m.nodes.append(helper.make_node("Unique", [m.add("Reshape", of_class, m.const(np.array([-1])))], ["kinds"]))
    m.nodes.append(helper.make_node("Identity", [corners], ["boxes"]))
    infos = [
        helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"]),
        helper.make_tensor_value_info("most", TensorProto.INT64, [1]),
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("overlap", "least")),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("boxes", "confidence", "crops", "kinds")]
    graph = helper.make_graph(m.nodes, "detector", infos, outputs, m.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.fixture(scope="module")
def model():
    return detector()


@pytest.fixture(scope="module")
def engine(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("detector") / "detector.lwlib"
    lw.compile(model, jobs=1).save(path)
    return lw.Engine(lw.load(path))


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_images_of_all_sizes(model, engine, setting):
    images, rows, columns = setting
    rng = np.random.default_rng(rows)
    for most, overlap, least in ((5, 0.3, 0.34), (100, 0.6, 0.0), (1, 0.0, 0.4)):
        fed = {
            "image": rng.standard_normal((images, 3, rows, columns)).astype(np.float32),
            "most": np.array([most]),
            "overlap": np.array([overlap], np.float32),
            "least": np.array([least], np.float32),
        }
        for found, wanted in zip(engine(fed), ReferenceEvaluator(model).run(None, fed), strict=True):
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_an_image_in_which_nothing_is_found(engine):
    fed = [np.zeros((1, 3, 16, 16), np.float32), np.array([3]), *np.array([[0.5], [2.0]], np.float32)]
    assert [found.shape for found in engine(fed)] == [(0, 4), (0,), (0, FEATURES, 3, 2), (0,)]
