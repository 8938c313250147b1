"""Sequences and optionals: through the importer, compiled, saved and loaded, against onnx's reference evaluator."""

import importlib
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.case import node as node_cases
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright import onnx_backend
from loopwright.base.errors import KernelError

BOOL, FLOAT, INT = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64


def tensor(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def sequence(name, shape=None, kind=FLOAT, optional=False):
    proto = helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, shape))
    return helper.make_value_info(name, helper.make_optional_type_proto(proto) if optional else proto)


def any_value(name):
    return onnx.ValueInfoProto(name=name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def model_of(nodes, inputs, outputs, stored=None, opset=18):
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (stored or {}).items()]
    infos = [output if isinstance(output, onnx.ValueInfoProto) else any_value(output) for output in outputs]
    graph = helper.make_graph(nodes, "g", inputs, infos, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def arange(*shape, begin=0):
    return (np.arange(np.prod(shape, dtype=int)) + begin).reshape(shape).astype(np.float32)


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        if isinstance(b, list):
            assert isinstance(a, list)
            assert_same(a, b)
        elif b is None:
            assert a is None
        else:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-6)


def check(model, fed, tmp_path, shapes=None, expected=None):
    """Compiled, saved and loaded, a model gives what onnx's evaluator does, or what is expected."""
    wanted = ReferenceEvaluator(model).run(None, fed) if expected is None else expected
    lw.compile(model, shapes=shapes, jobs=1, progress=False).save(tmp_path / "m.lwlib")
    assert_same(lw.Engine(lw.load(tmp_path / "m.lwlib"))(fed), wanted)


BACKEND = {
    "identity": ["test_identity_sequence", "test_identity_opt"],
    "if_": ["test_if_seq", "test_if_opt"],
    "optionalgetelement": [
        f"test_optional_get_element_{kind}" for kind in ("optional_tensor", "tensor", "optional_sequence", "sequence")
    ],
    "optionalhaselement": [
        f"test_optional_has_element_{kind}"
        for kind in (
            "tensor_input",
            "optional_input",
            "empty_optional_input",
            "empty_no_input_name_optional_input",
            "empty_no_input_optional_input",
            "empty_no_input_name_tensor_input",
            "empty_no_input_tensor_input",
        )
    ],
    "sequenceinsert": ["test_sequence_insert_at_back", "test_sequence_insert_at_front"],
    "splittosequence": [f"test_split_to_sequence_{kind}" for kind in ("1", "2", "nokeepdims")],
    "sequence_map": [
        f"test_sequence_map_{kind}{form}"
        for kind in (
            "identity_1_sequence",
            "identity_2_sequences",
            "identity_1_sequence_1_tensor",
            "add_2_sequences",
            "add_1_sequence_1_tensor",
            "extract_shapes",
        )
        for form in ("", "_expanded")
    ],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in BACKEND.items() for name in names])
def test_cases_of_the_official_runner(module, name):
    importlib.import_module(f"onnx.backend.test.case.node.{module}")
    case = next(case for case in node_cases._NodeTestCases if case.name == name)
    prepared = onnx_backend.prepare(case.model)
    for inputs, expected in case.data_sets:
        assert_same(prepared.run(inputs), expected)


@dataclass
class Case:
    """Nodes that use an operator, what they make of x, and the versions of the operator."""

    op: str
    versions: tuple
    nodes: list
    expected: list
    domain: str = ""


X = np.arange(12, dtype=np.float32).reshape(4, 3)
TENSOR = helper.make_tensor_type_proto(FLOAT, [4, 3])
THREE = node("SequenceConstruct", ["x", "y", "x"], ["s"])
TWICE = node("Add", ["x", "x"], ["y"])
CASES = [
    Case("SequenceEmpty", (11,), [node("SequenceEmpty", [], ["s"]), node("SequenceLength", ["s"], ["z"])], np.array(0)),
    Case("SequenceConstruct", (11,), [TWICE, THREE, node("SequenceAt", ["s", "one"], ["z"])], X + X),
    Case("SequenceAt", (11,), [TWICE, THREE, node("SequenceAt", ["s", "back"], ["z"])], X + X),
    Case("SequenceLength", (11,), [TWICE, THREE, node("SequenceLength", ["s"], ["z"])], np.array(3)),
    Case("SequenceInsert", (11,), [TWICE, THREE, node("SequenceInsert", ["s", "x", "one"], ["z"])], [X, X, X + X, X]),
    Case("SequenceErase", (11,), [TWICE, THREE, node("SequenceErase", ["s", "one"], ["z"])], [X, X]),
    Case("ConcatFromSequence", (11,), [TWICE, THREE, node("ConcatFromSequence", ["s"], ["z"], axis=-1)],
         np.concatenate([X, X + X, X], axis=1)),
    Case("SplitToSequence", (11, 24), [node("SplitToSequence", ["x", "parts"], ["z"])], [X[:3], X[3:]]),
    Case("Optional", (15, 28), [node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["z"])], X),
    Case("OptionalHasElement", (15, 18, 28),
         [node("Optional", [], ["o"], type=TENSOR), node("OptionalHasElement", ["o"], ["z"])], np.array(False)),
    Case("OptionalGetElement", (15, 18, 28), [node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["z"])],
         X),
]  # fmt: skip


