"""A small network, trained here on scikit-learn's digits and exported to ONNX, gives the same answers when compiled."""

import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import loopwright as lw


def to_onnx(network: MLPClassifier, batch: int):
    """The network as an ONNX model: a Gemm and a Relu a layer, then a Softmax; ``x`` to ``probabilities``."""
    nodes, weights, value = [], [], "x"
    for number, (weight, bias) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        last = number == len(network.coefs_) - 1
        names = [f"weight{number}", f"bias{number}"]
        weights += [
            numpy_helper.from_array(array.astype(np.float32), name)
            for array, name in zip((weight, bias), names, strict=True)
        ]
        nodes.append(helper.make_node("Gemm", [value, *names], [f"sum{number}"], name=f"layer{number}"))
        value = "probabilities" if last else f"hidden{number}"
        nodes.append(helper.make_node("Softmax" if last else "Relu", [f"sum{number}"], [value]))
    features, classes = network.coefs_[0].shape[0], network.coefs_[-1].shape[1]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, features])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [batch, classes])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


pixels, digits = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(pixels / 16, digits, test_size=0.3, random_state=0)
network = MLPClassifier((64, 32), max_iter=300, random_state=0).fit(x_train, y_train)

start = time.perf_counter()
library = lw.compile(to_onnx(network, batch=len(x_test)))
engine = lw.Engine(library)
print(f"{len(library.functions)} fused functions, compiled in {time.perf_counter() - start:.2f} s:")
for function in library.functions:
    print(f"  {function.name}: " + ", ".join(choice.implementation for choice in function.choices))

(probabilities,) = engine({"x": x_test.astype(np.float32)})
accuracy = np.mean(probabilities.argmax(axis=1) == y_test)
expected = network.score(x_test, y_test)
np.testing.assert_allclose(probabilities, network.predict_proba(x_test), atol=1e-5)
assert accuracy == expected
print(f"accuracy on {len(x_test)} held-out digits: {accuracy:.4f}, exactly as scikit-learn's {expected:.4f}")
