"""Functions that differ by one extent: which become one, and that results, saved models and exports are right."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from open_models import model

import loopwright as lw
from loopwright import te
from loopwright.base.errors import InternalError
from loopwright.compiler.model.compile_function import emit_function
from loopwright.compiler.model.shared_code import LEAST_SHARERS
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Function, Tuple
from loopwright.ops.families.gather import take
from loopwright.ops.families.topk import topk

nn = lw.nn
TARGET = "llvm -mcpu=x86-64-v3"
RNG = np.random.default_rng(3)


def numbers(*shape):
    return RNG.integers(-4, 5, shape).astype(np.float32)


def names(library):
    return [library.model.function_of(step).name for step in library.model.steps]


def run(function, *arrays, **options):
    library = lw.compile(function, target=TARGET, jobs=1, **options)
    return library, lw.Engine(library, threads=1)(list(arrays))


def scaled(*shapes, axis=1):
    """Inputs of these shapes, relu(input · scale + 1) of each, where scales are along an axis; and what they are."""
    inputs = [lw.var(f"x{k}", shape) for k, shape in enumerate(shapes)]
    arrays = [numbers(*shape) for shape in shapes]
    scales = [numbers(*(extent if a == axis else 1 for a, extent in enumerate(shape))) for shape in shapes]
    made = [nn.relu(x * lw.const(scale) + lw.const(np.float32(1))) for x, scale in zip(inputs, scales, strict=True)]
    expected = [np.maximum(x * scale + 1, 0) for x, scale in zip(arrays, scales, strict=True)]
    return Function(inputs, Tuple(tuple(made))), arrays, expected


def assert_right(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def functions_of(shapes, **options):
    """How many functions there are for ``scaled`` of these shapes, which has to come out right."""
    function, arrays, expected = scaled(*shapes)
    library, found = run(function, *arrays, **options)
    assert_right(found, expected)
    return len(library.model.functions)


def test_a_leading_extent_is_an_argument():
    function, arrays, expected = scaled(*((1, channels, 5, 7) for channels in (3, 8, 8, 20)))
    library, found = run(function, *arrays)
    assert_right(found, expected)
    (shared,) = library.model.functions
    assert shared.dims == ("n0",)
    assert len(library.model.steps) == 4
    assert library.model.dims == ()


def test_a_leading_extent_before_open_ones_is_an_argument():
    rows = te.var("rows")
    inputs = [lw.var(f"x{k}", (1, channels, rows, 7)) for k, channels in enumerate((3, 8, 20))]
    library = lw.compile(Function(inputs, Tuple(tuple(map(nn.relu, inputs)))), target=TARGET, jobs=1)
    (shared,) = library.model.functions
    assert set(shared.dims) == {"n0", "n1"}
    arrays = [numbers(1, channels, 5, 7) for channels in (3, 8, 20)]
    assert_right(lw.Engine(library, threads=1)(arrays), [np.maximum(x, 0) for x in arrays])


def test_a_leading_extent_is_an_argument_where_several_operands_have_the_open_ones():
    """The argument has a name that none of their dimensions has: else all of these would be as long as it is."""
    rows, columns = te.var("rows"), te.var("columns")
    mask = lw.var("mask", (1, 1, rows, columns))
    inputs = [lw.var(f"x{k}", (1, channels, rows, columns)) for k, channels in enumerate((8, 20, 32))]
    function = Function([mask, *inputs], Tuple(tuple(nn.relu(x * mask) for x in inputs)))
    library = lw.compile(function, target=TARGET, jobs=1)
    (shared,) = library.model.functions
    assert sorted(shared.dims) == ["n0", "n1", "n2"]
    arrays = [numbers(1, 1, 3, 5), *(numbers(1, channels, 3, 5) for channels in (8, 20, 32))]
    assert_right(lw.Engine(library, threads=1)(arrays), [np.maximum(x * arrays[0], 0) for x in arrays[1:]])


def test_two_dimensions_of_one_name_are_an_error_of_our_own():
    x = lw.var("p0", (te.var("n0"), te.var("n0")))
    with pytest.raises(InternalError, match="fused_relu has several dimensions of one name: n0, n0"):
        emit_function(Function((x,), nn.relu(x), "fused_relu"), CompileSettings(lw.resolve_target(TARGET)))


def test_two_functions_are_left_as_they_are():
    assert LEAST_SHARERS == 3
    assert functions_of([(1, 3, 5, 7), (1, 8, 5, 7)]) == 2


def test_an_extent_by_which_others_are_apart_is_no_argument():
    """Rows differ, so that the scale of an element is found by a division by them."""
    assert functions_of([(1, 6, rows, 7) for rows in (3, 5, 9)]) == 3


def test_the_number_of_a_member_may_be_that_of_another_extent():
    assert functions_of([(1, channels, 5, 7) for channels in (3, 5, 7, 9)]) == 1


def test_each_family_has_a_function():
    shapes = [(1, channels, size, size) for size in (4, 6) for channels in (2, 3, 5)]
    assert functions_of([*shapes, (1, 2, 9, 9)]) == 3


def test_what_is_not_elementwise_is_left_as_it_is():
    inputs = [lw.var(f"x{k}", (rows, 12)) for k, rows in enumerate((2, 3, 5))]
    library, found = run(
        Function(inputs, Tuple(tuple(nn.softmax(x) for x in inputs))), *(numbers(*x.type.shape) for x in inputs)
    )
    assert len(library.model.functions) == 3
    assert all(np.allclose(y.sum(-1), 1) for y in found)


FOUND = 9
"""Of fewer, rows are searched side by side, by code for their length."""
COUNTS = (33, 45, 61)
TABLES = [RNG.permutation(7 * count).reshape(7, count).astype(np.float32) for count in COUNTS]


def looked_up(counts=COUNTS):
    """The nine least of each row that is asked for of some tables, which are of the given widths, and their places."""
    rows = lw.var("rows", (te.var("n"),), "int64")
    tables = [lw.var(f"t{k}", (7, count)) for k, count in enumerate(counts)]
    found = [topk(take(table, rows, axis=0), FOUND, axis=1, largest=False) for table in tables]
    return Function([rows, *tables], Tuple(tuple(part for pair in found for part in pair)))


def test_lookups_in_any_number_of_rows_of_data_are_one_function():
    rows = np.array([3, 0, 6, 3])
    library, found = run(looked_up(), rows, *TABLES)
    kinds = [function.name for function in library.model.functions]
    assert len(kinds) == len(set(kinds)) < len(library.model.steps)
    places = [np.argsort(table[rows], axis=1)[:, :FOUND] for table in TABLES]
    least = [np.take_along_axis(table[rows], at, 1) for table, at in zip(TABLES, places, strict=True)]
    assert_right(found, [part for pair in zip(least, places, strict=True) for part in pair])


@pytest.mark.parametrize("counts", [(9, 10, 11), (32, 64, 96)])
def test_widths_that_someone_chose_have_lookups_of_their_own(counts):
    """Loops of few steps are unrolled, and vectors along multiples of their width have no rest."""
    library = lw.compile(looked_up(counts), target=TARGET, jobs=1)
    assert len(library.model.functions) == len(library.model.steps)


def test_functions_in_branches_are_shared():
    """Each branch has a function for another number of rows of data; what they give is as long as these are many."""
    value = helper.make_tensor_value_info
    nodes, constants = [], {"found": np.array([FOUND])}
    for k, table in enumerate(TABLES):
        least = helper.make_node("TopK", [f"t{k}_x", "found"], [f"t{k}_v", f"t{k}_i"], axis=1, largest=0)
        add = helper.make_node("Mul", [f"t{k}", "x"], [f"t{k}_x"])
        zero = helper.make_node("Identity", ["none"], [f"t{k}_e"])
        then = helper.make_graph([add, least], "then", [], [value(f"t{k}_v", TensorProto.FLOAT, None)])
        otherwise = helper.make_graph([zero], "otherwise", [], [value(f"t{k}_e", TensorProto.FLOAT, None)])
        nodes.append(helper.make_node("If", ["yes"], [f"y{k}"], then_branch=then, else_branch=otherwise))
        constants[f"t{k}"] = table
    constants["none"] = np.zeros((7, FOUND), np.float32)
    inputs = {"x": (TensorProto.FLOAT, [7, 1]), "yes": (TensorProto.BOOL, [])}
    made = model(nodes, inputs, ["y0", "y1", "y2"], constants)
    library = lw.compile(made, TARGET, jobs=1)
    assert len([f for f in library.model.functions if "topk" in f.name and f.name.startswith("fused")]) == 1
    x = numbers(7, 1) + 5
    for yes in (True, False):
        found = lw.Engine(library, threads=1)([x, np.array(yes)])
        assert_right(found, [np.sort(x * table, 1)[:, :FOUND] if yes else constants["none"] for table in TABLES])


LAYERS = [RNG.standard_normal((32, 64 + 32 * layer)).astype(np.float32) / 8 for layer in range(5)]
BIAS = RNG.standard_normal((1, 32, 1, 1)).astype(np.float32)


def growing(samples=2):
    """What networks that grow by concatenation have: each layer reads what all layers before it have made."""
    x = lw.var("x", (samples, 64, 9, 9))
    y = x
    for weight in LAYERS:
        sums = nn.conv2d(y, lw.const(weight[:, :, None, None]))
        y = nn.concatenate([y, nn.relu(sums + lw.const(BIAS))], axis=1)
    return Function([x], y)


def grown(x):
    """The same by numpy."""
    for weight in LAYERS:
        x = np.concatenate([x, np.maximum(np.einsum("nchw,kc->nkhw", x, weight) + BIAS, 0)], axis=1)
    return x


def convolutions(library):
    return {f.symbol for f in library.model.functions if "conv2d" in f.name}


def test_convolutions_of_any_number_of_channels_are_one_function(tmp_path):
    function, x = growing(), numbers(2, 64, 9, 9)
    library, (found,) = run(function, x)
    assert len([name for name in names(library) if "conv2d" in name]) == 5
    assert len(convolutions(library)) == 1
    np.testing.assert_allclose(found, grown(x), rtol=1e-4, atol=1e-4)
    library.save(tmp_path / "saved")
    again = lw.Engine(lw.load(tmp_path / "saved"), threads=1)([x])[0]
    np.testing.assert_array_equal(again, found)


def test_convolutions_of_any_number_of_samples_are_one_function():
    function, x = growing(samples=te.var("n")), numbers(3, 64, 9, 9)
    library, (found,) = run(function, x)
    (shared,) = [f for f in library.model.functions if "conv2d" in f.name]
    assert shared.dims == ("n0", "n1")
    np.testing.assert_allclose(found, grown(x), rtol=1e-4, atol=1e-4)


def test_alternatives_are_of_the_extents_that_there_are():
    library, _ = run(growing(), numbers(2, 64, 9, 9), alternatives=True)
    assert len(convolutions(library)) == 5


def test_what_records_know_is_left_as_it_is():
    shapes = [(1, channels, 5, 7) for channels in (3, 8, 20, 21)]
    relu = nn.relu(lw.var("x", shapes[1]))
    record = lw.TuningRecord.of(relu, TARGET, "relu.generic", [1e-3])
    assert functions_of(shapes, records=lw.TuningRecords([record])) == 2
    assert functions_of(shapes) == 1


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_an_open_number_of_channels(groups):
    n = te.var("n")
    x, weight = lw.var("x", (1, n, 5, 6)), lw.var("w", (8, n, 3, 3))
    if groups == 2:
        with pytest.raises(lw.TypeInferenceError, match="numbers of channels must be known"):
            nn.conv2d(x, weight, groups=groups)
        return
    a, b = numbers(1, 16, 5, 6), numbers(8, 16, 3, 3)
    _, (found,) = run(Function([x, weight], nn.conv2d(x, weight)), a, b)
    windows = np.lib.stride_tricks.sliding_window_view(a[0], (3, 3), (1, 2))
    np.testing.assert_array_equal(found[0], np.einsum("cijrs,kcrs->kij", windows, b))
