"""``arithmetic="direct"``: results are made of the products of their definitions; layouts are planned."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright import onnx_backend
from loopwright.artifact.options import CodegenOptions
from loopwright.cli import main
from loopwright.compiler.passes.graph_passes import run_graph_passes
from loopwright.compiler.selection import select as selection
from loopwright.compiler.selection.records import TuningRecords
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.selection.tuning_record import TuningRecord
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Call
from loopwright.graph.visit import post_order
from loopwright.ops.definition.strategy import OpStrategy
from loopwright.ops.families import reduce, unary
from loopwright.ops.families.binary import divide, maximum, multiply, power
from loopwright.ops.families.conv.winograd_weights import WinogradPlanes
from loopwright.ops.families.reduce import l1, l2, sum_square
from loopwright.ops.families.unary import rsqrt
from loopwright.schedules.default_schedule import default_schedule

rng = np.random.default_rng(8)
TARGETS = (
    *("x86-64", "x86-64-v3", "x86-64-v4", "haswell", "znver4", "sapphirerapids"),
    "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1",
    "llvm -mtriple=riscv64-linux-gnu -mattr=+v",
)
ANY = "x86-64"
"""On which all of these become other products by default, and which all x86 machines run."""


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def windows(x):
    """A convolution by 3×3, as [places, terms] · [terms, filters] in float64: the terms of each result."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    taps = [padded[:, :, i : i + x.shape[2], j : j + x.shape[3]] for i in range(3) for j in range(3)]
    return np.stack(taps, axis=2)


def convolved(x, w):
    return np.einsum("ncthw,kct->nkhw", windows(x), w.astype(np.float64).reshape(*w.shape[:2], 9))


def pointwise(x, w):
    return np.einsum("nchw,kc->nkhw", x.astype(np.float64), w[:, :, 0, 0].astype(np.float64))


def multiplied(x, w):
    return x.astype(np.float64) @ w.astype(np.float64)


CASES = {
    "conv": (lambda x, w: lw.nn.conv2d(x, w, padding=1), (1, 32, 28, 28), (32, 32, 3, 3), convolved),
    "pointwise": (lw.nn.conv2d, (1, 256, 14, 14), (1024, 256, 1, 1), pointwise),
    "matmul": (lw.nn.matmul, (1, 128, 768), (768, 768), multiplied),
}


def function_of(name, weight=None):
    make, x_shape, w_shape, _ = CASES[name]
    x = lw.var("x", x_shape)
    return lw.Function([x], make(x, lw.const(normal(*w_shape) if weight is None else weight)))


def chosen(function, target, **options):
    """The implementations of all calls, behind the passes over the graph."""
    settings = CompileSettings(lw.resolve_target(target), CodegenOptions(**options))
    graph = run_graph_passes(function, settings)
    calls = [node for node in post_order(graph.body) if isinstance(node, Call)]
    return [select_implementation(call, settings).chosen for call in calls]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_direct_arithmetic_takes_no_products_but_those_of_the_definition(name, target):
    for options in ({"arithmetic": "direct"}, {"precision": "strict"}, {"precision": "fast", "arithmetic": "direct"}):
        assert all(made.direct for made in chosen(function_of(name), target, **options))


@pytest.mark.parametrize("name", CASES)
def test_fast_arithmetic_is_the_default_and_takes_others(name):
    for options in ({}, {"arithmetic": "fast"}, {"precision": "fast"}):
        assert not all(made.direct for made in chosen(function_of(name), ANY, **options))


def test_layouts_are_planned_in_direct_arithmetic():
    x = lw.var("x", (1, 64, 56, 56))
    y = lw.nn.relu(lw.nn.conv2d(x, lw.const(normal(64, 64, 3, 3)), padding=1))
    f = lw.Function([x], lw.nn.conv2d(y, lw.const(normal(64, 64, 3, 3)), padding=1))
    names = [made.name for made in chosen(f, "x86-64-v3", arithmetic="direct")]
    assert names.count("conv.blocked") == 2
    assert any(name.startswith("layout_transform") for name in names)


def outcome(name, x, w, **options):
    return lw.Engine(lw.compile(function_of(name, w), target=ANY, jobs=1, **options), threads=1)([x])[0]


def at_least(norm, least):
    return maximum(norm, lw.const(np.float32(least)))