@pytest.mark.parametrize(("case", "version"), [pytest.param(c, v, id=f"{c.op}-{v}") for c in CASES for v in c.versions])
def test_operators(case, version):
    stored = {"one": np.array(1), "back": np.array(-2), "parts": np.array([3, 1])}
    model = model_of(case.nodes, [tensor("x", [4, 3])], ["z"], stored, opset=version)
    assert_same(lw.Engine(lw.compile(model, jobs=1, progress=False))({"x": X}), [case.expected])


LISTS = {"a": arange(2, 3), "b": arange(4, 3, begin=10), "c": arange(3, begin=50).reshape(1, 3)}


def test_a_sequence_of_known_length_takes_nothing_at_run_time(tmp_path):
    nodes = [
        node("SplitToSequence", ["x", "parts"], ["s"], axis=1),
        node("SequenceAt", ["s", "one"], ["second"]),
        node("SequenceErase", ["s"], ["less"]),
        node("SequenceInsert", ["less", "second", "zero"], ["more"]),
        node("ConcatFromSequence", ["more"], ["y"], axis=1),
        node("SequenceLength", ["more"], ["n"]),
    ]
    stored = {"parts": [1, 2, 3], "zero": np.array(0), "one": np.array(1)}
    model = model_of(nodes, [tensor("x", ["b", 6])], ["y", "n"], stored)
    for rows in (1, 5):
        check(model, {"x": arange(rows, 6)}, tmp_path)
    assert "born_extents" not in str(lw.from_onnx(model))


def test_splitting_and_concatenating_folds_away():
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
        node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1),
    ]
    x = arange(4, 5)
    library = lw.compile(model_of(nodes, [tensor("x", [4, 5])], ["y"]), jobs=1, progress=False)
    np.testing.assert_array_equal(lw.Engine(library)({"x": x})[0], x)


def without(tensors, position):
    number = range(len(tensors))[position]
    return [*tensors[:number], *tensors[number + 1 :]]


def with_inserted(tensors, position, t):
    """Python's lists say what the standard does; onnx's evaluator takes the position behind the last tensor for 0."""
    return [*tensors[:position], t, *tensors[position:]]


@pytest.mark.parametrize("alike", [True, False], ids=["one_shape", "other_shapes"])
@pytest.mark.parametrize("form", ["listed", "ragged"])
def test_positions_that_only_the_run_knows(alike, form):
    tensors = [arange(2, 3, begin=9 * k) for k in range(3)] if alike else list(LISTS.values())
    t = arange(2, 3, begin=100)
    nodes = [
        node("SequenceAt", ["s", "p"], ["at"]),
        node("SequenceErase", ["s", "p"], ["less"]),
        node("SequenceInsert", ["s", "t", "q"], ["more"]),
        node("SequenceLength", ["more"], ["n"]),
        node("SequenceErase", ["more"], ["most"]),
        node("ConcatFromSequence", ["most"], ["all"], axis=0),
    ]
    given = [tensor("t", [2, 3]), tensor("p", [], INT), tensor("q", [1], INT)]
    if form == "listed":
        nodes = [node("SequenceConstruct", [*LISTS], ["s"]), *nodes]
        inputs = [*(tensor(name, value.shape) for name, value in zip(LISTS, tensors, strict=True)), *given]
        fed = dict(zip(LISTS, tensors, strict=True))
    else:
        inputs = [sequence("s", [2, 3] if alike else ["n", 3]), *given]
        fed = {"s": tensors}
    model = model_of(nodes, inputs, ["at", "less", "more", "n", "all"])
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for p, q in ((0, 0), (1, 3), (2, 1), (-1, -1), (-3, -3)):
        more = with_inserted(tensors, q, t)
        wanted = [tensors[p], without(tensors, p), more, np.array(4), np.concatenate(more[:-1])]
        assert_same(engine({**fed, "t": t, "p": np.array(p), "q": np.array([q])}), wanted)
    for p, q in ((3, 0), (-4, 0), (0, 4), (0, -4)):
        with pytest.raises(lw.RuntimeArgumentError, match="position"):
            engine({**fed, "t": t, "p": np.array(p), "q": np.array([q])})


