"""A small network, trained here on scikit-learn's digits and exported to ONNX, gives the same answers when compiled.

`python examples/trained_digits.py FOLDER` says where the model is kept.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.peers import Network, in_onnxruntime, load_digits, train_network
from support.showing import compare_times, heading, output_folder, short, show_functions

import loopwright as lw


def to_onnx(network: Network) -> onnx.ModelProto:
    """The network as an ONNX model: a Gemm and a Relu a layer, then a Softmax; ``x`` to ``probabilities``."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for number, layer in enumerate(network.layers):
        last = number == len(network.layers) - 1
        names = [f"weight{number}", f"bias{number}"]
        weights += [numpy_helper.from_array(array, name) for array, name in zip(layer, names, strict=True)]
        nodes.append(helper.make_node("Gemm", [value, *names], [f"sum{number}"], name=f"layer{number}"))
        value = "probabilities" if last else f"hidden{number}"
        nodes.append(helper.make_node("Softmax" if last else "Relu", [f"sum{number}"], [value]))
    features, classes = network.layers[0][0].shape[0], network.layers[-1][0].shape[1]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", features])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", classes])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


folder = output_folder()
heading("A network trained with scikit-learn: an ONNX model, compiled")
pixels, digits = load_digits()
train, test = np.split(np.random.default_rng(0).permutation(len(digits)), [len(digits) * 7 // 10])
network = train_network(pixels[train], digits[train])
path = folder / "trained_digits.onnx"
path.write_bytes(to_onnx(network).SerializeToString())

x = pixels[test]
library = lw.compile(path, shapes={"x": x.shape})
engine = lw.Engine(library, threads=1)
onnxruntime = in_onnxruntime(path)

(probabilities,) = engine(x)
expected = network.probabilities(x)
np.testing.assert_allclose(probabilities, expected, atol=1e-5)
np.testing.assert_allclose(probabilities, onnxruntime(x), atol=1e-5)
right, theirs = (np.sum(found.argmax(axis=1) == digits[test], dtype=int) for found in (probabilities, expected))
assert right == theirs

show_functions(library, engine.profile(x))
print(f"{right} of {len(x)} held-out digits are recognised ({right / len(x):.2%}), {theirs} by scikit-learn.")
print(f"All {len(x)} at once on one thread each, with equal probabilities:")
compare_times(
    {
        "loopwright": lambda: engine(x),
        "onnxruntime": lambda: onnxruntime(x),
        "scikit-learn": lambda: network.probabilities(x),
    }
)
print(f"\n{short(path)} is the model.")
