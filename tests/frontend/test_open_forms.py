"""Forms at the edge of what is supported: open extents, outputs that are skipped, empty images, bodies of functions of
other domains, scales of 16 bits. Against onnx's reference."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_cases import floats, integers
from open_models import FLOAT, HALF, TARGET, engine, model, same
from pairs import each_pair

import loopwright as lw
from loopwright.ops.families.split_part import split_evenly
from loopwright.runtime.measure.onnx_reference import onnx_evaluator

# Splits of open extents


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_an_open_extent(parts, axis):
    names = [f"y{k}" for k in range(parts)]
    node = helper.make_node("Split", ["x"], names, axis=axis, num_outputs=parts)
    made = model([node], {"x": (FLOAT, ["n", "m"])}, names, opset=18)
    split = engine(made)
    for extent in (0, 1, 4, 5, 6, 9):
        x = floats(*((extent, 3) if axis == 0 else (3, extent)))
        size = -(-extent // parts)
        expected = [np.take(x, np.arange(k * size, max(k * size, min((k + 1) * size, extent))), axis)
                    for k in range(parts)]  # fmt: skip
        same(split([x]), expected)
        if extent % parts == 0 and extent:
            same(split([x]), onnx_evaluator(made).run(None, {"x": x}))


@pytest.mark.parametrize("opset", [2, 11, 13])
def test_equal_parts_of_an_open_extent_have_one_extent(opset):
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1),
        helper.make_node("Sub", ["a", "b"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    halves = engine(model(nodes, {"x": (FLOAT, ["b", "n", 3])}, ["y"], opset=opset))
    for extent in (0, 2, 6):
        x = floats(2, extent, 3)
        a, b = np.split(x, 2, axis=1)
        same(halves([x]), [np.maximum(a - b, 0)])
    with pytest.raises(lw.RuntimeArgumentError, match=": n should be a multiple of 2, found n = 5"):
        halves([floats(2, 5, 3)])


def test_equal_parts_of_a_known_extent_that_they_do_not_divide_are_refused_when_it_is_given():
    x = lw.var("x", (lw.te.var("n"), 3))
    function = lw.Function([x], lw.nn.add(*split_evenly(x, 2, even=True)))
    with pytest.raises(lw.ModelError, match=r"split_part\(float32\[5, 3\]\): 5 should be a multiple of 2"):
        lw.compile(function, target=TARGET, shapes={"x": (5, 3)}, jobs=1)


def test_exports_check_that_parts_are_equal(tmp_path):
    made = model([helper.make_node("Split", ["x"], ["a", "b"])], {"x": (FLOAT, ["n", 3])}, ["a", "b"], opset=13)
    lw.compile(made, target=TARGET, jobs=1).export(tmp_path, "llvm", "halves")
    assert "n should be a multiple of 2" in (tmp_path / "halves.ll").read_text()


# Reshapes of open extents


@pytest.mark.parametrize(
    ("shape", "first", "second"),
    [
        (["n", 6, 64], [-1, 64], [-1, 6, 64]),
        (["n", 6, 64], [-1, 64], [-1, 2, 3, 64]),
        (["n", 6, 64], [-1, 32], [-1, 12, 8, 4]),
        (["n", 6, 64], [-1], [-1, 6, 64]),
        (["n", "m", 6, 4], [0, -1, 4], [0, -1, 6, 4]),
        (["n", "m", 6, 4], [0, -1], [0, -1, 3, 2, 4]),
        (["n", "m", 6, 4], [-1, 6, 4], [-1, 2, 12]),
    ],
)
def test_open_extents_go_through_reshapes_and_back(shape, first, second):
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Reshape", ["b", "t"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"]),
    ]
    constants = {"s": np.array(first), "t": np.array(second)}
    made = model(nodes, {"x": (FLOAT, shape)}, ["y"], constants)
    reshaped, oracle = engine(made), onnx_evaluator(made)
    for n, m in ((1, 1), (5, 2)):
        x = floats(*({"n": n, "m": m}.get(extent, extent) for extent in shape))
        same(reshaped([x]), oracle.run(None, {"x": x}))


def test_sums_of_open_extents_are_divided_term_by_term():
    nodes = [
        helper.make_node("Concat", ["x", "z"], ["a"], axis=0),
        helper.make_node("Reshape", ["a", "s"], ["b"]),
        helper.make_node("Reshape", ["b", "t"], ["y"]),
    ]
    constants = {"s": np.array([-1, 8]), "t": np.array([-1, 2, 3, 8])}
    kinds = {"x": (FLOAT, ["n", 6, 8]), "z": (FLOAT, ["m", 6, 8])}
    made = model(nodes, kinds, ["y"], constants)
    x, z = floats(2, 6, 8), floats(3, 6, 8)
    same(engine(made)([x, z]), onnx_evaluator(made).run(None, {"x": x, "z": z}))


def test_an_extent_of_minus_one_stays_open():
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["n", "m"])}, ["y"])
    library = lw.compile(made, target=TARGET, shapes={"x": (-1, 4)}, jobs=1)
    assert library.inputs[0].shape == ("n", 4)
    with pytest.raises(lw.ModelError, match="input 'x' has a negative extent"):
        lw.compile(made, target=TARGET, shapes={"x": (-2, 4)}, jobs=1)
    x = lw.var("x", (lw.te.var("n"), lw.te.var("m")))
    fixed = lw.compile(lw.Function([x], lw.nn.relu(x)), target=TARGET, shapes={"x": (-1, 4)}, jobs=1)
    assert fixed.inputs[0].shape == ("n", 4)


def test_extents_that_are_declared_as_minus_one_or_a_question_mark_are_open_each_for_itself():
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, [-1, 3, "?", "?"])}, ["y"])
    library = lw.compile(made, target=TARGET, jobs=1)
    assert [isinstance(extent, str) for extent in library.inputs[0].shape] == [True, False, True, True]
    assert len(set(library.inputs[0].shape)) == 4
    fixed = lw.compile(made, target=TARGET, shapes={"x": (1, 3, 4, 5)}, jobs=1)
    assert fixed.inputs[0].shape == (1, 3, 4, 5)


# Empty images


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (1, 0, 8, 8), (1, 3, 0, 8), (1, 3, 8, 0)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scale", [2.0, 0.25])
@pytest.mark.parametrize("antialias", [0, 1])
def test_empty_images_are_resized_to_empty_ones(shape, mode, scale, antialias):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, antialias=antialias if mode != "nearest" else 0)
    made = model([node], {"x": (FLOAT, shape)}, ["y"], {"s": np.array([1, 1, scale, scale], np.float32)}, opset=18)
    (found,) = engine(made)([np.zeros(shape, np.float32)])
    assert found.shape == (*shape[:2], *(int(extent * scale) for extent in shape[2:]))


def test_what_cannot_be_resized_is_told():
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear")
    made = model([node], {"x": (FLOAT, [1, 3, 0, 8])}, ["y"], {"s": np.array([1, 3, 4, 8])}, opset=18)
    with pytest.raises(lw.ModelError, match=r"axis 2 of float32\[1, 3, 0, 8\] is empty: there is nothing to resize"):
        engine(made)


@pytest.mark.parametrize(("shape", "axis"), [((0, 3, 4), 1), ((2, 0, 4), 1), ((2, 3, 0), 1), ((2, 3, 0), 2), ((0,), 0)])
def test_empty_tensors_are_repeated(shape, axis):
    x = lw.var("x", shape)
    repeated = lw.Engine(lw.compile(lw.Function([x], lw.nn.repeat(x, 2, axis)), target=TARGET, jobs=1))
    assert repeated([np.zeros(shape, np.float32)])[0].shape == np.repeat(np.zeros(shape), 2, axis).shape


# Attention


@pytest.mark.parametrize("outputs", [["y", "", "", ""], ["y", "", "", "q"], ["y", "k", "v", ""], ["", "k", "v", "q"]])
@pytest.mark.parametrize("past", [False, True])
def test_outputs_of_attention_may_be_skipped(outputs, past):
    arrays = {name: floats(2, 4, 6, 8, seed=k) for k, name in enumerate(("query", "key", "value"))}
    inputs = ["query", "key", "value"]
    if past:
        arrays |= {name: floats(2, 4, 3, 8, seed=k) for k, name in enumerate(("pk", "pv"))}
        inputs += ["", "pk", "pv"]
    kinds = {name: (FLOAT, list(array.shape)) for name, array in arrays.items()}
    made = model([helper.make_node("Attention", inputs, outputs)], kinds, [o for o in outputs if o], opset=23)
    same(engine(made)(arrays), onnx_evaluator(made).run(None, arrays))


def attention_with_cache(rank, mask, causal, past, present, opset, opened):
    """A model of Attention of 4 heads of 8, of which 2 of keys, and its inputs: 5 positions behind a cache of 3."""
    kinds = {"query": ("B", 4, "S", 8), "key": ("B", 2, "S", 8), "value": ("B", 2, "S", 6)}
    if rank == 3:
        kinds = {name: (shape[0], shape[2], shape[1] * shape[3]) for name, shape in kinds.items()}
    whole = "P + S" if past else "S"
    if mask is not None:
        kinds["mask"] = {2: ("S", whole), 3: (4, "S", whole), 4: ("B", 1, "S", whole)}[mask[0]]
    if past:
        kinds |= {"past_key": ("B", 2, "P", 8), "past_value": ("B", 2, "P", 6)}
    sizes = {"B": 2, "S": 5, "P": 3, "P + S": 8}
    fixed = {name: [sizes.get(extent, extent) for extent in shape] for name, shape in kinds.items()}
    arrays = {name: floats(*shape, seed=k) for k, (name, shape) in enumerate(fixed.items())}
    if mask is not None and mask[1] == "bool":
        arrays["mask"] = arrays["mask"] > -0.5
    names = ["query", "key", "value", "mask" if mask else "", *(("past_key", "past_value") if past else ())]
    outputs = ["y", *(("key_out", "value_out") if present else ())]
    heads = {"q_num_heads": 4, "kv_num_heads": 2} if rank == 3 else {}
    node = helper.make_node("Attention", names, outputs, is_causal=int(causal), **heads)
    declared = {
        name: (TensorProto.BOOL if array.dtype == bool else FLOAT, list(kinds[name] if opened else array.shape))
        for name, array in arrays.items()
    }
    return model([node], declared, outputs, opset=opset), arrays


@each_pair(
    opened=[False, True],
    rank=[4, 3],
    causal=[False, True],
    mask=[None, (2, "float"), (2, "bool"), (3, "float"), (4, "bool"), (4, "float")],
)
def test_attention_behind_a_cache_is_one_operator(opened, rank, causal, mask):
    for past, present, opset in ((True, True, 23), (True, False, 24), (False, True, 23)):
        made, arrays = attention_with_cache(rank, mask, causal, past, present, opset, opened)
        library = lw.compile(made, target=TARGET, jobs=1)
        assert any("attention" in function.name for function in library.functions)
        same(lw.Engine(library)(list(arrays.values())), onnx_evaluator(made).run(None, arrays))


@each_pair(
    rank=[4, 3], kind=[np.float32, np.float16], scale=[None, 0.25], opened=["all", "query", "key"], masked=[False, True]
)
def test_the_size_of_heads_and_the_queries_of_a_mask_may_be_open(rank, kind, scale, opened, masked):
    """Of all inputs, or of one, where another has the number; a mask has a name of its own for the queries."""
    names = ["query", "key", "value", *(["mask"] if masked else [])]

    def shape_of(name, batch, length, size):
        if name == "mask":
            return ("Q", 5) if batch == "B" else (length, 5)
        length = length if name == "query" else 5
        return (batch, 4, length, size) if rank == 4 else (batch, length, 4 * size if batch != "B" else size)

    sizes = {name: "d" if opened in ("all", name) else 8 if rank == 4 else 32 for name in names}
    element = HALF if kind == np.float16 else FLOAT
    declared = {name: (element, list(shape_of(name, "B", "S", sizes[name]))) for name in names}
    heads = {"q_num_heads": 4, "kv_num_heads": 4} if rank == 3 else {}
    node = helper.make_node("Attention", names, ["y"], **heads, **({} if scale is None else {"scale": scale}))
    made = model([node], declared, ["y"], opset=23)
    made.graph.output[0].type.tensor_type.elem_type = element
    run = engine(made)
    for batch, length, size in ((1, 5, 8), (2, 3, 20 if opened == "all" else 8), (1, 1, 8)):
        shapes = {name: shape_of(name, batch, length, size) for name in names}
        arrays = {name: floats(*shape, seed=k, kind=kind) for k, (name, shape) in enumerate(shapes.items())}
        same(run(arrays), onnx_evaluator(made).run(None, arrays), 1e-5 if kind == np.float32 else 2e-3)


def test_a_width_that_heads_do_not_divide_is_told_by_the_run():
    names = ["query", "key", "value"]
    node = helper.make_node("Attention", names, ["y"], q_num_heads=4, kv_num_heads=4)
    run = engine(model([node], dict.fromkeys(names, (FLOAT, ["B", "S", "d"])), ["y"], opset=23))
    with pytest.raises(lw.RuntimeArgumentError, match=r"d should be \(d // 4\) \* 4, found d = 30"):
        run([floats(1, 5, 30)] * 3)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("modified", [False, True])
def test_flex_attention_is_its_body(kind, heads, modified):
    arrays = {
        name: floats(2, count, length, 8, seed=k, kind=kind)
        for k, (name, count, length) in enumerate((("q", 4, 6), ("k", heads, 5), ("v", heads, 5)))
    }
    score = helper.make_tensor_value_info("s", FLOAT, [2, 4, 6, 5]), helper.make_tensor_value_info("t", FLOAT, None)
    tanh = helper.make_graph([helper.make_node("Tanh", ["s"], ["t"])], "score", [score[0]], [score[1]])
    square = helper.make_graph([helper.make_node("Mul", ["s", "s"], ["t"])], "prob", [score[0]], [score[1]])
    attributes = {"score_mod": tanh, "prob_mod": square} if modified else {"scale": 0.3}
    domain = "ai.onnx.preview"
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=domain, **attributes)
    tensor_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    kinds = {name: (tensor_type, list(array.shape)) for name, array in arrays.items()}
    made = model([node], kinds, ["y"], opset=onnx.defs.onnx_opset_version(), domains=[domain])
    same(engine(made)(arrays), onnx_evaluator(made).run(None, arrays), 1e-5 if kind is np.float32 else 2e-3)


def test_open_extents_are_expanded_where_they_stay_what_they_are():
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=0, end=1),
        helper.make_node("Concat", ["k", "n", "m"], ["shape"], axis=0),
        helper.make_node("Expand", ["x", "shape"], ["y"]),
    ]
    made = model(nodes, {"x": (FLOAT, ["n", 1])}, ["y"], {"k": np.array([3]), "m": np.array([4])})
    expanded = engine(made)
    for n in (0, 1, 5):
        x = floats(n, 1)
        same(expanded([x]), [np.broadcast_to(x, (3, n, 4))])
    nodes[1] = helper.make_node("Concat", ["n", "k", "m"], ["shape"], axis=0)
    expanded = engine(model(nodes, {"x": (FLOAT, ["n", 1])}, ["y"], {"k": np.array([3]), "m": np.array([4])}))
    same(expanded([floats(3, 1)]), [np.broadcast_to(floats(3, 1), (3, 3, 4))])
    with pytest.raises(lw.RuntimeArgumentError, match=r"should have shape \(3, 1\), found \(5, 1\)"):
        expanded([floats(5, 1)])


def test_flex_attention_of_open_extents():
    domain = "ai.onnx.preview"
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=domain)
    kinds = {name: (FLOAT, ["b", 4, "s", 8]) for name in "qkv"}
    made = model([node], kinds, ["y"], opset=onnx.defs.onnx_opset_version(), domains=[domain])
    arrays = {name: floats(2, 4, 5, 8, seed=k) for k, name in enumerate("qkv")}
    same(engine(made)(arrays), onnx_evaluator(made).run(None, arrays))


# Scales of 16 bits


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("per_row", [False, True])
def test_products_of_quantized_matrices_have_scales_of_16_bits_too(kind, per_row):
    a, b = integers(4, 8, kind=np.int8), integers(8, 5, kind=np.int8)
    scale_a = np.linspace(0.02, 0.04, 4).astype(kind)[:, None] if per_row else np.array(0.02, kind)
    scales = {"as": scale_a, "bs": np.array(0.03, kind), "ys": np.array(0.05, kind)}
    zeros = {name: np.array(1, np.int8) for name in ("az", "bz", "yz")}
    node = helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])
    kinds = {"a": (TensorProto.INT8, [4, 8]), "b": (TensorProto.INT8, [8, 5])}
    (found,) = engine(model([node], kinds, ["y"], scales | zeros))({"a": a, "b": b})
    product = (a.astype(np.float64) - 1) @ (b.astype(np.float64) - 1)
    real = product * scales["as"].astype(np.float64) * np.float64(scales["bs"]) / np.float64(scales["ys"])
    assert found.dtype == np.int8
    assert np.abs(found - np.clip(np.round(real) + 1, -128, 127)).max() <= (1 if per_row else 0)


# Extents that are 1 but where there is nothing


LAST = {"from": np.array([-1]), "to": np.array([2**63 - 1]), "axis": np.array([1])}
MEET = {
    "Div": ["x", "last"],
    "Sub": ["last", "x"],
    "Where": ["condition", "last", "x"],
    "Max": ["x", "last", "x"],
    "MatMul": ["planes", "lasts"],
}


@pytest.mark.parametrize("op", MEET)
def test_the_last_row_stretches_over_all_rows(op):
    """The extent of x[:, -1:] is min(n, 1), of which nobody knows that it is 1."""
    nodes = [
        helper.make_node("Slice", ["x", "from", "to", "axis"], ["last"]),
        helper.make_node("Greater", ["x", "last"], ["condition"]),
        helper.make_node("Unsqueeze", ["x", "axes"], ["planes"]),
        helper.make_node("Unsqueeze", ["last", "axes"], ["lasts_"]),
        helper.make_node("Transpose", ["lasts_"], ["lasts"], perm=[0, 1, 3, 2]),
        helper.make_node(op, MEET[op], ["y"]),
    ]
    made = model(nodes, {"x": (FLOAT, ["b", "n", 5])}, ["y"], {**LAST, "axes": np.array([2])}, opset=18)
    run = engine(made)
    for shape in ((1, 4, 5), (2, 1, 5), (3, 7, 5)):
        x = floats(*shape) + 3
        same(run([x]), onnx_evaluator(made).run(None, {"x": x}))


# Extents that no tensor has below 0


def test_the_rows_of_a_convolution_are_never_negative():
    """Masks of speech models: the rows that a convolution gives of an open length, asked whether they are -1, which
    stands for a dimension as it is, and counted by a range."""
    nodes = [
        helper.make_node("Conv", ["x", "weight"], ["c"], strides=[2]),
        helper.make_node("Shape", ["c"], ["shape"]),
        helper.make_node("Gather", ["shape", "0"], ["batch"]),
        helper.make_node("Gather", ["shape", "2"], ["rows"]),
        helper.make_node("Concat", ["batch", "-1", "rows", "rows"], ["wanted"], axis=0),
        helper.make_node("Equal", ["wanted", "-1"], ["as it is"]),
        helper.make_node("Where", ["as it is", "1", "wanted"], ["whole"]),
        helper.make_node("Squeeze", ["rows"], ["count"]),
        helper.make_node("Range", ["zero", "count", "one"], ["positions"]),
        helper.make_node("Cast", ["positions"], ["places"], to=FLOAT),
        helper.make_node("Expand", ["places", "whole"], ["mask"]),
        helper.make_node("Unsqueeze", ["c", "1"], ["planes"]),
        helper.make_node("MatMul", ["planes", "mask"], ["y"]),
    ]
    constants = {
        "weight": floats(3, 2, 5),
        **{str(k): np.array([k]) for k in (0, -1, 1, 2)},
        "zero": np.array(0),
        "one": np.array(1),
    }
    made = model(nodes, {"x": (FLOAT, ["b", 2, "n"])}, ["y"], constants, opset=18)
    assert "born" not in str(lw.from_onnx(made))
    run = engine(made)
    for shape in ((1, 2, 12), (2, 2, 5), (3, 2, 31)):
        x = floats(*shape)
        same(run([x]), onnx_evaluator(made).run(None, {"x": x}))


def test_windows_of_an_open_image_are_padded_by_a_negated_remainder():
    """Windowed attention pads rows to whole windows by (-n) % 3, a remainder with the sign of the divisor."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=1, end=2),
        helper.make_node("Neg", ["shape"], ["negative"]),
        helper.make_node("Mod", ["negative", "3"], ["missing"]),
        helper.make_node("Concat", ["0", "0", "0", "0", "missing", "0"], ["widths"], axis=0),
        helper.make_node("Pad", ["x", "widths"], ["padded"]),
        helper.make_node("Add", ["shape", "missing"], ["rows"]),
        helper.make_node("Div", ["rows", "3"], ["windows"]),
        helper.make_node("Concat", ["windows", "3", "4"], ["parted"], axis=0),
        helper.make_node("Reshape", ["padded", "parted"], ["y"]),
    ]
    constants = {"0": np.array([0]), "3": np.array([3]), "4": np.array([4])}
    made = model(nodes, {"x": (FLOAT, [1, "n", 4])}, ["y"], constants, opset=18)
    assert "born" not in str(lw.from_onnx(made))
    run = engine(made)
    for rows in (1, 3, 7, 8):
        x = floats(1, rows, 4)
        same(run([x]), onnx_evaluator(made).run(None, {"x": x}))