def body_of(nodes, inputs, outputs, stored=None):
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (stored or {}).items()]
    return helper.make_graph(nodes, "body", inputs, [any_value(name) for name in outputs], constants)


def test_a_sequence_of_any_length_is_mapped_by_a_loop():
    body = body_of([node("MatMul", ["e", "w"], ["p"]), node("Add", ["p", "t"], ["r"])], [*map(any_value, "et")], ["r"])
    nodes = [node("SequenceMap", ["s", "t"], ["y"], body=body), node("SequenceLength", ["y"], ["n"])]
    model = model_of(nodes, [sequence("s", [2, 3]), tensor("t", [4])], ["y", "n"], {"w": arange(3, 4)})
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    t = arange(4)
    for length in (1, 3, 0):
        tensors = [arange(2, 3, begin=k) for k in range(length)]
        assert_same(engine({"s": tensors, "t": t}), [[x @ arange(3, 4) + t for x in tensors], np.array(length)])


def test_a_mapped_sequence_of_known_length_may_have_tensors_of_any_shape(tmp_path):
    body = body_of([node("Mul", ["e", "e"], ["r"]), node("Shape", ["e"], ["d"])], [any_value("e")], ["r", "d"])
    model = model_of([node("SequenceMap", ["s"], ["y", "shapes"], body=body)], [sequence("s")], ["y", "shapes"])
    tensors = [arange(2, 3), arange(4), arange(1, 1, 2)]
    expected = [[x * x for x in tensors], [np.array(x.shape) for x in tensors]]
    check(model, {"s": tensors}, tmp_path, {"s": [x.shape for x in tensors]}, expected)


def loop_of(body_nodes, carried, stored=None, given=None, outputs=("y",), extra=(), nodes=(), behind=(), first=()):
    """A Loop over x by m iterations, between other nodes; the body's parameters are i, c and what is carried.

    A sequence begins with the tensors ``first``.
    """
    body = body_of(body_nodes, [tensor("i", [], INT), tensor("c", [], TensorProto.BOOL), *carried], ["c_", *extra])
    inner = [name for name in ("seq", "state") if name in {i.name for i in carried}]
    before = {"seq": "empty", "state": "start"}
    loop = node("Loop", ["m", "go", *(before[name] for name in inner)], list(outputs), body=body)
    begin = (
        node("SequenceConstruct", [*first], ["empty"]) if first else node("SequenceEmpty", [], ["empty"], dtype=FLOAT)
    )
    ends = [behind[-1].output[0]] if behind else list(outputs)
    return model_of([*([begin] if "seq" in inner else []), *nodes, loop, *behind], given or [], ends, stored)


APPEND = [
    node("Identity", ["c"], ["c_"]),
    node("Cast", ["i"], ["number"], to=FLOAT),
    node("Mul", ["x", "number"], ["e"]),
    node("SequenceInsert", ["seq", "e"], ["first"]),
    node("SequenceInsert", ["first", "x"], ["seq_"]),
]


@pytest.mark.parametrize("known", [3, 200, None])
def test_a_loop_that_appends(known):
    given = [tensor("x", ["n"]), *([tensor("m", [], INT)] if known is None else [])]
    stored = {"go": np.array(True), **({} if known is None else {"m": np.array(known)})}
    model = loop_of(APPEND, [sequence("seq")], stored, given, extra=["seq_"])
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for trips in (2, 5) if known is None else (known,):
        x = arange(4, begin=trips)
        fed = {"x": x} if known is not None else {"x": x, "m": np.array(trips)}
        assert_same(engine(fed), [[e for k in range(trips) for e in (x * np.float32(k), x)]])


