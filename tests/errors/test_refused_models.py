"""A model that is refused: one error tells all that stops it, in few lines and as a list, and which shapes help."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.base.model_problem import ProblemKind

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
node = helper.make_node


def seeded(source, result, name=None):
    """The nodes of a dropout in training, whose numbers NumPy draws for a shape that has to be known."""
    ratio, training = f"{result}_ratio", f"{result}_training"
    return (
        node("Constant", [], [ratio], value_float=0.5),
        node("Constant", [], [training], value=helper.make_tensor("t", BOOL, (), [True])),
        node("Dropout", [source, ratio, training], [result], seed=1, **({} if name is None else {"name": name})),
    )


def value(name, shape=(3,), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def named(name):
    return onnx.ValueInfoProto(name=name)


def constant(name, numbers):
    return numpy_helper.from_array(np.asarray(numbers), name)


def model(nodes, inputs, outputs=("y",), initializers=(), infos=(), domains=(), functions=()):
    graph = helper.make_graph(nodes, "test", inputs, [named(o) for o in outputs], initializers, value_info=infos)
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(*domain) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


def refused(made, **more):
    with pytest.raises(lw.ModelError) as caught:
        lw.from_onnx(made, **more)
    return caught.value


def found(error):
    """The problems by node, or by their text where no node is at fault."""
    return {problem.node or problem.message: problem for problem in error.problems}


def branch(nodes, output, infos=()):
    return helper.make_graph(nodes, "branch", [], [output], value_info=infos)


def with_faults_in_a_branch():
    """An operator without converter, a value that is not known, and an axis that is not there, all in one branch;
    behind it a type that is not supported."""
    square = ("n", "n")
    body = branch(
        [
            *seeded("h", "e", "eye"),
            node("Fancy", ["x"], ["f"], name="fancy", domain="com.example"),
            node("Add", ["e", "f"], ["g"], name="add"),
            node("Softmax", ["g"], ["s"], axis=7, name="soft"),
        ],
        value("s", square),
        [value("f", square)],
    )
    nodes = [
        node("If", ["c"], ["z"], then_branch=body, else_branch=branch([node("Identity", ["h"], ["t"])],
             value("t", square)), name="if"),
        node("Relu", ["z"], ["r"]),
        node("Cast", ["r"], ["y"], to=TensorProto.COMPLEX64, name="cast"),
    ]  # fmt: skip
    return model(nodes, [value("x", square), value("h", square), value("c", (), BOOL)], domains=[("com.example", 1)])


def test_faults_of_each_kind_are_told_at_once_also_inside_of_a_branch():
    error = refused(with_faults_in_a_branch())
    problems = found(error)
    kinds = {name: problem.kind for name, problem in problems.items()}
    assert kinds == {
        "fancy": ProblemKind.OPERATOR,
        "eye": ProblemKind.VALUE,
        "soft": ProblemKind.NODE,
        "cast": ProblemKind.TYPE,
    }
    assert [problems[name].operator for name in ("fancy", "eye", "soft")] == ["Fancy", "Dropout", "Softmax"]
    text = str(error)
    assert "uses an operator that cannot be converted:\n  Fancy (domain 'com.example', not in operator" in text
    assert "a type is not supported:\n  node 'cast' (Cast) has element type COMPLEX64" in text
    assert "a value would have to be known when the model is compiled:\n  node 'eye' (Dropout)" in text
    assert "a node asks for what cannot be converted:\n  node 'soft' (Softmax)" in text
    assert "give shapes={\"x\": (1, 1)}, and this is known for node 'eye'" in text


def test_what_the_error_advises_helps():
    error = refused(with_faults_in_a_branch())
    again = refused(with_faults_in_a_branch(), shapes=found(error)["eye"].shapes)
    assert found(again).keys() == found(error).keys() - {"eye"}


def test_without_explanation_the_first_fault_is_told_alone():
    assert not refused(model([*seeded("x", "y")], [value("x", ("a", "b"))]), explain=False).problems


def extent_of(axis):
    """A square matrix by an extent of the input, which has to be known."""
    return [
        node("Shape", ["x"], ["all"]),
        node("Slice", ["all", "from", "to"], ["own"]),
        node("Concat", ["own", "own"], ["square"], axis=0),
        node("ConstantOfShape", ["square"], ["zeros"]),
        *seeded("zeros", "y", "eye"),
    ], [constant("from", [axis]), constant("to", [axis + 1])]


@pytest.mark.parametrize(("axis", "advice"), [(0, (1, None, None, None)), (2, (None, None, 224, None))])
def test_only_the_dimension_that_helps_is_advised(axis, advice):
    nodes, constants = extent_of(axis)
    made = model(nodes, [value("x", ("n", 3, "height", "width"))], initializers=constants)
    error = refused(made)
    assert found(error)["eye"].shapes == {"x": advice}
    assert str(error).endswith(f'give shapes={{"x": {advice}}}, and it is known')
    lw.from_onnx(made, shapes=found(error)["eye"].shapes)


def test_an_extent_that_weights_ask_for_is_the_one_advised():
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Transpose", ["x"], ["t"]), *seeded("t", "y")]
    made = model(nodes, [value("x", ("n", "width"))], ("y", "m"), [constant("w", np.ones((48, 2), np.float32))])
    (problem,) = refused(made).problems
    assert problem.shapes == {"x": (1, 48)}


def test_shapes_are_not_advised_where_they_do_not_help():
    nodes = [node("NonZero", ["x"], ["p"]), node("Cast", ["p"], ["q"], to=FLOAT), *seeded("q", "y")]
    error = refused(model(nodes, [value("x", ("n", "m"))]))
    assert [dict(problem.shapes) for problem in error.problems] == [{}]
    assert "shapes=" not in str(error)


def test_what_shows_itself_once_shapes_are_given_is_told_as_well():
    body = [*seeded("a", "e", "inner"), node("Softmax", ["e"], ["b"], axis=9, name="soft")]
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    made = model([node("F", ["x"], ["y"], domain="own", name="call")], [value("x", ("batch", "width"))],
                 domains=[("own", 1)], functions=[function])  # fmt: skip
    problems = found(refused(made))
    assert problems.keys() == {"call/inner", "call/soft"}
    assert problems["call/inner"].shapes == {"x": (1, 224)}
    assert not problems["call/soft"].shapes


@pytest.mark.parametrize("trips", [3, 1000])
def test_faults_in_the_body_of_a_loop_are_told_once_each(trips):
    body = helper.make_graph(
        [
            *seeded("v", "e", "eye"),
            node("Softmax", ["e"], ["w"], axis=9, name="soft"),
            node("Cast", ["v"], ["bad"], to=TensorProto.COMPLEX128, name="cast"),
            node("Identity", ["going"], ["on"]),
        ],
        "body",
        [value("i", (), INT64), value("going", (), BOOL), value("v", ("n", "m"))],
        [value("on", (), BOOL), value("w", ("n", "m")), named("bad")],
        value_info=[value("e", ("n", "m"))],
    )
    made = model([node("Loop", ["trips", "", "x"], ["y", "stack"], body=body)], [value("x", ("n", "m"))],
                 ("y", "stack"), [constant("trips", trips)])  # fmt: skip
    error = refused(made)
    assert [problem.node for problem in error.problems] == ["eye", "soft", "cast"]
    assert found(error)["eye"].shapes == {"x": (1, 128)}


def test_what_only_follows_from_another_fault_is_not_told():
    nodes = [
        node("Fancy", ["x"], ["s"], name="fancy", domain="com.example"),  # gives a shape, as far as anyone knows
        node("Reshape", ["x", "s"], ["r"], name="reshape"),
        node("Fancy", ["x"], ["f"], name="other", domain="com.example"),
        *seeded("f", "e", "eye"),
        node("Flatten", ["r"], ["y"]),
    ]
    infos = [value("s", ("k",), INT64), value("f", ("rows", "columns"))]
    made = model(nodes, [value("x", (2, 2))], ("y", "e"), infos=infos, domains=[("com.example", 1)])
    assert found(refused(made)).keys() == {"fancy", "other"}


def test_types_of_inputs_weights_and_values_are_told_together():
    nodes = [node("Identity", ["a"], ["p"]), node("Softmax", ["x"], ["y"], axis=5, name="soft"),
             node("Identity", ["w"], ["q"])]  # fmt: skip
    weights = TensorProto(name="w", data_type=TensorProto.COMPLEX64, dims=[1], float_data=[1, 2])
    scores = named("m")
    scores.type.map_type.key_type = INT64
    inputs = [value("a", (3,), TensorProto.COMPLEX64), scores, value("x")]
    error = refused(model(nodes, inputs, ("y", "p", "q"), [weights]))
    assert [problem.kind for problem in error.problems] == [*[ProblemKind.TYPE] * 3, ProblemKind.NODE]
    text = str(error)
    for name in (
        "input 'a' has element type COMPLEX64",
        "the values of input 'm' are no tensors",
        "initializer 'w'",
        "node 'soft'",
    ):
        assert name in text


def test_much_is_told_in_few_lines_and_listed_in_full():
    eyes = [made for k in range(40) for made in seeded("x", f"e{k}", f"eye{k}")]
    soft = [node("Softmax", ["x"], [f"s{k}"], name=f"soft{k}", axis=10 + k) for k in range(40)]
    fancy = [node(f"Fancy{k}", ["x"], [f"f{k}"], name=f"fancy{k}") for k in range(40)]
    names = [f"{letter}{k}" for letter in "es" for k in range(40)]
    error = refused(model([*eyes, *soft, *fancy], [value("x", ("n", "m"))], names))
    assert len(error.problems) == 120
    lines = str(error).splitlines()
    assert len(lines) <= 20
    assert "the model uses 40 operators that cannot be converted:" in lines
    assert "40 values would have to be known when the model is compiled:" in lines
    assert any(line.startswith("  nodes 'eye0', 'eye1', 'eye2' and 37 more (Dropout): it needs") for line in lines)
    assert sum(line.startswith("  and ") and line.endswith(" more") for line in lines) == 2


def test_an_error_of_the_shapes_given_is_that_alone():
    made = model([*seeded("x", "y")], [value("x", ("n", "m"))])
    assert "names 'z', which is no input" in str(refused(made, shapes={"z": (3,)}))
    assert "has 2 dimensions, but the shape given is (3,)" in str(refused(made, shapes={"x": (3,)}))


def test_large_weights_do_not_hinder_the_inference_of_types():
    """They are left out of what is handed to onnx, which takes no more than 2 GB."""
    weights = constant("w", np.ones((300, 2), np.float32))
    nodes = [*seeded("x", "e", "eye"), node("MatMul", ["e", "w"], ["m"]),
             node("Softmax", ["m"], ["y"], axis=7, name="soft")]  # fmt: skip
    made = model(nodes, [value("x", ("n", 300))], initializers=[weights])
    before = made.SerializeToString()
    assert found(refused(made)).keys() == {"eye", "soft"}
    assert made.SerializeToString() == before


def test_the_command_line_tells_all_and_the_option_that_helps(tmp_path):
    nodes, constants = extent_of(2)
    nodes.append(node("Fancy", ["x"], ["f"], name="fancy"))
    path = tmp_path / "m.onnx"
    onnx.save(model(nodes, [value("x", ("n", 3, "height", "width"))], initializers=constants), path)
    command = [sys.executable, "-m", "loopwright", "compile", path, "--shape", "x=?,?,?,?", "-o", tmp_path / "m.lwlib"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 1
    assert "Fancy (ONNX, not in operator set 17): node 'fancy'" in run.stderr
    assert "(on the command line: --shape 'x=?,?,224,?')" in run.stderr