@pytest.mark.parametrize("op", ["GatherElements", "ScatterElements", "GatherND"])
def test_rows_that_a_run_counts_meet_rows_that_it_counts_again(op):
    """Two compressions by one mask give as many rows, which nobody knows before the run."""
    column = ["positions", "rows"] if op == "ScatterElements" else ["positions"]
    made = {"GatherElements": {"axis": 1}, "ScatterElements": {"axis": 1}, "GatherND": {"batch_dims": 1}}[op]
    nodes = [
        helper.make_node("Compress", ["x", "mask"], ["rows"], axis=0),
        helper.make_node("Compress", ["at", "mask"], ["positions"], axis=0),
        helper.make_node(op, ["rows", *column], ["y"], **made),
    ]
    width = 5 if op == "ScatterElements" else 1
    inputs = {
        "x": (FLOAT, ["n", 5]),
        "at": (TensorProto.INT64, ["n", width]),
        "mask": (TensorProto.BOOL, ["n"]),
    }
    graph = model(nodes, inputs, ["y"], opset=18)
    run = engine(graph)
    for mask in ([True, False, True, True], [False, False], [True]):
        at = np.stack([np.random.default_rng(k).permutation(5)[:width] for k in range(len(mask))])
        given = {"x": floats(len(mask), 5), "at": at, "mask": np.array(mask)}
        found = run(given)
        if any(mask):
            same(found, onnx_evaluator(graph).run(None, given))
        assert len(found[0]) == sum(mask)