def appending_vectors(shape, behind=()):
    """A loop that appends vectors to a sequence that begins with a tensor of another shape."""
    nodes = [
        node("Identity", ["c"], ["c_"]),
        node("Cast", ["i"], ["number"], to=FLOAT),
        node("Mul", ["x", "number"], ["e"]),
        node("SequenceInsert", ["seq", "e"], ["seq_"]),
    ]
    given = [tensor("x", ["n"]), tensor("m", [], INT), tensor("t", list(shape))]
    stored = {"go": np.array(True), "zero": np.array(0)}
    return loop_of(nodes, [sequence("seq")], stored, given, extra=["seq_"], first=["t"], behind=behind)


@pytest.mark.parametrize("shape", [(), (2, 3)], ids=["scalar", "matrix"])
def test_a_loop_may_append_tensors_of_another_rank(shape):
    engine = lw.Engine(lw.compile(appending_vectors(shape), jobs=1, progress=False))
    counting = appending_vectors(shape, [node("SequenceLength", ["y"], ["length"])])
    count = lw.Engine(lw.compile(counting, jobs=1, progress=False))
    x, first = arange(4, begin=1), arange(*shape, begin=5)
    for trips in (3, 0, 1):
        fed = {"x": x, "m": np.array(trips), "t": first}
        assert_same(engine(fed), [[first, *(x * np.float32(k) for k in range(trips))]])
        assert count(fed)[0] == trips + 1


@pytest.mark.parametrize(
    "behind", [node("SequenceAt", ["y", "zero"], ["z"]), node("ConcatFromSequence", ["y"], ["z"], axis=0)]
)
def test_what_takes_tensors_out_of_such_a_sequence_is_refused(behind):
    with pytest.raises(lw.ModelError, match="to which a loop has appended tensors of another rank"):
        lw.compile(appending_vectors((2, 3), [behind]), progress=False)


def test_scalars_are_inserted_into_a_sequence_of_any_length():
    given = [sequence("s", []), tensor("x", [])]
    model = model_of([node("SequenceInsert", ["s", "x"], ["y"])], given, ["y"])
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for count in (3, 0):
        values, x = [np.array(k, np.float32) for k in range(count)], np.array(7, np.float32)
        assert_same(engine({"s": values, "x": x}), [[*values, x]])


def test_a_loop_that_a_condition_ends_appends_until_then():
    nodes = [
        node("Cast", ["i"], ["number"], to=FLOAT),
        node("Mul", ["x", "number"], ["e"]),
        node("Less", ["i", "last"], ["c_"]),
        node("SequenceInsert", ["seq", "e"], ["seq_"]),
    ]
    given = [tensor("x", ["n"]), tensor("m", [], INT), tensor("last", [], INT)]
    model = loop_of(nodes, [sequence("seq")], {"go": np.array(True)}, given, extra=["seq_"])
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    x = arange(3, begin=1)
    for most, last in ((10, 4), (2, 8), (6, 0)):
        fed = {"x": x, "m": np.array(most), "last": np.array(last)}
        assert_same(engine(fed), [[x * np.float32(k) for k in range(min(most, last + 1))]])


def test_iterations_of_a_known_number_may_change_the_shape_of_what_they_carry(tmp_path):
    nodes = [node("Identity", ["c"], ["c_"]), node("Concat", ["state", "x"], ["state_"], axis=0)]
    stored = {"go": np.array(True), "m": np.array(3)}
    given = [tensor("x", ["n"]), tensor("start", [2])]
    model = loop_of(nodes, [any_value("state")], stored, given, extra=["state_"])
    x, start = arange(3), arange(2, begin=9)
    check(model, {"x": x, "start": start}, tmp_path, expected=[np.concatenate([start, x, x, x])])


def branches(then, otherwise, outputs=("y",)):
    return {
        "then_branch": body_of(*then, outputs=list(outputs)),
        "else_branch": body_of(*otherwise, outputs=list(outputs)),
    }


def if_model(then, otherwise, outputs=("y",), given=(), stored=None, nodes=()):
    both = branches((then, []), (otherwise, []), outputs)
    inputs = [tensor("c", [], TensorProto.BOOL), *given]
    return model_of([node("If", ["c"], list(outputs), **both), *nodes], inputs, list(outputs), stored)


def test_branches_may_give_tensors_of_different_extents():
    then = [node("Concat", ["x", "x"], ["y"], axis=1)]
    otherwise = [node("Relu", ["x"], ["y"])]
    model = if_model(then, otherwise, given=[tensor("x", ["n", 3])])
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for rows in (1, 4):
        for taken in (True, False):
            fed = {"c": np.array(taken), "x": arange(rows, 3, begin=-5)}
            assert_same(engine(fed), ReferenceEvaluator(model).run(None, fed))


