"""Concatenations, slices and reshapes without copies: which steps are left to run, and that values come out right."""

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.split_elementwise import split_elementwise
from loopwright.graph import Function, Tuple

nn = lw.nn
SMALL = "llvm -mcpu=x86-64-v3"


def run(function, *arrays):
    """The names of the steps, and the outputs, of the model as compiled, and as saved and loaded again."""
    library = lw.compile(function, target=SMALL, jobs=1)
    names = [library.model.function_of(step).name for step in library.model.steps]
    return names, lw.Engine(library, threads=1)(list(arrays)), library


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


def pooled(x):
    """Something complex, that is fused with nothing here, and easy to say in numpy."""
    return nn.max_pool(x, 1)


X = numbers(1, 8, 3, 3)


def test_what_is_concatenated_is_written_where_it_belongs(tmp_path):
    x = lw.var("x", X.shape)
    function = Function([x], pooled(nn.concatenate([pooled(x), nn.negative(x)], axis=1)))
    steps, (found,), library = run(function, X)
    expected = np.concatenate([X, -X], axis=1)
    assert sorted(steps) == ["fused_negative", "fused_nn_max_pool", "fused_nn_max_pool"]
    np.testing.assert_array_equal(found, expected)
    library.save(tmp_path / "saved")
    np.testing.assert_array_equal(lw.Engine(lw.load(tmp_path / "saved"))([X])[0], expected)


def test_concatenations_of_concatenations_share_one_memory():
    x = lw.var("x", X.shape)
    first = nn.concatenate([pooled(x), nn.negative(x)], axis=1)
    second = nn.concatenate([first, pooled(first)], axis=1)
    steps, (found,), library = run(Function([x], pooled(second)), X)
    half = np.concatenate([X, -X], axis=1)
    assert "fused_concatenate" not in steps
    assert len(library.model.first_stage.intermediates) == 1
    np.testing.assert_array_equal(found, np.concatenate([half, half], axis=1))


def test_a_value_in_two_concatenations_is_copied_into_one():
    x = lw.var("x", X.shape)
    a, b, c = pooled(x), nn.negative(x), nn.exp(pooled(x))
    ways = nn.concatenate([a, b], axis=1), nn.concatenate([b, c], axis=1), nn.concatenate([b, a], axis=1)
    steps, found, _ = run(Function([x], Tuple(tuple(map(pooled, ways)))), X)
    assert steps.count("copy") == 1  # of b into the second
    assert steps.count("fused_concatenate") == 1  # the third, whose parts have both their places
    for got, parts in zip(found, [(X, -X), (-X, np.exp(X)), (-X, X)], strict=True):
        np.testing.assert_allclose(got, np.concatenate(parts, axis=1), rtol=1e-6)


def test_results_and_inputs_are_copied_into_a_concatenation():
    x = lw.var("x", X.shape)
    a = pooled(x)
    whole = nn.concatenate([a, nn.negative(x)], axis=1)
    _, (found, part, plain), _ = run(Function([x], Tuple((pooled(whole), a, whole))), X)
    expected = np.concatenate([X, -X], axis=1)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(plain, expected)
    np.testing.assert_array_equal(part, X)


def test_a_concatenation_along_an_inner_axis_moves_its_elements():
    x = lw.var("x", X.shape)
    steps, (found,), _ = run(Function([x], pooled(nn.concatenate([pooled(x), nn.negative(x)], axis=2))), X)
    assert any("concatenate" in step for step in steps)
    np.testing.assert_array_equal(found, np.concatenate([X, -X], axis=2))


def test_reshapes_and_slices_are_views():
    x = lw.var("x", (6, 4))
    y = nn.reshape(nn.matmul(x, nn.reshape(x, (4, 6))), (4, 9))
    part = nn.strided_slice(y, [1], [3], [0])
    steps, (found,), library = run(Function([x], nn.matmul(part, nn.reshape(y, (9, 4)))), numbers(6, 4))
    a = numbers(6, 4)
    product = (a @ a.reshape(4, 6)).reshape(4, 9)
    assert steps == ["fused_nn_matmul", "fused_nn_matmul"]
    assert len(library.model.first_stage.intermediates) == 1
    np.testing.assert_array_equal(found, product[1:3] @ product.reshape(9, 4))


