"""Models that are damaged, foreign or not supported: a ModelError that says what is wrong, and nothing is run."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw

FLOAT = TensorProto.FLOAT
node = helper.make_node


def value(name, shape=(3,), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs=("x",), outputs=("y",), initializers=(), opset=13, **more):
    infos = [value(i) if isinstance(i, str) else i for i in inputs]
    graph = helper.make_graph(nodes, "test", infos, [onnx.ValueInfoProto(name=o) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)


def relu():
    return model([node("Relu", ["x"], ["y"], name="r")])


def refused(made, message, **more):
    with pytest.raises(lw.ModelError, match=message) as caught:
        lw.from_onnx(made, **more)
    return str(caught.value)


# Files.


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "none.onnx", r"model file .*none\.onnx cannot be read: No such file")
    refused(tmp_path, r"cannot be read: Is a directory")


def test_what_is_no_model_at_all():
    refused(3, "a model is a path, bytes or an onnx.ModelProto, found a int")
    refused(b"", "no ONNX model")
    refused(b"hello, this is no protobuf", "no ONNX model")
    refused(b"\x7fELF" * 100, "no ONNX model")
    refused(numpy_helper.from_array(np.zeros(3)).SerializeToString(), "no ONNX model")


def test_a_file_that_is_cut_short_is_refused_or_complete():
    """At no length may it be taken for a smaller model, nor raise anything else."""
    weights = numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    data = model([node("MatMul", ["x", "w"], ["y"])], [value("x", (2, 3))], ["y"], [weights]).SerializeToString()
    for length in range(len(data)):
        try:
            made = lw.from_onnx(data[:length])
        except lw.ModelError:
            continue
        assert str(made) == str(lw.from_onnx(data))


@pytest.mark.parametrize("seed", range(5))
def test_bytes_that_are_changed_at_random_raise_nothing_else(seed):
    weights = numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Softmax", ["a"], ["y"], axis=1)]
    data = model(nodes, [value("x", (2, 3))], ["y"], [weights]).SerializeToString()
    rng = random.Random(seed)
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        try:
            lw.from_onnx(bytes(changed))
        except lw.ModelError:
            continue


def test_a_model_without_its_essentials():
    graphless = onnx.ModelProto()
    graphless.ir_version = 8
    refused(graphless, "without a graph")
    refused(model([node("Relu", ["x"], ["y"])], outputs=()), "without any outputs")
    plain = relu()
    del plain.opset_import[:]
    refused(plain, "without an operator set version")


# Structure.


def test_a_cycle():
    made = model([node("Add", ["x", "b"], ["a"], name="one"), node("Relu", ["a"], ["b"], name="two")], outputs=["a"])
    refused(made, r"cycle: node 'one' \(Add\) → node 'two' \(Relu\) → node 'one'")


def test_a_node_that_feeds_itself():
    refused(model([node("Relu", ["y"], ["y"], name="r")]), "cycle: node 'r'")


def test_a_value_that_nothing_produces():
    refused(
        model([node("Relu", ["z"], ["y"], name="r")]), r"node 'r' \(Relu\) uses the value 'z', which nothing produces"
    )
    refused(model([node("Relu", ["x"], ["y"])], outputs=["z"]), "output 'z' of the graph is produced by nothing")


def test_a_value_that_is_produced_twice():
    twice = model([node("Relu", ["x"], ["y"], name="a"), node("Exp", ["x"], ["y"], name="b")])
    refused(twice, r"value 'y' is produced twice: by node 'a' \(Relu\) and by node 'b' \(Exp\)")
    refused(model([node("Relu", ["x"], ["x"])], outputs=["x"]), "twice: by an input of the graph")
    refused(model([node("Relu", ["x"], ["y"])], ["x", "x"]), "two inputs called 'x'")


def test_an_output_that_the_operator_does_not_have():
    made = model([node("Relu", ["x"], ["y", "z"], name="r"), node("Exp", ["z"], ["w"])], outputs=["w"])
    refused(made, "the value 'z' is used, but no operator gives it")


def test_an_input_or_an_attribute_that_is_missing():
    refused(model([node("Add", ["x"], ["y"], name="a")]), r"node 'a' \(Add\): input 1 is missing")
    refused(model([node("Concat", ["x"], ["y"], name="c")]), r"node 'c' \(Concat\): attribute axis is missing")
    refused(model([node("Concat", ["x"], ["y"], axis=1.5)]), "attribute axis is of type FLOAT")


def test_an_input_or_an_attribute_that_the_operator_has_not_in_this_version():
    old = node("ReduceSum", ["x"], ["y"], axes=[0], name="r")
    lw.from_onnx(model([old], opset=11))
    refused(
        model([old]), r"'r' \(ReduceSum\): there is no attribute axes in operator set 13; its attributes are keepdims"
    )
    refused(model([node("Relu", ["x"], ["y"], alpha=0.5)]), "no attribute alpha in operator set 13; .* are none")
    refused(model([node("Relu", ["x", "x"], ["y"])]), "2 inputs are given, it takes at most 1")


# What is not supported.


def test_all_operators_that_are_not_supported_are_listed_at_once():
    nodes = [
        node("Hash", ["x"], ["a"], name="first", domain="ai.onnx.ml"),
        node("Unknown", ["x"], ["b"], name="second"),
        node("Fancy", ["x"], ["c"], name="third", domain="com.example"),
        node("Hash", ["x"], ["d"], name="fourth", domain="ai.onnx.ml"),
        node("Relu", ["x"], ["y"], name="fine"),
    ]
    made = model(nodes)
    made.opset_import.extend([helper.make_opsetid("com.example", 2), helper.make_opsetid("ai.onnx.ml", 3)])
    text = refused(made, "the model uses 3 operators that cannot be converted")
    assert "Hash (domain 'ai.onnx.ml', not in operator set 3): nodes 'first', 'fourth'" in text
    assert "Unknown (ONNX, not in operator set 13): node 'second'" in text
    assert "Fancy (domain 'com.example', not in operator set 2): node 'third'" in text
    assert "Relu" not in text


def test_operators_in_functions_and_branches_are_listed_as_well():
    function = helper.make_function("own", "F", ["a"], ["b"], [node("Hash", ["a"], ["b"], domain="ai.onnx.ml")],
                                    [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 3)])  # fmt: skip
    branch = helper.make_graph(
        [node("Shuffle", ["x"], ["u"], name="inside", domain="ai.onnx.ml")],
        "b",
        [],
        [onnx.ValueInfoProto(name="u")],
    )
    nodes = [
        node("F", ["x"], ["y"], name="call", domain="own"),
        node("If", ["c"], ["z"], then_branch=branch, else_branch=branch),
    ]
    made = model(nodes, ["x", value("c", (), TensorProto.BOOL)], functions=[function], opset=20)
    made.opset_import.extend([helper.make_opsetid("own", 1), helper.make_opsetid("ai.onnx.ml", 3)])
    text = refused(made, "2 operators")
    assert "Hash (domain 'ai.onnx.ml', not in operator set 3): node 'call'" in text
    assert "Shuffle (domain 'ai.onnx.ml', not in operator set 3): nodes 'inside', 'inside'" in text


def test_a_domain_that_the_model_does_not_import():
    refused(model([node("Relu", ["x"], ["y"], domain="elsewhere")]), "Relu .*its domain is not imported by the model")


def test_an_operator_set_from_the_future():
    refused(
        model([node("Relu", ["x"], ["y"])], opset=999), "operator set 999 of ONNX; the installed onnx package knows"
    )
    refused(model([node("Relu", ["x"], ["y"])], opset=0), "operator set 0")


def test_an_operator_that_was_removed_before_the_operator_set():
    made = model([node("Upsample", ["x"], ["y"], name="u")], opset=13)
    refused(made, "Upsample .*node 'u'")


def test_a_function_that_calls_itself():
    function = helper.make_function("own", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="own")],
                                    [helper.make_opsetid("own", 1)])  # fmt: skip
    made = model([node("F", ["x"], ["y"], domain="own", name="f")], functions=[function])
    made.opset_import.append(helper.make_opsetid("own", 1))
    refused(made, "the function F of the model calls itself, by way of node 'f'")


def test_element_types_and_values_that_are_not_supported():
    refused(model([node("Identity", ["x"], ["y"])], [value("x", (3,), TensorProto.COMPLEX64)]),
            "'x' has element type COMPLEX64, which is not supported")  # fmt: skip
    refused(model([node("Identity", ["x"], ["y"])], [value("x", (3,), 99)]), "element type 99, which is none of ONNX's")
    scores = onnx.ValueInfoProto(name="x")
    scores.type.map_type.key_type = TensorProto.INT64
    refused(model([node("Identity", ["x"], ["y"])], [scores]), "the values of input 'x' are no tensors")
    refused(model([node("Identity", ["x"], ["y"])], [onnx.ValueInfoProto(name="x")]), "'x' is a value without type")


def test_training_of_each_element_is_refused():
    channels = [value(f"p{k}", (2,)) for k in range(4)]
    names = ["x", *(f"p{k}" for k in range(4))]
    made = model([node("BatchNormalization", names, ["y", "m", "v"], spatial=0, name="bn")],
                 [value("x", (1, 2)), *channels], opset=7)  # fmt: skip
    refused(made, r"node 'bn' \(BatchNormalization\): training.* is not supported")


def test_a_shape_of_any_rank():
    made = model([node("Reshape", ["x", "s"], ["y"], name="r")], ["x", value("s", ("n",), TensorProto.INT64)])
    refused(made, r"node 'r' \(Reshape\): how many numbers .* must be known when .* found int64\[n\]")


def test_types_that_do_not_fit_name_the_node():
    made = model([node("Add", ["x", "z"], ["y"], name="sum")], [value("x", (3,)), value("z", (4,))])
    refused(
        made, r"node 'sum' \(Add\): add\(a: float32\[3\], b: float32\[4\]\): extents 3 of a and 4 of b do not broadcast"
    )


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("shape", [(1, 3, 8), (1, 3, 8, 8, 8)])
def test_a_window_of_another_rank_than_the_input_names_the_node(auto_pad, shape):
    weights = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    for operator in ("Conv", "MaxPool"):
        names, options = (["x", "w"], {}) if operator == "Conv" else (["x"], {"kernel_shape": [3, 3]})
        windowed = node(operator, names, ["y"], name="c", auto_pad=auto_pad, **options)
        refused(model([windowed], [value("x", shape)], initializers=[weights]), rf"node 'c' \({operator}\)")


def test_shapes_that_are_given_wrongly():
    refused(relu(), "shapes= names 'z', which is no input of the model; its inputs are 'x'", shapes={"z": (3,)})
    refused(relu(), r"input 'x' has 1 dimensions, but the shape given is \(3, 4\)", shapes={"x": (3, 4)})
    refused(relu(), "negative extent", shapes={"x": (-2,)})
    two = model([node("Add", ["a", "b"], ["y"])], [value("a", ("n",)), value("b", ("n",))])
    refused(two, "make dimension 'n' both 3 and 4", shapes={"a": (3,), "b": (4,)})


# Tensors.


def huge(*dims):
    tensor = numpy_helper.from_array(np.zeros(1, np.float32), "w")
    del tensor.dims[:]
    tensor.dims.extend(dims)
    return tensor


def test_tensors_that_are_declared_too_large_are_refused_before_anything_is_allocated():
    add = [node("Add", ["x", "w"], ["y"])]
    refused(model(add, initializers=[huge(2**40, 2**30)]), r"initializer 'w' is declared as .* too large")
    refused(model([node("Relu", ["x"], ["y"])], [value("x", (2**40, 2**20))]), r"'x' is declared as .* too large")
    shape = numpy_helper.from_array(np.array([2**40, 2**40]), "s")
    refused(
        model([node("ConstantOfShape", ["s"], ["y"], name="c")], [], initializers=[shape]),
        "the result of node 'c'.*too large",
    )
    shape = numpy_helper.from_array(np.array([2**40, 2**40, 1]), "s")
    refused(
        model([node("Expand", ["x", "s"], ["y"], name="e")], initializers=[shape]), "the result of node 'e'.*too large"
    )


def scalar(name, number):
    return numpy_helper.from_array(np.asarray(number), name)


@pytest.mark.parametrize(
    ("limit", "step", "count"),
    [(10**12, 1, "1000000000000"), (-(10**12), -3, "333333333334"), (2.5e11, 2.5, "100000000000"), (2**63 - 1, 1, "")],
)
def test_a_range_of_too_many_steps_is_refused_and_how_to_raise_the_limit_told(limit, step, count):
    kind = type(step)
    scalars = [scalar("a", kind(0)), scalar("b", kind(limit)), scalar("c", kind(step))]
    made = model(
        [node("Range", ["a", "b", "c"], ["r"], name="r"), node("ReduceSum", ["r"], ["y"])], [], initializers=scalars
    )
    message = rf"the result of node 'r' \(Range\) is declared .* {count} steps .*LOOPWRIGHT_STEP_LIMIT"
    refused(made, message if count else "result of node 'r'.*too large")


def test_steps_are_allowed_by_the_environment(monkeypatch):
    scalars = [scalar("a", 0), scalar("b", 1000), scalar("c", 1)]
    made = model([node("Range", ["a", "b", "c"], ["y"])], [], initializers=scalars)
    monkeypatch.setenv("LOOPWRIGHT_STEP_LIMIT", "999")
    refused(made, "takes 1000 steps of a loop, and the limit is 999")
    monkeypatch.setenv("LOOPWRIGHT_STEP_LIMIT", "1K")
    lw.from_onnx(made)


def test_an_identity_matrix_that_is_too_large_is_refused():
    shape = numpy_helper.from_array(np.array([2**19, 2**19]), "s")
    zeros = node("ConstantOfShape", ["s"], ["z"])
    refused(model([zeros, node("EyeLike", ["z"], ["y"], name="e")], [], initializers=[shape]), "too large.*steps")


def test_tensors_whose_data_does_not_fill_their_shape():
    add = [node("Add", ["x", "w"], ["y"])]
    refused(model(add, initializers=[huge(3)]), r"initializer 'w' should have 12 bytes for its shape \[3\], but has 4")
    refused(model(add, initializers=[huge(-3)]), "negative extent")
    typed = TensorProto(name="w", data_type=FLOAT, dims=[3], float_data=[1.0])
    refused(model(add, initializers=[typed]), r"should have 3 elements for its shape \[3\], but has 1")


def external(location, length=12, offset=0):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=entry)
    return model([node("Add", ["x", "w"], ["y"])], initializers=[tensor])


def test_external_data_that_is_missing_or_elsewhere(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(12))
    (folder / "short.bin").write_bytes(bytes(8))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path = folder / "m.onnx"

    def stored(made):
        path.write_bytes(made.SerializeToString())
        return path

    refused(stored(external("none.bin")), "'none.bin', but there is no such file beside the model")
    refused(stored(external("../secret.bin")), "'../secret.bin', which is outside the folder of the model")
    refused(stored(external(str(tmp_path / "secret.bin"))), "outside the folder of the model")
    refused(stored(external("link.bin")), "outside the folder of the model")
    refused(stored(external("")), "does not say in which")
    refused(stored(external("short.bin")), "short.bin is too short: it ends before 12")
    refused(stored(external("short.bin", offset=-4)), "from -4 on")
    refused(stored(external("short.bin", length=8)), "should have 12 bytes of external data, but says 8")
    refused(stored(external("short.bin", length="many")), "no numbers")
    refused(external("short.bin"), "stored in another file, 'short.bin': give the path of the model")