def test_a_branch_may_compute_extents_of_its_own():
    """What becomes an extent in a branch is computed before the If; where the branch is not taken it asks nothing."""
    then = [
        node("NonZero", ["x"], ["places"]),
        node("Shape", ["places"], ["shape"]),
        node("Gather", ["shape", "one"], ["count"]),
        node("Reshape", ["x", "wanted"], ["z"]),
        node("ReduceSum", ["z"], ["sum"], keepdims=0),
        node("Range", ["zero", "count", "one"], ["y"]),
    ]
    otherwise = [node("Range", ["zero", "k", "one"], ["y"])]
    given = [tensor("x", ["n"]), tensor("k", [], INT), tensor("wanted", [2], INT)]
    model = if_model(then, otherwise, given=given, stored={"zero": np.array(0), "one": np.array(1)})
    x = np.array([0, 1, 2, 0, 3, 0], np.float32)
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    fed = {"x": x, "k": np.array(2), "wanted": np.array([2, 3])}
    assert_same(engine({"c": np.array(True), **fed}), [np.arange(3)])
    assert_same(engine({"c": np.array(False), **fed}), [np.arange(2)])
    assert_same(engine({"c": np.array(False), **fed, "wanted": np.array([-7, 5])}), [np.arange(2)])


def test_one_element_may_be_a_scalar_in_one_branch_and_a_vector_in_the_other():
    then, otherwise = [node("ReduceMax", ["x"], ["y"], keepdims=0)], [node("ReduceMin", ["x"], ["y"], keepdims=1)]
    engine = lw.Engine(lw.compile(if_model(then, otherwise, given=[tensor("x", ["n"])]), jobs=1, progress=False))
    x = arange(4, begin=3)
    assert_same(engine({"c": np.array(True), "x": x}), [x.max()])
    assert_same(engine({"c": np.array(False), "x": x}), [x.min()])


def test_branches_may_give_sequences_of_different_lengths(tmp_path):
    then = [node("SequenceConstruct", ["a", "b"], ["y"])]
    otherwise = [node("SequenceConstruct", ["b"], ["y"])]
    model = if_model(then, otherwise, given=[tensor("a", [2, "n"]), tensor("b", [3, 2])])
    for taken in (True, False):
        check(model, {"c": np.array(taken), "a": arange(2, 4), "b": arange(3, 2)}, tmp_path)


def test_a_branch_may_give_an_empty_optional(tmp_path):
    kind = helper.make_tensor_type_proto(FLOAT, [3])
    then = [node("Optional", [], ["o"], type=kind)]
    otherwise = [node("Optional", ["x"], ["o"])]
    has = [node("OptionalHasElement", ["o"], ["has"])]
    both = branches((then, []), (otherwise, []), ["o"])
    model = model_of(
        [node("If", ["c"], ["o"], **both), *has],
        [tensor("c", [], TensorProto.BOOL), tensor("x", [3])],
        ["o", "has"],
    )
    x = arange(3)
    check(model, {"c": np.array(True), "x": x}, tmp_path, expected=[None, np.array(False)])
    check(model, {"c": np.array(False), "x": x}, tmp_path, expected=[x, np.array(True)])


def test_phases_and_bound_engines_take_and_give_lists():
    nodes = [
        node("SequenceInsert", ["s", "t"], ["y"]),
        node("ConcatFromSequence", ["y"], ["z"], axis=0),
    ]
    model = model_of(nodes, [sequence("s", ["n", 2]), tensor("t", [1, 2])], ["y", "z"])
    for shapes in (None, {"s": [(2, 2), (3, 2)]}):
        tensors, t = [arange(2, 2), arange(3, 2, begin=7)], arange(1, 2)
        wanted = [[*tensors, t], np.concatenate([*tensors, t])]
        engine = lw.Engine(lw.compile(model, shapes=shapes, jobs=1, progress=False)).init()
        engine.set_input("s", tensors)
        engine.set_input(1, t)
        engine.run()
        assert_same([engine.get_output("y"), engine.get_output("z")], wanted)
        assert_same([engine.get_output(0), engine.get_output(1)], wanted)
        assert_same(engine([tensors, t]), wanted)
        assert_same(engine.bind({"s": tensors, "t": t})(), wanted)
        outputs = engine({"s": tensors, "t": t})
        assert outputs.keys() == ["y", "z"]
        assert_same(outputs["y"], wanted[0])