NORMALIZED = {
    "l2": lambda y, axis: divide(y, at_least(l2(y, axis, keepdims=True), 1e-12)),
    "l1": lambda y, axis: divide(y, at_least(l1(y, axis, keepdims=True), 1e-12)),
    "rsqrt": lambda y, axis: multiply(y, rsqrt(at_least(sum_square(y, axis, keepdims=True), 1e-24))),
    "l2 of squares": lambda y, axis: divide(
        y, at_least(unary.sqrt(reduce.sum(multiply(y, y), axis, keepdims=True)), 1e-12)
    ),
    "l2 of magnitudes": lambda y, axis: divide(
        y, at_least(unary.sqrt(reduce.sum(power(unary.abs(y), lw.const(np.float32(2))), axis, keepdims=True)), 1e-12)
    ),
}


@pytest.mark.parametrize("norm", NORMALIZED)
@pytest.mark.parametrize("name", CASES)
def test_zeros_stay_zeros_where_products_are_divided_by_their_norm(name, norm):
    """Fast arithmetic would make tiny numbers of them, which the norm, as tiny, makes numbers around 1."""
    make, x_shape, w_shape, exactly = CASES[name]
    axis, x, w = 1 if len(x_shape) == 4 else 2, normal(*x_shape), normal(*w_shape)
    x[..., x_shape[-2] // 2 :, :] = 0
    argument = lw.var("x", x_shape)
    product = multiply(make(argument, lw.const(w)), lw.const(np.float32(0.5)))
    f = lw.Function([argument], NORMALIZED[norm](product, axis))
    assert all(made.direct for made in chosen(f, ANY))
    wanted = exactly(x, w)
    length = (
        np.abs(wanted).sum(axis, keepdims=True) if norm == "l1" else np.linalg.norm(wanted, axis=axis, keepdims=True)
    )
    wanted = wanted / np.where(length == 0, 1, length)
    found = lw.Engine(lw.compile(f, target=ANY, jobs=1), threads=1)([x])[0]
    np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_an_outlier_is_felt_only_where_the_definition_reads_it(name):
    """The error of each result stays within that of a sum of its own terms; by other products it does not."""
    _, x_shape, w_shape, exactly = CASES[name]
    x, w = normal(*x_shape), normal(*w_shape)
    x[tuple(e // 2 for e in x_shape)] = 1e8
    terms = np.prod(w_shape[1:]) if len(w_shape) == 4 else w_shape[0]
    bound = terms * np.finfo(np.float32).eps * exactly(abs(x), abs(w))
    errors = {a: abs(outcome(name, x, w, arithmetic=a) - exactly(x, w)) for a in ("direct", "fast")}
    assert (errors["direct"] <= bound).all()
    assert not (errors["fast"] <= bound).all()


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("name", CASES)
def test_nan_and_infinities_stay_where_the_definition_has_them(name, value):
    _, x_shape, w_shape, exactly = CASES[name]
    x, w = normal(*x_shape), normal(*w_shape)
    x[tuple(e // 2 for e in x_shape)] = value
    wanted = exactly(x, w)
    found = outcome(name, x, w, arithmetic="direct")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])
    assert np.isfinite(found[np.isfinite(wanted)]).all()


def test_direct_arithmetic_averages_what_the_definition_averages():
    """A mean before the products would overflow where that of the products does not."""
    x = lw.var("x", (1, 8, 4, 4))
    w = np.full((8, 8, 1, 1), 1e-3, np.float32)
    f = lw.Function([x], lw.nn.avg_pool(lw.nn.conv2d(x, lw.const(w)), 2, 2))
    data = np.full((1, 8, 4, 4), 3e38, np.float32)
    direct, fast = (
        lw.Engine(lw.compile(f, target=ANY, jobs=1, arithmetic=a), threads=1)([data])[0] for a in ("direct", "fast")
    )
    np.testing.assert_allclose(direct, 2.4e36, rtol=1e-6)
    assert np.isinf(fast).all()


def test_what_an_implementation_multiplies_is_what_it_declares():
    """Also one that a strategy offers for an operator that others compute directly."""
    call = lw.nn.winograd_conv2d(
        lw.var("x", (1, 2, 8, 8, 8)), lw.const(WinogradPlanes(2, 8)(normal(8, 16, 3, 3))), 2, 1, "NCHW8c"
    )
    target = lw.resolve_target(ANY)
    assert select_implementation(call, CompileSettings(target)).chosen.name == "winograd_conv2d.tiled"
    for options in ({"arithmetic": "direct"}, {"precision": "strict"}):
        with pytest.raises(lw.SelectionError, match=r"needs the products of the definition \(direct arithmetic\)"):
            select_implementation(call, CompileSettings(target, CodegenOptions(**options)))


def test_no_record_brings_other_products_back(monkeypatch):
    made = OpStrategy()
    compute = lambda attrs, inputs, result: inputs[0]  # noqa: E731
    schedule = lambda attrs, anchor, outputs, target: default_schedule(outputs)  # noqa: E731
    made.add_implementation(compute, schedule, "relu.plain")
    made.add_implementation(compute, schedule, "relu.other", plevel=20, direct=False)
    monkeypatch.setattr(selection, "strategy_of", lambda *_: made)
    call, target = lw.nn.relu(lw.var("x", (4,))), lw.resolve_target(ANY)
    known = TuningRecords([TuningRecord.of(call, target, "relu.other", [1e-6])])
    assert select_implementation(call, CompileSettings(target, records=known)).chosen.name == "relu.other"
    found = select_implementation(call, CompileSettings(target, CodegenOptions(arithmetic="direct"), records=known))
    assert found.chosen.name == "relu.plain"
    assert "direct arithmetic" in found.notes[0]


def test_a_library_says_how_it_computes_also_when_it_is_loaded(tmp_path):
    x = lw.var("x", (4,))
    f = lw.Function([x], lw.nn.relu(x))
    made = lw.compile(f, target=ANY, jobs=1, arithmetic="direct")
    made.save(tmp_path / "a.lwlib")
    for library in (made, lw.load(tmp_path / "a.lwlib")):
        assert library.model.arithmetic == "direct"
        assert repr(library).endswith("functions, direct arithmetic>")
    strict = lw.compile(f, target=ANY, jobs=1, precision="strict")
    assert repr(strict).endswith("functions, strict precision, direct arithmetic>")
    assert repr(lw.compile(f, target=ANY, jobs=1)).endswith("functions>")


def test_explanations_and_dumps_are_of_what_would_be_compiled():
    f = function_of("conv")
    for arithmetic, there in (("fast", True), ("direct", False)):
        settings = {"target": ANY, "arithmetic": arithmetic}
        assert ("winograd" in str(lw.explain(f, **settings))) is there
        assert ("winograd" in lw.dump(f, "graph", **settings)[0].text) is there
        assert any("winograd" in text.name for text in lw.dump(f, "llvm", **settings)) is there
        assert ("winograd" in str(lw.fusion_report(f, **settings))) is there
    name = lw.compile(f, target=ANY, arithmetic="direct", jobs=1).functions[1].symbol
    assert list(lw.function_schedules(f, name, target=ANY, arithmetic="direct")) == ["conv.blocked"]


@pytest.fixture
def model():
    """A product of matrices that becomes Strassen's."""
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 128, 768)), ("y", None))]
    weight = onnx.numpy_helper.from_array(normal(768, 3072), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", infos[:1], infos[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_the_backend_of_onnx_takes_it(model):
    prepared = {
        a: onnx_backend.prepare(model, "CPU", target=ANY, arithmetic=a, of_another_backend=1)
        for a in ("direct", "fast")
    }
    x = normal(1, 128, 768)
    x[0, 0, 0] = np.nan
    found = {a: np.isnan(p.run([x])[0]).any(axis=(0, 2)).sum() for a, p in prepared.items()}
    assert found["direct"] == 1
    assert found["fast"] > 1


def test_commands_take_it(model, tmp_path, capsys):
    path, made = tmp_path / "a.onnx", tmp_path / "a.lwlib"
    onnx.save(model, path)
    shown = {}
    for arithmetic in ("direct", "fast"):
        assert main(["explain", str(path), "--target", ANY, "--arithmetic", arithmetic]) == 0
        shown[arithmetic] = capsys.readouterr().out
    assert "strassen" in shown["fast"]
    assert "strassen" not in shown["direct"]
    assert main(["compile", str(path), "-o", str(made), "--target", ANY, "--arithmetic", "direct"]) == 0
    assert lw.load(made).model.arithmetic == "direct"
    assert main(["run", str(made), "--arithmetic", "fast"]) == 1
    assert "compiled already: it takes no --arithmetic" in capsys.readouterr().err
