"""A small network, trained here on scikit-learn's digits and exported to ONNX, gives the same answers when compiled.

`python examples/trained_digits.py FOLDER` says where the model is kept.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from support.showing import compare_times, heading, one_thread_session, output_folder, short, show_functions
from threadpoolctl import threadpool_limits

import loopwright as lw


def to_onnx(network: MLPClassifier) -> onnx.ModelProto:
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
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", features])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", classes])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


folder = output_folder()
pixels, digits = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(pixels / 16, digits, test_size=0.3, random_state=0)
x = x_test.astype(np.float32)
heading("A network trained with scikit-learn: an ONNX model, compiled")

with threadpool_limits(1):
    network = MLPClassifier((64, 32), max_iter=300, random_state=0).fit(x_train, y_train)
    path = folder / "trained_digits.onnx"
    onnx.save(to_onnx(network), path)
    library = lw.compile(path, shapes={"x": x.shape})
    engine = lw.Engine(library, threads=1)
    session = one_thread_session(path)

    (probabilities,) = engine(x)
    np.testing.assert_allclose(probabilities, network.predict_proba(x_test), atol=1e-5)
    np.testing.assert_allclose(probabilities, session.run(None, {"x": x})[0], atol=1e-5)
    accuracy, expected = np.mean(probabilities.argmax(axis=1) == y_test), network.score(x_test, y_test)
    assert accuracy == expected
    show_functions(library, engine.profile(x))
    print(f"{accuracy:.2%} of {len(x)} held-out digits are recognised, as by scikit-learn ({expected:.2%}).")
    print(f"All {len(x)} at once on one thread each, with equal probabilities:")
    compare_times(
        {
            "loopwright": lambda: engine(x),
            "onnxruntime": lambda: session.run(None, {"x": x}),
            "scikit-learn": lambda: network.predict_proba(x_test),
        }
    )
print(f"\n{short(path)} is the model.")