def test_an_absent_input_takes_none():
    nodes = [node("OptionalHasElement", ["o"], ["has"])]
    model = model_of(nodes, [sequence("o", ["n"], optional=True)], ["has"])
    engine = lw.Engine(lw.compile(model, shapes={"o": None}, jobs=1, progress=False))
    assert not engine({"o": None})[0]
    assert lw.Engine(lw.compile(model, jobs=1, progress=False))({"o": [arange(2)]})[0]


def test_sequences_of_strings_are_lists_of_arrays_of_strings():
    nodes = [node("SequenceConstruct", ["words", "words"], ["s"]), node("SequenceErase", ["s"], ["y"])]
    words = onnx.helper.make_tensor("words", TensorProto.STRING, [2], [b"one", b"two"])
    graph = helper.make_graph(nodes, "g", [], [any_value("y")], [words])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (found,) = lw.Engine(lw.compile(model, jobs=1, progress=False))([])
    assert [list(words) for words in found] == [["one", "two"]]


def test_a_node_runs_on_lists():
    insert = node("SequenceInsert", ["s", "t", "p"], ["y"])
    tensors, t = [arange(2), arange(3, begin=5)], arange(1)
    assert_same(onnx_backend.run_node(insert, [tensors, t, np.array(1)]), [[tensors[0], t, tensors[1]]])
    with pytest.raises(lw.RuntimeArgumentError, match="the input s is None"):
        onnx_backend.run_node(insert, [None, t, np.array(1)])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("open_axis", [True, False])