def test_open_rows_of_indices_are_those_of_the_data():
    node = helper.make_node("GatherElements", ["x", "at"], ["y"], axis=1)
    run = engine(model([node], {"x": (FLOAT, ["n", 5]), "at": (TensorProto.INT64, ["m", 2])}, ["y"]))
    x, at = floats(3, 5), integers(3, 2) % 5
    same(run({"x": x, "at": at}), [np.take_along_axis(x, at, 1)])
    with pytest.raises(lw.RuntimeArgumentError, match="n = 3"):
        run({"x": x, "at": np.concatenate([at, at])})


@pytest.mark.parametrize("index", [1, -2])
def test_repeats_of_one_axis_by_an_open_extent(index):
    """repeat_interleave, as exporters write it: a one-hot vector of an extent is how often each axis is repeated."""
    nodes = [
        helper.make_node("Shape", ["times"], ["count"], start=0, end=1),
        helper.make_node("Concat", ["one", "count"], ["values"], axis=0),
        helper.make_node("OneHot", ["index", "depth", "values"], ["hot"]),
        helper.make_node("Reshape", ["hot", "flat"], ["repeats"]),
        helper.make_node("Unsqueeze", ["x", "one"], ["row"]),
        helper.make_node("Tile", ["row", "repeats"], ["tiled"]),
        helper.make_node("Reshape", ["tiled", "rows"], ["repeated"]),
        helper.make_node("MatMul", ["repeated", "weight"], ["y"]),
    ]
    constants = {
        "one": np.array([1]),
        "index": np.array([index]),
        "depth": np.array(3),
        "flat": np.array([-1]),
        "rows": np.array([-1, 4]),
        "weight": floats(4, 6),
    }
    made = model(nodes, {"x": (FLOAT, ["b", 4]), "times": (FLOAT, ["n"])}, ["y"], constants, opset=18)
    assert "born" not in str(lw.from_onnx(made))
    run = engine(made)
    for b, n in ((1, 1), (2, 3), (3, 0)):
        given = {"x": floats(b, 4), "times": floats(n)}
        same(run(given), [np.repeat(given["x"], n, axis=0) @ constants["weight"]])


def test_what_is_resized_to_the_nearest_is_blocked_in_registers():
    """Indices that are clamped go to 0 in an empty image, and no further where tiles go on beyond the last position."""
    nodes = [
        helper.make_node(
            "Resize",
            ["x", "", "scales"],
            ["wide"],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        helper.make_node("Conv", ["wide", "weight"], ["deep"], pads=[1] * 4),
        helper.make_node("Conv", ["deep", "weight"], ["y"], pads=[1] * 4),
    ]
    constants = {"scales": np.array([1, 1, 1.5, 1.5], np.float32), "weight": floats(32, 32, 3, 3) / 16}
    made = model(nodes, {"x": (FLOAT, [1, 32, "h", "w"])}, ["y"], constants, opset=18)
    library = lw.compile(made, TARGET, jobs=1)
    served = [c.implementation for f in library.functions for c in f.choices if c.call.startswith("layout_transform")]
    assert set(served) == {"layout_transform.registers"}
    run = lw.Engine(library, threads=1)
    for h, w in ((1, 1), (4, 7), (12, 5)):
        x = floats(1, 32, h, w)
        np.testing.assert_allclose(run([x])[0], onnx_evaluator(made).run(None, {"x": x})[0], rtol=1e-3, atol=1e-3)