def test_parts_of_parts_that_were_fused_are_views():
    x = lw.var("x", (3, 6, 6))
    y = nn.matmul(x, x)
    parts = [nn.squeeze(nn.strided_slice(y, [k], [k + 1], [0]), [0]) for k in range(3)]
    rows = nn.strided_slice(nn.squeeze(nn.strided_slice(y, [2], [3], [0]), [0]), [1], [4], [0])
    gaps = nn.strided_slice(nn.squeeze(nn.strided_slice(y, [2], [3], [0]), [0]), [1], [6], [0], [2])
    results = (nn.matmul(parts[0], parts[1]), nn.matmul(rows, parts[2]), nn.matmul(gaps, parts[2]))
    a = numbers(3, 6, 6) / 4
    steps, found, _ = run(Function([x], Tuple(results)), a)
    assert [step for step in steps if "matmul" not in step] == ["fused_strided_slice_squeeze_strided_slice"]
    b = a @ a
    for got, wanted in zip(found, (b[0] @ b[1], b[2, 1:4] @ b[2], b[2, 1:6:2] @ b[2]), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_transposes_of_axes_of_one_element_are_views():
    x = lw.var("x", (4, 6))
    y = nn.reshape(nn.matmul(x, nn.transpose(x)), (1, 4, 1, 4))
    turned = nn.transpose(y, (0, 2, 3, 1))
    moved = nn.transpose(y, (1, 2, 0, 3))
    results = (nn.matmul(nn.reshape(turned, (4, 4)), x), nn.matmul(nn.reshape(moved, (4, 4)), x))
    a = numbers(4, 6)
    steps, found, _ = run(Function([x], Tuple(results)), a)
    assert [step for step in steps if "transpose" in step] == ["fused_transpose_reshape"]  # turned
    b = a @ a.T
    for got, wanted in zip(found, (b.T @ a, b @ a), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_slices_with_gaps_or_of_inner_axes_move_their_elements():
    x = lw.var("x", (6, 6))
    y = nn.matmul(x, x)
    left = nn.strided_slice(y, [0], [3], [1])
    backwards = nn.strided_slice(y, [5], [-7], [1], [-1])
    even = nn.strided_slice(y, [0], [6], [0], [2])
    of_one_row = nn.strided_slice(y, [2, 1], [3, 4], [0, 1])
    three = nn.strided_slice(x, [0], [3], [0])
    products = [nn.matmul(left, three), nn.matmul(backwards, x), nn.matmul(even, x), nn.matmul(of_one_row, three)]
    a = numbers(6, 6)
    b = a @ a
    steps, found, _ = run(Function([x], Tuple(tuple(products))), a)
    assert steps.count("fused_strided_slice") == 3  # three is where x begins
    expected = [b[:, :3] @ a[:3], b[:, ::-1] @ a, b[::2] @ a, b[2:3, 1:4] @ a[:3]]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_an_open_batch_leaves_the_outermost_axis_only():
    x = lw.var("x", (te.var("n"), 4))
    inner = nn.concatenate([nn.matmul(x, lw.const(np.eye(4, dtype=np.float32))), nn.negative(x)], axis=1)
    outer = nn.concatenate([nn.matmul(x, lw.const(np.eye(4, dtype=np.float32))), nn.negative(x)], axis=0)
    one = lw.const(np.ones((8, 1), np.float32))
    steps, _, library = run(Function([x], Tuple((nn.matmul(inner, one), pooled_rows(outer)))), numbers(3, 4))
    assert sum("concatenate" in step for step in steps) == 1
    engine = lw.Engine(library)
    for rows in (1, 5, 3):
        a = numbers(rows, 4, seed=rows)
        found, other = engine([a])
        np.testing.assert_array_equal(found, np.zeros((rows, 1)))
        np.testing.assert_array_equal(other, np.concatenate([a, -a]).sum(axis=1))


def pooled_rows(x):
    return nn.sum(x, axes=1)


def test_parts_without_elements_do_not_disturb():
    x = lw.var("x", (2, 3))
    empty = nn.strided_slice(nn.matmul(x, lw.const(np.eye(3, dtype=np.float32))), [0], [0], [0])
    whole = nn.concatenate([empty, nn.matmul(x, lw.const(np.eye(3, dtype=np.float32)))], axis=0)
    _, (found,), _ = run(Function([x], nn.matmul(whole, lw.const(np.eye(3, dtype=np.float32)))), numbers(2, 3))
    np.testing.assert_array_equal(found, numbers(2, 3))


def test_elementwise_calls_on_a_concatenation_join_what_computes_its_parts():
    x = lw.var("x", X.shape)
    whole = nn.relu(nn.negative(nn.concatenate([pooled(x), pooled(nn.negative(x))], axis=1)))
    steps, (found,), _ = run(Function([x], pooled(whole)), X)
    parts = ["fused_negative_nn_max_pool_negative_relu", "fused_nn_max_pool_negative_relu"]
    assert sorted(steps) == [parts[0], "fused_nn_max_pool", parts[1]]
    np.testing.assert_array_equal(found, np.maximum(np.concatenate([-X, X], axis=1), 0))


def test_elementwise_calls_on_what_others_read_stay():
    x = lw.var("x", X.shape)
    whole = nn.concatenate([pooled(x), nn.negative(x)], axis=1)
    function = Function([x], Tuple((pooled(nn.relu(whole)), pooled(whole))))
    assert split_elementwise(function) is function
