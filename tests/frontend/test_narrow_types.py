"""ONNX's types of 8, 4 and 2 bits: its backend cases, values in files, blocks, rounding; against onnx and ml_dtypes."""

import re

import ml_dtypes
import numpy as np
import onnx
import pytest
from backend_cases import cases_of, node_cases, stored
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import case, check, each_version, floats, integers, make_model, model_of, run

import loopwright as lw
from loopwright.base.dtype import NARROW_KINDS, dtype

X = floats(3, 4)
CASES = [
    case("BitCast", (26,), X, to=TensorProto.INT32, expected=lambda x: x.view(np.int32)),
    case("BitCast", (26,), integers(5, kind=np.int16), to=TensorProto.FLOAT16, expected=lambda x: x.view(np.float16)),
    case("BitCast", (26,), np.zeros((0, 2), np.uint8), to=TensorProto.INT8, expected=lambda x: x.view(np.int8)),
]
_BACKEND = re.compile(r"(FLOAT8|FLOAT4|INT4|INT2\b|INT2_|e8m0|bitcast|e4m3|e5m2|float4|int4|int2$|blocked)")
_MODULES = ("bitcast", "cast", "castlike", "dequantizelinear", "quantizelinear")


def backend_cases():
    return {c.name: c for c in cases_of(*_MODULES) if _BACKEND.search(c.name)}


@each_version(CASES)
def test_bits_are_taken_for_another_type(case, version):
    check(case, version)


@pytest.mark.slow
def test_no_backend_case_is_missing():
    assert backend_cases().keys() == {c.name for c in node_cases() if _BACKEND.search(c.name)}


@pytest.mark.parametrize("made", [pytest.param(c, id=name) for name, c in backend_cases().items()])
def test_backend_cases_give_what_onnx_says(made):
    names = [i.name for i in made.model.graph.input]
    for inputs, outputs in made.data_sets:
        found = run(made.model, dict(zip(names, map(stored, inputs), strict=True)))
        for a, b in zip(found, map(stored, outputs), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if "float" in str(a.dtype):
                np.testing.assert_allclose(a.astype(np.float32), b.astype(np.float32), rtol=made.rtol, atol=made.atol)
            else:
                np.testing.assert_array_equal(a, b)


def cast_model(source, to, **attrs):
    node = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(dtype(to).to_numpy()), **attrs)
    return make_model([node], {"x": source}, ["y"], 25)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("to", [k for k in NARROW_KINDS if k.startswith("float8") and "e8m0" not in k])
def test_casts_saturate_unless_told_otherwise(to, source, saturate):
    kind = dtype(to).to_numpy()
    largest = float(ml_dtypes.finfo(kind).max)
    x = np.array([0, -0.0, 1, largest, largest * 1.01, 60000, -60000, np.inf, -np.inf, np.nan, 1e-9]).astype(source)
    (found,) = run(cast_model(x, to, saturate=saturate), {"x": x})
    wanted = (numpy_helper.saturate_cast(x, kind) if saturate else x.astype(kind)).astype(np.float32)
    np.testing.assert_array_equal(found.astype(np.float32), wanted)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two_are_rounded_as_asked_for(mode, saturate):
    """In the range of the type, where onnx's reference and its text agree."""
    x = np.concatenate([2.0 ** np.arange(-125, 127) * k for k in (1, 1.1, 1.5, 1.4999, 1.9)]).astype(np.float32)
    (found,) = run(cast_model(x, "float8_e8m0fnu", saturate=saturate, round_mode=mode), {"x": x})
    wanted = numpy_helper.to_float8e8m0(x, bool(saturate), mode)
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


def test_powers_of_two_end_as_the_table_of_the_standard_says():
    x = np.array([0, np.inf, np.nan, 3e38, 2.0**-140, 2.0**-127], np.float32)
    saturated = run(cast_model(x, "float8_e8m0fnu", saturate=1, round_mode="up"), {"x": x})[0]
    np.testing.assert_array_equal(saturated.view(np.uint8), [0, 254, 255, 254, 0, 0])
    others = run(cast_model(x, "float8_e8m0fnu", saturate=0, round_mode="nearest"), {"x": x})[0]
    np.testing.assert_array_equal(others.view(np.uint8), [255, 255, 255, 255, 255, 0])


