"""Fusion: what becomes one function, what does not and why; random graphs are cut legally, and compute the same."""

import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.fusion import partition as partition_module
from loopwright.compiler.fusion.closed_function import MAX_NAME, as_function, function_name
from loopwright.compiler.fusion.fusion_rules import MAX_CALLS, pattern_of
from loopwright.compiler.fusion.partition import fuse, partition
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.reports.fusion_report import fusion_report
from loopwright.compiler.selection import select as selection
from loopwright.compiler.selection.choices import anchor_number
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Call, Function, Tuple, TupleGet, TupleType, Var, tensor_type
from loopwright.graph.structural import graph_hash
from loopwright.graph.visit import inputs, post_order
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.ops.definition.registry import Op, OpPattern
from loopwright.ops.definition.strategy import OpStrategy, schedule_default
from loopwright.ops.families import concatenate as concatenate_module
from loopwright.ops.families.cumsum import cumsum
from loopwright.ops.families.layout_transform import layout_transform
from loopwright.ops.families.reshape import reshape_to_open

TARGET = lw.resolve_target("x86-64-v3")
nn = lw.nn
X, Y = lw.var("x", (4, 8)), lw.var("y", (4, 8))
W = lw.var("w", (8, 8))


def names(*results, params=(X, Y, W)):
    body = results[0] if len(results) == 1 else Tuple(results)
    return [function_name(group).removeprefix("fused_") for group in partition(Function(params, body))]


def stopped(result, params=(X, Y, W)):
    """What the report says, by the names of the producer and the reader."""
    report = lw.fusion_report(Function(params, result))
    return {(e.producer.op, e.consumer.op): e.reason for group in report.groups for e in group.stopped}


def test_elementwise_operators_follow_a_complex_one():
    assert names(nn.relu(nn.add(nn.matmul(X, W), Y))) == ["nn_matmul_add_relu"]


def test_what_precedes_a_complex_operator_stays_outside():
    body = nn.matmul(nn.relu(X), W)
    assert names(body) == ["relu", "nn_matmul"]
    assert stopped(body) == {("relu", "nn.matmul"): "nn.matmul is complex: its operands stay outside"}