def test_a_vector_of_open_length_says_into_which_parts_a_tensor_is_split(axis, open_axis):
    extents = ["a", "b", "c"] if open_axis else [6, 6, 6]
    model = model_of(
        [node("SplitToSequence", ["x", "parts"], ["s"], axis=axis), node("SequenceAt", ["s", "p"], ["y"])],
        [tensor("x", extents), tensor("parts", ["n"], INT), tensor("p", [], INT)],
        ["s", "y"],
    )
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    x = arange(6, 6, 6)
    for parts in ([2, 0, 3, 1], [6], [0, 6], [1] * 6):
        wanted = np.split(x, np.cumsum(parts)[:-1], axis)
        assert_same(engine({"x": x, "parts": np.array(parts), "p": np.array(-1)}), [wanted, wanted[-1]])
    for parts in ([2, 3], [4, 4], [8, -2]):
        with pytest.raises(lw.RuntimeArgumentError, match="what the extents of the parts come to, -1"):
            engine({"x": x, "parts": np.array(parts), "p": np.array(0)})


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_one_extent_are_alike_however_many_there_are(size, axis):
    """Exporters write ``ConstantOfShape`` of ones for rows; what has the shape of a part has a known number of axes."""
    nodes = [
        node("ConstantOfShape", ["n"], ["parts"], value=helper.make_tensor("v", INT, [1], [size])),
        node("SplitToSequence", ["x", "parts"], ["s"], axis=axis),
        node("SequenceAt", ["s", "p"], ["part"]),
        node("Shape", ["part"], ["shape"]),
        node("ConcatFromSequence", ["s"], ["y"], axis=axis),
    ]
    inputs = [tensor("x", ["a", "b"]), tensor("n", [1], INT), tensor("p", [], INT)]
    engine = lw.Engine(lw.compile(model_of(nodes, inputs, ["part", "shape", "y"]), jobs=1, progress=False))
    x = arange(6, 6)
    part = np.split(x, 6 // size, axis)[1]
    feed = {"x": x, "n": np.array([6 // size]), "p": np.array(1)}
    assert_same(engine(feed), [part, np.array(part.shape), x])
    with pytest.raises(lw.RuntimeArgumentError):
        engine(feed | {"n": np.array([5])})


def appending_made(nodes, stored, carried=()):
    """A loop that appends ``made`` in each iteration, and what all of that is behind it, side by side."""
    names = [f"{name}_" for name, _ in carried]
    states = [tensor(name, [], INT) for name, _ in carried]
    body = helper.make_graph(
        [*nodes, node("SequenceInsert", ["s", "made"], ["t"]), node("Identity", ["c"], ["d"])],
        "body",
        [
            tensor("i", [], INT),
            tensor("c", [], BOOL),
            *states,
            helper.make_tensor_sequence_value_info("s", FLOAT, None),
        ],
        [
            tensor("d", [], BOOL),
            *(tensor(name, [], INT) for name in names),
            helper.make_tensor_sequence_value_info("t", FLOAT, None),
        ],
    )
    around = [
        node("SequenceEmpty", [], ["none"]),
        node("Size", ["sizes"], ["n"]),
        helper.make_node(
            "Loop",
            ["n", "", *(first for _, first in carried), "none"],
            [*(f"{n}last" for n in names), "all"],
            body=body,
        ),
        node("ConcatFromSequence", ["all"], ["y"], axis=0),
    ]
    return model_of(around, [tensor("sizes", ["k"], INT), tensor("x", ["k", 3])], ["y"], stored)


REPEATED = [
    node("Gather", ["sizes", "i"], ["size"]),
    node("Reshape", ["size", "one"], ["rows"]),
    node("Gather", ["x", "i"], ["row"]),
]


@pytest.mark.parametrize("through", ["shape", "float shape", "chosen shape"])
def test_a_loop_appends_tensors_whose_size_data_decide(through):
    """As exporters write what is repeated so many times: each run finds the largest number before the loop."""
    shape = {
        "shape": [node("Concat", ["rows", "three"], ["shape"], axis=0)],
        "float shape": [
            node("Cast", ["rows"], ["real"], to=FLOAT),
            node("Floor", ["real"], ["whole"]),
            node("Cast", ["whole"], ["again"], to=INT),
            node("Min", ["again", "rows"], ["fewest"]),
            node("Concat", ["fewest", "three"], ["shape"], axis=0),
        ],
        "chosen shape": [
            node("Concat", ["rows", "minus"], ["given"], axis=0),
            node("Equal", ["given", "minuses"], ["open"]),
            node("Where", ["open", "threes", "given"], ["shape"]),
        ],
    }[through]
    stored = {"one": np.array([1]), "three": np.array([3]), "minus": np.array([-1])}
    stored |= {"threes": np.array([3, 3]), "minuses": np.array([-1, -1])}
    model = appending_made([*REPEATED, *shape, node("Expand", ["row", "shape"], ["made"])], stored)
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for sizes in ([1], [2, 0, 3], [0, 0], [1, 7, 1, 1, 2]):
        x = arange(len(sizes), 3, begin=len(sizes))
        assert_same(engine({"sizes": np.array(sizes), "x": x}), [np.repeat(x, sizes, 0)])
    with pytest.raises(KernelError, match="should be from 0 to"):
        engine({"sizes": np.array([2, -3]), "x": arange(2, 3)})


@pytest.mark.parametrize("cast", ["before", "behind"])
def test_a_loop_appends_tensors_of_as_many_rows_as_floats_say(cast):
    """Cast to integers before other extents stand beside them, or behind that, as the sizes of heat maps are."""
    sizes = {
        "before": [
            node("Cast", ["real"], ["size"], to=INT),
            node("Reshape", ["size", "one"], ["rows"]),
            node("Concat", ["rows", "three"], ["shape"], axis=0),
        ],
        "behind": [
            node("Reshape", ["real", "one"], ["row_count"]),
            node("Reshape", ["width", "one"], ["columns"]),
            node("Concat", ["row_count", "columns"], ["reals"], axis=0),
            node("Cast", ["reals"], ["shape"], to=INT),
        ],
    }[cast]
    nodes = [
        node("Gather", ["x", "i"], ["row"]),
        node("Gather", ["row", "first"], ["real"]),
        node("Gather", ["widths", "i"], ["width"]),
        *sizes,
        node("Expand", ["row", "shape"], ["made"]),
    ]
    stored = {"one": np.array([1]), "three": np.array([3]), "first": np.array(0), "widths": np.full(9, 3, np.float32)}
    engine = lw.Engine(lw.compile(appending_made(nodes, stored), jobs=1, progress=False))
    for column in ([0.0, 2.9], [7.2, 0.1, 1.5, 3.0]):
        x = arange(len(column), 3)
        x[:, 0] = column
        wanted = np.repeat(x, x[:, 0].astype(int), 0)
        assert_same(engine({"sizes": np.zeros(len(column), np.int64), "x": x}), [wanted])


def test_loops_in_loops_make_tensors_whose_size_data_decide():
    """The inner one by numbers of the outer one's iteration."""
    inner = helper.make_graph(
        [
            node("Gather", ["counts", "j"], ["count"]),
            node("Reshape", ["count", "one"], ["extent"]),
            node("ConstantOfShape", ["extent"], ["ones"], value=onnx.numpy_helper.from_array(np.ones(1, np.float32))),
            node("ReduceSum", ["ones"], ["sum"]),
            node("Add", ["total", "sum"], ["total_"]),
            node("Identity", ["g"], ["g_"]),
        ],
        "inner",
        [tensor("j", [], INT), tensor("g", [], BOOL), tensor("total", [1])],
        [tensor("g_", [], BOOL), tensor("total_", [1])],
    )
    nodes = [
        node("Gather", ["sizes", "i"], ["size"]),
        node("Add", ["sizes", "size"], ["counts"]),
        helper.make_node("Loop", ["n", "", "zero"], ["made"], body=inner),
    ]
    stored = {"one": np.array([1]), "zero": np.zeros(1, np.float32)}
    engine = lw.Engine(lw.compile(appending_made(nodes, stored), jobs=1, progress=False))
    for sizes in ([1], [2, 0, 3]):
        totals = np.array([sum(a + b for b in sizes) for a in sizes], np.float32)
        assert_same(engine({"sizes": np.array(sizes), "x": arange(len(sizes), 3)}), [totals])


def test_tensors_that_iterations_decide_the_size_of():
    nodes = [
        *REPEATED,
        node("Mul", ["size", "k"], ["k_"]),
        node("Reshape", ["k_", "one"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["made"]),
    ]
    model = appending_made(nodes, {"one": np.array([1]), "first": np.array(1)}, [("k", "first")])
    engine = lw.Engine(lw.compile(model, jobs=1, progress=False))
    for sizes in ([3], [2, 0, 5], [2, 3, 7, 5]):
        wanted = np.zeros(np.cumprod(sizes, dtype=np.int64).sum(), np.float32)
        assert_same(engine({"sizes": np.array(sizes, np.int64), "x": arange(len(sizes), 3)}), [wanted])


TEXTS = [np.array(words, object) for words in (["a", "bç"], ["c"], [], ["dd", "e", "f"])]
TEXT = TensorProto.STRING


def sequence_of_strings(name):
    return helper.make_tensor_sequence_value_info(name, TEXT, ["n"])


@pytest.mark.parametrize("form", ["ragged", "listed"])
def test_sequences_may_be_of_strings(form):
    """As inputs and outputs, at positions that only the run knows; all that is moved shares bytes."""
    nodes = [
        node("SequenceAt", ["s", "p"], ["at"]),
        node("StringConcat", ["at", "at"], ["twice"]),
        node("SequenceInsert", ["s", "twice", "p"], ["more"]),
        node("SequenceErase", ["more", "q"], ["less"]),
        node("SequenceLength", ["less"], ["n"]),
        node("ConcatFromSequence", ["less"], ["joined"], axis=0),
    ]
    inputs = [sequence_of_strings("s"), tensor("p", [], INT), tensor("q", [], INT)]
    outputs = ["at", sequence_of_strings("more"), sequence_of_strings("less"), "n", "joined"]
    shapes = {"s": [text.shape for text in TEXTS]} if form == "listed" else None
    engine = lw.Engine(lw.compile(model_of(nodes, inputs, outputs, opset=21), shapes=shapes, jobs=1, progress=False))
    for p, q in ((0, 0), (3, -1), (-2, 1)):
        at = TEXTS[p]
        more = with_inserted(TEXTS, p, at + at)
        less = without(more, q)
        found = engine({"s": TEXTS, "p": np.array(p), "q": np.array(q)})
        wanted = [at, more, less, np.array(len(less)), np.concatenate(less)]
        for a, b in zip(found, wanted, strict=True):
            assert type(a) is type(b)
            pairs = zip(a, b, strict=True) if isinstance(a, list) else [(a, b)]
            for one, other in pairs:
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("extent", [6, "n"])
def test_strings_are_split_into_sequences(extent):
    nodes = [
        node("SplitToSequence", ["x", "two"], ["s"]),
        node("SequenceAt", ["s", "p"], ["part"]),
        node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    inputs = [tensor("x", [extent], TEXT), tensor("p", [], INT)]
    engine = lw.Engine(lw.compile(model_of(nodes, inputs, ["part", "y"], {"two": np.array(2)}), jobs=1, progress=False))
    x = np.array(["a", "", "bç", "c", "dd", "é"], object)
    part, joined = engine({"x": x, "p": np.array(1)})
    np.testing.assert_array_equal(part, x[2:4])
    np.testing.assert_array_equal(joined, x)