@pytest.mark.parametrize("form", ["raw_data", "int32_data", "external"])
@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_values_in_files_are_unpacked(kind, form, tmp_path):
    numpy_kind = dtype(kind).to_numpy()
    value = (np.arange(15) % (1 << dtype(kind).bits)).astype(np.uint8).view(numpy_kind).reshape(5, 3)
    proto = numpy_helper.from_array(value, "w")
    if form == "int32_data":
        raw, proto = proto.raw_data, TensorProto(data_type=proto.data_type, dims=proto.dims, name="w")
        proto.int32_data.extend(raw)
    node = helper.make_node("Identity", ["w"], ["y"])
    output = helper.make_tensor_value_info("y", proto.data_type, value.shape)
    model = helper.make_model(
        helper.make_graph([node], "g", [], [output], [proto]), opset_imports=[helper.make_opsetid("", 25)]
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=form == "external", size_threshold=0, location="weights.bin")
    (found,) = lw.Engine(lw.compile(lw.from_onnx(path), jobs=1))({})
    np.testing.assert_array_equal(found.view(np.uint8), value.view(np.uint8))


@pytest.mark.parametrize("kind", NARROW_KINDS)
def test_values_are_moved_as_they_are(kind):
    """Operators that move data, of the standard and beyond; input and output are ml_dtypes' arrays."""
    x = (np.arange(24) % (1 << dtype(kind).bits)).reshape(2, 3, 4)
    x = x.astype(np.uint8).view(dtype(kind).to_numpy())
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("Pad", ["r", "pads", "one"], ["p"]),
        helper.make_node("Concat", ["p", "p"], ["c"], axis=1),
        helper.make_node("Gather", ["c", "rows"], ["g"], axis=0),
        helper.make_node("Slice", ["g", "start", "end"], ["y"]),
    ]
    one = x.reshape(-1)[1:2].reshape(())
    numbers = {"shape": [8, 3], "pads": [0, 1, 0, 0], "rows": [3, 0, 7], "start": [1], "end": [3]}
    stored_values = {"one": one} | {name: np.array(value, np.int64) for name, value in numbers.items()}
    (found,) = run(make_model(nodes, {"x": x}, ["y"], 25, stored_values), {"x": x})
    bits = np.pad(x.view(np.uint8).transpose(2, 0, 1).reshape(8, 3), ((0, 0), (1, 0)), constant_values=1)
    np.testing.assert_array_equal(found.view(np.uint8), np.concatenate([bits, bits], 1)[[0, 7]])


@pytest.mark.parametrize("extent", [6, 7, None])
@pytest.mark.parametrize("kind", ["int4", "uint4", "int8", "float8_e4m3fn", "float4_e2m1fn"])
def test_blocks_have_a_scale_each(kind, extent):
    """Quantised and back, in blocks along an axis, whose extent need not be a multiple, or is open."""
    numpy_kind = dtype(kind).to_numpy()
    x = floats(3, extent or 6, 2, seed=1)
    blocks = -(-x.shape[1] // 3)
    scale, zero = floats(3, blocks, 2, low=0.1, high=0.5), np.zeros((3, blocks, 2), numpy_kind)
    if "int" in kind:
        zero = integers(3, blocks, 2, low=0, high=3).astype(numpy_kind)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], axis=1, block_size=3),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], axis=-2, block_size=3),
    ]
    shape = (3, "n" if extent is None else extent, 2)
    model = make_model(nodes, {"x": (np.float32, shape)}, ["q", "y"], 21, {"scale": scale, "zero": zero})
    q, y = run(model, {"x": x})
    spread = [np.repeat(p.astype(np.float32), 3, 1)[:, : x.shape[1]] for p in (scale, zero)]
    if "int" in kind:
        info = ml_dtypes.iinfo(numpy_kind)
        wanted = np.clip(np.rint(x / spread[0]) + spread[1], info.min, info.max)
    else:
        wanted = numpy_helper.saturate_cast(x / spread[0], numpy_kind).astype(np.float32)
    np.testing.assert_array_equal(q.astype(np.float32), wanted)
    np.testing.assert_allclose(y, (wanted - spread[1]) * spread[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (case("QuantizeLinear", (21,), floats(2, 4), floats(2, 3), block_size=2), "4 elements are not 3 blocks of 2"),
        (
            case("QuantizeLinear", (21,), floats(2, 4), floats(2), block_size=2),
            "need a scale and a zero point of rank 2",
        ),
        (case("QuantizeLinear", (25,), floats(2), floats(), output_dtype=24), "quantization to float8_e8m0fnu"),
        (case("BitCast", (26,), floats(2), to=TensorProto.INT8), "float32 has 32 bits, and int8 has 8"),
        (case("Add", (14,), np.zeros(2, ml_dtypes.int4), np.zeros(2, ml_dtypes.int4)), "found int4"),
    ],
)
def test_what_has_no_meaning_is_told(made, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(model_of(made, made.versions[0]))