MOVES = {
    "take": lambda x: nn.take(x, lw.const(np.arange(60) * 2 // 3), 0),
    "transpose": lambda x: nn.transpose(x, (1, 0)),
    "reshape": lambda x: nn.reshape(x, (2, -1, x.type.static_shape[-1])),
    "sum": lambda x: nn.sum(x, 0),
    "strided_slice": lambda x: nn.strided_slice(x, [3], [47], [0]),
}


@pytest.mark.parametrize(
    ("mover", "pieces", "width", "apart"),
    [
        ("take", 2, 8, True),
        ("take", 8, 32, False),
        ("take", 3, 40, True),
        ("transpose", 7, 3, False),
        ("transpose", 8, 3, True),
        ("reshape", 5, 8, False),
        ("reshape", 6, 8, True),
        ("sum", 8, 4, False),
        ("sum", 9, 4, True),
        ("sum", 6, 16, True),
        ("strided_slice", 2, 1, False),
        ("strided_slice", 16, 16, False),
        ("strided_slice", 6, 8, True),
    ],
)
def test_many_or_short_pieces_are_written_before_they_are_moved(mover, pieces, width, apart):
    """Small results are not: 56 rows of 2 elements are chosen in less time than the call of a function takes."""
    parts = [lw.var(f"x{k}", (64, width)) for k in range(pieces)]
    body = MOVES[mover](nn.concatenate(parts, 1))
    assert names(body, params=parts) == (["concatenate", mover] if apart else [f"concatenate_{mover}"])
    given = [np.random.default_rng(k).random((64, width), np.float32) for k in range(pieces)]
    wanted = lw.Engine(lw.compile(Function(parts, body), unfused=["concatenate"]))(given)[0]
    np.testing.assert_allclose(lw.Engine(lw.compile(Function(parts, body)))(given)[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("mover", ["take", "reshape", "sum", "strided_slice"])
@pytest.mark.parametrize(("axes", "turned"), [((0, 2, 1), True), ((2, 1, 0), True), ((1, 0, 2), False)])
def test_rows_are_turned_before_they_are_moved(mover, axes, turned):
    """A function that is elementwise takes them as they are turned."""
    x = lw.var("x", (64, 48, 64))
    body = MOVES[mover](nn.transpose(x, axes))
    assert names(body, params=[x]) == (["transpose", mover] if turned else [f"transpose_{mover}"])
    assert names(nn.relu(nn.transpose(x, axes)), params=[x]) == ["transpose_relu"]
    small = lw.var("x", (4, 48, 4))
    assert len(names(nn.strided_slice(nn.transpose(small, axes), [1], [3], [0]), params=[small])) == 1
    given = np.random.default_rng(0).random((64, 48, 64), np.float32)
    turned_first = np.ascontiguousarray(given.transpose(axes))
    y = lw.var("y", turned_first.shape)
    wanted = lw.Engine(lw.compile(Function([y], MOVES[mover](y))))(turned_first)[0]
    np.testing.assert_allclose(lw.Engine(lw.compile(Function([x], body)))(given)[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("mover", MOVES)
@pytest.mark.parametrize("turned", [True, False])
def test_blocks_are_undone_before_their_elements_are_moved(mover, turned):
    """Where blocks stay, neighbours do."""
    x = lw.var("x", (48, 4, 48, 16))
    plain = nn.layout_transform(x, "NCW16c", "NCW" if turned else "NWC")
    body = {
        "take": lambda: nn.take(plain, lw.const(np.arange(60) * 2 // 3), 1),
        "transpose": lambda: nn.transpose(plain, (1, 0, 2)),
        "reshape": lambda: nn.reshape(plain, (2, -1, plain.type.static_shape[-1])),
        "sum": lambda: nn.sum(plain, 1),
        "strided_slice": lambda: nn.strided_slice(plain, [3], [47], [1]),
    }[mover]()
    assert names(body, params=[x]) == (["layout_transform", mover] if turned else [f"layout_transform_{mover}"])


@pytest.mark.parametrize("mover", MOVES)
def test_pixels_are_interleaved_before_they_are_moved(mover):
    """A function that is elementwise takes them as they are interleaved. Large blocks are not interleaved in
    registers."""
    large = nn.depth_to_space(lw.var("x", (4, 128, 4, 4)), 8)
    assert len(names(nn.strided_slice(large, [1], [31], [2]), params=[large.args[0]])) == 1
    x = lw.var("x", (4, 48, 16, 16))
    pixels = nn.depth_to_space(x, 2)
    body = {
        "take": lambda: nn.take(pixels, lw.const(np.arange(60) * 2 // 10), 1),
        "transpose": lambda: nn.transpose(pixels, (1, 0, 2, 3)),
        "reshape": lambda: nn.reshape(pixels, (2, -1, 32)),
        "sum": lambda: nn.sum(pixels, 1),
        "strided_slice": lambda: nn.strided_slice(pixels, [3], [10], [1]),
    }[mover]()
    assert names(body, params=[x]) == ["nn_depth_to_space", mover]
    assert len(names(nn.relu(pixels), params=[x])) == 1


MOVED = {
    "strided_slice": lambda x: nn.strided_slice(x, [1], [47], [1]),
    "transpose": lambda x: nn.transpose(x, (1, 0, 2)),
    "take": lambda x: nn.take(x, lw.const(np.arange(60) * 2 // 3), 1),
    "pad": lambda x: nn.pad(x, [0, 0, 1], [0, 0, 2]),
    "add": lambda x: nn.add(x, lw.const(np.arange(48, dtype=np.float32).reshape(48, 1))),
    "multiply": lambda x: nn.multiply(x, lw.const(np.float32(3))),
    "relu": nn.relu,
}


@pytest.mark.parametrize("before", MOVED)
@pytest.mark.parametrize("rows", [False, True], ids=["apart", "whole"])
def test_what_moves_elements_is_written_before_a_reshape_that_does_not_keep_rows(before, rows):
    """What is elementwise is not: there the number of an element is the same in both shapes."""
    x = lw.var("x", (32, 48, 100))
    moved = MOVED[before](x)
    shape = moved.type.static_shape
    body = nn.reshape(moved, (shape[0] * shape[1], shape[2]) if rows else (shape[0], shape[1] * shape[2]))
    apart = not rows and before not in ("multiply", "relu")
    assert names(body, params=[x]) == ([before, "reshape"] if apart else [f"{before}_reshape"])
    given = np.random.default_rng(0).random((32, 48, 100), np.float32)
    (wanted,) = lw.Engine(lw.compile(Function([x], moved)))(given)
    (found,) = lw.Engine(lw.compile(Function([x], body)))(given)
    np.testing.assert_array_equal(found, wanted.reshape(found.shape))


OPEN_MOVES = {
    "concatenate": (lambda x: nn.concatenate([x, nn.negative(x)], 1), True, False),
    "strided_slice": (lambda x: nn.strided_slice(x, [1], [1 << 40], [3]), True, True),
    "pad": (lambda x: nn.pad(x, [0, 0, 1, 0], [0, 0, 1, 0]), True, True),
    "repeat": (lambda x: nn.repeat(x, 2, axis=3), True, True),
    "transpose": (lambda x: nn.transpose(x, (1, 0, 2, 3)), True, False),
    "add": (lambda x: nn.add(x, lw.const(np.arange(8, dtype=np.float32).reshape(8, 1, 1))), True, False),
    "relu": (nn.relu, False, False),
}


@pytest.mark.parametrize("before", OPEN_MOVES)
@pytest.mark.parametrize("whole", [True, False], ids=["all", "images"])
def test_what_moves_elements_along_open_axes_is_written_before_a_reshape_that_joins_these(before, whole):
    """Else each element would be divided by open extents. What is elementwise or moves whole images keeps its place."""
    height, width = te.var("h"), te.var("w")
    x = lw.var("x", (2, 8, height, width))
    move, apart_from_all, apart_from_images = OPEN_MOVES[before]
    moved = move(x)
    body = nn.reshape(moved, (-1,) if whole else (0, 0, -1))
    apart = apart_from_all if whole else apart_from_images
    assert (names(body, params=[x])[-1] == "reshape") == apart
    given = np.random.default_rng(0).random((2, 8, 30, 41), np.float32)
    (wanted,) = lw.Engine(lw.compile(Function([x], moved)))(given)
    (found,) = lw.Engine(lw.compile(Function([x], body)))(given)
    np.testing.assert_array_equal(found, wanted.reshape(found.shape))


def test_two_complex_operators_never_share_a_function():
    body = nn.add(nn.matmul(X, W), nn.matmul(Y, W))
    assert sorted(names(body)) == ["nn_matmul", "nn_matmul_add"]
    assert stopped(body)["nn.matmul", "add"] == (
        "nn.matmul is complex, and add is fused with nn.matmul, which is complex: no function has two such"
    )
    assert names(nn.matmul(nn.matmul(X, W), W)) == ["nn_matmul", "nn_matmul"]


@pytest.mark.parametrize("is_open", [True, False])
def test_a_reshape_to_open_extents_stays_behind_a_change_of_layout(is_open):
    """It needs no code by itself; where all extents are known, it is an index of the tiles."""
    height, width = (te.var("h"), te.var("w")) if is_open else (6, 5)
    x = lw.var("x", (1, 2, height, width, 16))
    plain = nn.relu(nn.negative(layout_transform(x, "NCHW16c", "NCHW")))
    body = reshape_to_open(plain, (1, 8, 4 * height * width), [x])
    together = ["layout_transform_negative_relu_reshape"]
    assert names(body, params=[x]) == (["layout_transform_negative_relu", "reshape"] if is_open else together)
    given = np.random.default_rng(0).standard_normal((1, 2, 6, 5, 16)).astype(np.float32)
    (result,) = lw.Engine(lw.compile(Function([x], body), TARGET, jobs=1), threads=1)([given])
    np.testing.assert_array_equal(result, np.maximum(-given.transpose(0, 1, 4, 2, 3), 0).reshape(1, 8, 120))


def test_operators_that_are_asked_to_be_alone_are_fused_with_nothing():
    """As what is read, as what reads, and on a path between; what is around them is fused as it was."""
    y = nn.exp(nn.negative(nn.relu(nn.matmul(nn.softmax(nn.reshape(X, (2, 2, 8))), W))))
    both = nn.add(nn.sigmoid(y), nn.tanh(y))

    def found(unfused):
        groups = partition(Function((X, W), both), unfused)
        return sorted(tuple(sorted(call.op.name for call in group.calls)) for group in groups)

    assert ("reshape", "softmax") in found([])
    for name in ("nn.matmul", "relu", "sigmoid", "add", "reshape", "softmax"):
        groups = found([name])
        assert (name,) in groups, name
        assert not any(name in group and len(group) > 1 for group in groups)
    assert ("add", "exp", "negative", "sigmoid", "tanh") in found(["relu"])


def test_a_report_says_what_was_asked_to_be_alone():
    chain = Function((X,), nn.exp(nn.relu(X)))
    assert len(lw.fusion_report(chain).groups) == 1
    assert "not with %1 exp: relu was asked to be a function of its own" in str(
        lw.fusion_report(chain, unfused=["relu"])
    )
    with pytest.raises(lw.LoopwrightError, match="no operator 'rellu': did you mean relu"):
        lw.fusion_report(chain, unfused=["rellu"])


def test_an_epilogue_has_the_shape_of_the_complex_operator_and_elements_no_wider():
    assert stopped(nn.relu(nn.reshape(nn.matmul(X, W), (8, 4)))) == {
        ("nn.matmul", "reshape"): (
            "nn.matmul is complex: its function takes in elementwise and broadcasting operators of its shape, "
            "with elements no wider, and reshape is injective"
        )
    }
    wide = nn.add(nn.matmul(X, W), lw.var("z", (3, 4, 8)))
    assert stopped(wide)["nn.matmul", "add"].endswith(
        "elements no wider, float32[4, 8], and add gives float32[3, 4, 8]"
    )

    assert names(nn.relu(nn.cast(nn.matmul(X, W), "int32"))) == ["nn_matmul_cast_relu"]
    assert names(nn.cast(nn.matmul(X, W), "int8")) == ["nn_matmul_cast"]
    assert names(nn.cast(nn.matmul(X, W), "float64")) == ["nn_matmul", "cast"]


def test_what_converts_an_operand_of_an_epilogue_joins_it_but_not_one_of_the_complex_operator():
    z, square = lw.var("z", (4, 8), "float16"), lw.var("square", (8, 8), "float16")
    assert names(nn.relu(nn.add(nn.matmul(X, W), nn.cast(z, "float32")))) == ["nn_matmul_cast_add_relu"]
    assert names(nn.relu(nn.matmul(W, nn.cast(square, "float32")))) == ["cast", "nn_matmul_relu"]


def test_sums_of_bytes_become_floats_in_the_epilogue():
    rng = np.random.default_rng(0)
    image, filters = rng.integers(-9, 9, (1, 8, 6, 16), np.int8), rng.integers(-9, 9, (8, 8, 3, 3), np.int8)
    rows, columns = rng.integers(-9, 9, (16, 64), np.int8), rng.integers(-9, 9, (64, 40), np.int8)
    x, w = Var("x", tensor_type(image.shape, "int8")), Var("w", tensor_type(filters.shape, "int8"))
    a, b = Var("a", tensor_type(rows.shape, "int8")), Var("b", tensor_type(columns.shape, "int8"))
    scale = lw.const(np.float32(0.5))
    results = [
        nn.relu(nn.multiply(nn.cast(made, "float32"), scale)) for made in (nn.conv2d(x, w, padding=1), nn.matmul(a, b))
    ]
    library = lw.compile(Function([x, w, a, b], Tuple(tuple(results))), jobs=1)
    assert [f.name for f in library.functions] == [
        "fused_nn_conv2d_cast_multiply_relu",
        "fused_nn_matmul_cast_multiply_relu",
    ]
    conv, product = lw.Engine(library)([image, filters, rows, columns])
    padded = np.pad(image.astype(np.int32), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwrs,kcrs->nkhw", windows, filters.astype(np.int32))
    np.testing.assert_array_equal(conv, np.maximum(expected * np.float32(0.5), 0))
    np.testing.assert_array_equal(product, np.maximum((rows.astype(np.int32) @ columns) * np.float32(0.5), 0))


def test_elementwise_and_injective_operators_join_each_other_and_a_reduction():
    assert names(nn.sum(nn.transpose(nn.relu(X)), axes=1)) == ["relu_transpose_sum"]
    assert names(nn.reshape(nn.relu(nn.transpose(X)), (-1,))) == ["transpose_relu_reshape"]


def test_what_follows_a_reduction_joins_it_if_it_has_its_shape():
    assert names(nn.sqrt(nn.add(nn.mean(X, axes=1), lw.const(np.float32(1))))) == ["mean_add_sqrt"]
    body = nn.subtract(X, nn.mean(X, axes=1, keepdims=True))
    assert names(body) == ["mean", "subtract"]
    assert stopped(body)["mean", "subtract"].endswith("of its shape, float32[4, 1], and subtract gives float32[4, 8]")
    assert names(nn.sum(nn.sqrt(nn.sum(X, axes=1)), axes=0)) == ["sum_sqrt", "sum"]


def test_a_value_of_which_one_reader_is_elsewhere_stays_apart():
    y = nn.relu(X)
    body = nn.add(nn.matmul(y, W), y)
    assert names(body) == ["relu", "nn_matmul_add"]
    reason = "nn.matmul is complex, and on a path from relu to add, where its results meet"
    assert stopped(body) == {("relu", "nn.matmul"): reason, ("relu", "add"): reason}


def test_results_of_the_model_are_written_and_not_fused_away():
    y = nn.relu(X)
    assert names(y, nn.negative(y)) == ["relu", "negative"]
    assert stopped(Tuple((y, nn.negative(y)))) == {("relu", "negative"): "relu is a result of the whole function too"}
    assert set(stopped(Tuple((nn.exp(y), nn.negative(y)))).values()) == {
        "what reads relu (exp, negative) meets in the results of the whole function only"
    }


def test_an_opaque_operator_is_a_function_of_its_own():
    image = lw.var("image", (1, 2, 8, 8))
    pooled = nn.max_pool_with_indices(nn.relu(image), 2)
    body = nn.negative(TupleGet(pooled, 0) if isinstance(pooled, Call) else pooled[0])
    found = stopped(body, (image,))
    opaque = "nn.max_pool_with_indices is opaque: it is a function of its own"
    assert found == {
        ("relu", "nn.max_pool_with_indices"): opaque,
        ("nn.max_pool_with_indices", "negative"): opaque,
    }


def test_a_function_holds_a_bounded_number_of_calls():
    y = X
    for _ in range(MAX_CALLS + 5):
        y = nn.negative(y)
    groups = partition(Function([X], y))
    assert [len(g.calls) for g in groups] == [MAX_CALLS, 5]
    assert f"more than {MAX_CALLS} calls" in fuse(Function([X], y)).stopped[groups[0].outputs[0]]


def test_what_meets_far_behind_is_not_followed_to_there(monkeypatch):
    """Loops that are written out give long chains whose every step is read at the end as well."""
    y, steps, followed = X, [], []
    for _ in range(300):
        y = nn.tanh(nn.add(y, Y))
        steps.append(nn.strided_slice(y, [0], [1], [0]))
    found = partition_module.nodes_between

    def counted(*arguments):
        for node in found(*arguments):
            followed.append(node)
            yield node

    monkeypatch.setattr(partition_module, "nodes_between", counted)
    begins, asked = concatenate_module._starts, []
    monkeypatch.setattr(concatenate_module, "_starts", lambda *arguments: asked.append(None) or begins(*arguments))
    function = Function([X, Y], nn.concatenate(steps, 0))
    asked.clear()
    assert len(partition(function)) > 300 // MAX_CALLS
    assert len(followed) <= 3 * MAX_CALLS * len(post_order(function.body))
    assert len(asked) == 1


def test_names_are_cut_with_a_digest_that_keeps_them_apart():
    def chain(last):
        y = X
        for _ in range(30):
            y = nn.negative(y)
        return names(last(y))[0]

    assert len(f"fused_{chain(nn.relu)}") <= MAX_NAME
    assert chain(nn.relu).startswith("negative_negative_")
    assert len({chain(nn.relu), chain(nn.exp)}) == 2


def test_equal_names_of_different_functions_get_different_symbols():
    z = lw.var("z", (3,))
    library = lw.compile(Function([X, z], Tuple((nn.relu(X), nn.relu(z)))), jobs=1)
    assert [f.name for f in library.functions] == ["fused_relu", "fused_relu"]
    assert len({f.symbol for f in library.functions}) == 2


def test_the_last_call_of_the_highest_pattern_is_the_anchor():
    (group,) = partition(Function([X, W, Y], nn.relu(nn.add(nn.matmul(X, W), Y))))
    assert group.calls[anchor_number(group.calls)].op.name == "nn.matmul"
    (group,) = partition(Function([X], nn.relu(nn.negative(X))))
    assert group.calls[anchor_number(group.calls)].op.name == "relu"


def test_two_complex_operators_in_a_function_made_by_hand_are_refused():
    function = Function([X, W], nn.matmul(nn.softmax(nn.matmul(X, W)), W))
    with pytest.raises(lw.SelectionError, match=r"nn\.matmul and nn\.matmul cannot share a function"):
        lower_function(function, CompileSettings(TARGET), "two")


def test_equal_groups_are_equal_functions_whatever_is_around_them():
    def branches(first):
        a, b = nn.relu(X), nn.exp(Y)
        order = (nn.sum(a), nn.sum(b)) if first else (nn.sum(b), nn.sum(a))
        return Function([X, Y], Tuple((nn.matmul(nn.add(a, b), W), *order)))

    def summed(function):
        found = [as_function(g)[0] for g in partition(function)]
        return {f.name: graph_hash(f) for f in found}["fused_add"]

    assert summed(branches(True)) == summed(branches(False))


@pytest.mark.parametrize(
    ("make", "oracle"),
    [
        (lambda x: nn.sqrt(cumsum(x, 1)), lambda x: np.sqrt(x.cumsum(1))),
        (lambda x: nn.negative(nn.argmax(x, 1)), lambda x: -x.argmax(1)),
        (lambda x: nn.cast(nn.argmin(x, 0, keepdims=True), "float32"), lambda x: x.argmin(0)[None].astype("f4")),
    ],
)
def test_reductions_of_several_stages_have_epilogues(make, oracle):
    x, body = np.random.default_rng(0).random((4, 8), np.float32), make(X)
    (group,) = partition(Function([X], body))
    func, *_ = lower_function(as_function(group)[0], CompileSettings(TARGET), "fused")
    result = np.empty(body.type.static_shape, body.type.dtype.to_numpy())
    lw.interpret(outline_parallel(func))(x, result)
    np.testing.assert_allclose(result, oracle(x), rtol=1e-5)


# Tuples


@pytest.fixture
def halves(monkeypatch):
    """An injective operator with two results, the halves of its argument's rows, and its strategy."""

    def relation(types, attrs):
        rows, columns = types[0].static_shape
        return TupleType((tensor_type((rows // 2, columns), types[0].dtype),) * 2)

    def compute(attrs, args, result):
        (x,) = args
        half, columns = result.fields[0].static_shape
        first = lw.te.compute((half, columns), lambda i, j: x[i, j], name="first")
        return first, lw.te.compute((half, columns), lambda i, j: x[i + half, j], name="second")

    strategy = OpStrategy()
    strategy.add_implementation(compute, schedule_default, "halves.generic")
    before = selection.strategy_of
    monkeypatch.setattr(selection, "strategy_of", lambda op, *a: strategy if op is made else before(op, *a))
    made = Op("halves", "the halves", (), None, relation, OpPattern.INJECTIVE)
    return lambda x: Call(made, (x,), None, relation([x.type], None))


def test_what_reads_the_fields_of_a_tuple_joins_the_operator_that_gives_it(halves):
    both = halves(nn.relu(X))
    gated = nn.multiply(TupleGet(both, 0), nn.sigmoid(TupleGet(both, 1)))
    assert names(gated) == ["relu_halves_sigmoid_multiply"]
    library = lw.compile(Function([X], gated), jobs=1)
    x = np.linspace(-1, 2, 32, dtype=np.float32).reshape(4, 8)
    a, b = np.split(np.maximum(x, 0), 2)
    np.testing.assert_allclose(lw.Engine(library)([x])[0], a / (1 + np.exp(-b)), rtol=1e-5)


def test_a_function_gives_the_fields_of_a_tuple_that_others_read(halves):
    both = halves(nn.relu(X))
    results = Tuple((nn.matmul(TupleGet(both, 0), W), TupleGet(both, 1)))
    assert names(results) == ["relu_halves", "nn_matmul"]
    library = lw.compile(Function([X, W], results), jobs=1)
    x, w = np.linspace(-1, 2, 32, dtype=np.float32).reshape(4, 8), np.eye(8, dtype=np.float32)
    for got, expected in zip(lw.Engine(library)([x, w]), np.split(np.maximum(x, 0), 2), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_closed_function_may_take_and_give_tuples():
    kind = tensor_type((2, 3), "float32")
    pair = Var("pair", TupleType((kind, TupleType((kind, kind)))))
    a, inner = TupleGet(pair, 0), TupleGet(pair, 1)
    body = Tuple((nn.add(a, TupleGet(inner, 1)), Tuple((inner, nn.negative(TupleGet(inner, 0))))))
    func, *_ = lower_function(Function([pair], body), CompileSettings(TARGET), "tuples")
    given = [np.full((2, 3), value, np.float32) for value in (1, 2, 4)]
    results = [np.empty((2, 3), np.float32) for _ in range(4)]
    lw.interpret(outline_parallel(func))(*given, *results)
    assert [float(r[0, 0]) for r in results] == [5, 2, 4, -2]


# Random graphs


def random_function(rng):
    """A graph of operators of all patterns over small tensors, with values read several times, and several results."""
    values = [lw.var("x0", (3, 4)), lw.var("x1", (4, 3)), lw.var("x2", (1, 4))]
    params = tuple(values)

    def pick(test=lambda v: True):
        return rng.choice([v for v in values if test(v)][-6:])

    def pair():
        a = pick()
        same = [v for v in values if v.type is a.type]
        return a, rng.choice(same[-4:])

    makers = [
        lambda: nn.relu(pick()),
        lambda: nn.negative(pick()),
        lambda: nn.add(*pair()),
        lambda: nn.multiply(pick(lambda v: v.type.static_shape in ((3, 4), (1, 4))), params[2]),
        lambda: nn.transpose(pick(lambda v: v.type.ndim == 2)),
        lambda: nn.concatenate(list(pair()), axis=0),
        lambda: nn.reshape(pick(), (-1,)),
        lambda: nn.sum(pick(lambda v: v.type.ndim == 2), axes=1, keepdims=rng.random() < 0.5),
        lambda: nn.max(pick(), axes=0, keepdims=True),
        lambda: nn.softmax(pick()),
        lambda: nn.matmul(pick(lambda v: v.type.static_shape[-1] == 4), params[1]),
    ]
    for _ in range(rng.randint(3, 14)):
        made = rng.choice(makers)()
        if np.prod(made.type.static_shape) <= 100:
            values.append(made)
    used = {used for v in values for used in inputs(v)}
    results = [v for v in values if v not in used and isinstance(v, Call)] or [nn.relu(params[0])]
    if rng.random() < 0.3:
        results.append(rng.choice(values))
    return Function(params, results[0] if len(results) == 1 else Tuple(tuple(results)))


def check_groups(function):
    fusion = fuse(function)
    calls = [n for n in post_order(function.body) if isinstance(n, Call)]
    assert sorted(map(id, calls)) == sorted(id(c) for g in fusion.groups for c in g.calls), "each call once"
    group_of = {call: number for number, g in enumerate(fusion.groups) for call in g.calls}
    for number, group in enumerate(fusion.groups):
        assert sum(pattern_of(c) >= OpPattern.COMM_REDUCE for c in group.calls) <= 1, "two complex operators"
        for value in group.inputs:
            assert all(group_of[c] < number for c in post_order(value) if isinstance(c, Call) and c in group_of), (
                "a group reads what comes after it, or itself through others: it is not convex"
            )
        for call in group.calls:
            outside = [a for a in call.args if isinstance(a, Call) and group_of[a] != number]
            assert all(a in fusion.groups[group_of[a]].outputs and a in group.inputs for a in outside)
    report = fusion_report(function)
    edges = {(e.producer.number, e.consumer.number) for g in report.groups for e in g.stopped}
    number_of = {call: n for n, call in enumerate(calls)}
    crossing = {
        (number_of[a], number_of[c])
        for c in calls
        for a in c.args
        if isinstance(a, Call) and group_of[a] != group_of[c]
    }
    assert edges == crossing
    assert all(e.reason and "of its own" not in e.reason for g in report.groups for e in g.stopped)
    return fusion.groups


def run(groups, function, feeds):
    """Results of a function by the interpreter, group by group."""
    values = dict(feeds)
    for group in groups:
        closed = as_function(group)[0]
        func, *_ = lower_function(closed, CompileSettings(TARGET), closed.name)
        results = [np.empty(o.type.static_shape, np.float32) for o in group.outputs]
        lw.interpret(outline_parallel(func))(*(values[i] for i in group.inputs), *results)
        values.update(zip(group.outputs, results, strict=True))
    fields = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    return [values[f] for f in fields]


ORACLE = {
    "relu": lambda a, x: np.maximum(x, 0),
    "negative": lambda a, x: -x,
    "add": lambda a, x, y: x + y,
    "multiply": lambda a, x, y: x * y,
    "transpose": lambda a, x: x.transpose(),
    "concatenate": lambda a, *parts: np.concatenate(parts, a.axis),
    "sum": lambda a, x: x.sum(a.axes, keepdims=a.keepdims),
    "max": lambda a, x: x.max(a.axes, keepdims=a.keepdims),
    "softmax": lambda a, x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "nn.matmul": lambda a, x, y: x @ y,
}


def expected_results(function, feeds):
    """Results of a function by numpy, call by call."""
    values = dict(feeds)
    for node in post_order(function.body):
        if isinstance(node, Call):
            args = [values[a] for a in node.args]
            made = args[0].reshape(-1) if node.op.name == "reshape" else ORACLE[node.op.name](node.attrs, *args)
            values[node] = made
    return [values[f] for f in (function.body.fields if isinstance(function.body, Tuple) else (function.body,))]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_are_cut_into_legal_groups(seed):
    for k in range(5):
        check_groups(random_function(random.Random(1000 * seed + k)))


@pytest.mark.parametrize("seed", range(12))
def test_fused_random_graphs_compute_what_numpy_does(seed):
    function = random_function(random.Random(seed))
    rng = np.random.default_rng(seed)
    feeds = {p: rng.integers(-3, 4, p.type.static_shape).astype(np.float32) for p in function.params}
    got = run(partition(function), function, feeds)
    for result, expected in zip(got, expected_results(function, feeds), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5, err_msg=str(function))
