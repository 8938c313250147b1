"""The tables of kernels: they say what the issue asks for, and every graph is one."""

import re

import numpy as np
import onnx
import pytest
from cases import all_cases, chosen_cases, work_of
from cases.convolution import layers
from open_extents import opened
from roofline import roof_of

import loopwright as lw

CASES = all_cases()
ELEMENTS = 2**20
"""Weights of more are not made here."""


def size(case):
    return max(np.prod([int(n) for n in m.split(",")]) for m in re.findall(r"\[([\d,]+)\]", case.inputs + case.weights))


def test_every_case_has_a_name_of_its_own_and_those_it_refers_to():
    names = [case.full_name for case in CASES]
    assert len(set(names)) == len(names)
    assert {n for case in CASES for n in (case.overhead, case.against) if n} <= set(names)


@pytest.mark.parametrize("group", sorted({case.group for case in CASES if not case.open_axes}))
def test_a_case_of_each_group_has_open_extents_and_the_same_inputs(group, tmp_path):
    case = min((case for case in CASES if case.group == group), key=size)
    case_open = opened(case)
    case_open.write(tmp_path)
    model = onnx.load(tmp_path / "model.onnx")
    dims = [d for i in model.graph.input for d in i.type.tensor_type.shape.dim]
    assert any(d.dim_param for d in dims)
    with np.load(tmp_path / "inputs.npz") as inputs:
        feeds = case.feeds(case.model())
        assert {name: a.shape for name, a in inputs.items()} == {name: a.shape for name, a in feeds.items()}


@pytest.mark.parametrize("group", sorted({case.group for case in CASES}))
def test_a_model_of_each_group_is_one_with_shapes_and_work(group):
    case = min((case for case in CASES if case.group == group), key=size)
    model = case.model()
    work = work_of(model)
    unknown = [d for d in model.graph.output[0].type.tensor_type.shape.dim if d.dim_value == 0]
    assert len(unknown) == (group == "nms"), "how many boxes are left, only the run knows"
    assert work.read > 0
    assert work.written > 0 or unknown
    feeds = case.feeds(model)
    assert {i.name for i in model.graph.input} == set(feeds)


def by_name(name):
    return next(case for case in CASES if case.full_name == name)


def test_work_counts_operations_as_defined_and_bytes_once():
    work = work_of(by_name("matmul 256×256×256 run-time").model())
    assert (work.operations, work.read, work.written) == (2 * 256**3, 2 * 4 * 256**2, 4 * 256**2)
    work = work_of(by_name("conv-resnet50 3×3 64→64 56²").model())
    assert work.operations == 2 * 64 * 64 * 9 * 56 * 56
    assert work.read == 4 * (64 * 56 * 56 + 64 * 64 * 9 + 64)


@pytest.mark.parametrize("name", ["matmul-open 5 rows of 384→384", "conv-open 3×3 64→64 57×45"])
def test_contenders_get_models_with_their_open_axes(name, tmp_path):
    case = by_name(name)
    work = case.write(tmp_path)
    model, feeds = onnx.load(tmp_path / "model.onnx"), np.load(tmp_path / "inputs.npz")
    (x,) = model.graph.input
    open_axes = [axis for axis, d in enumerate(x.type.tensor_type.shape.dim) if d.dim_param]
    assert open_axes == list(case.open_axes["x"])
    assert work == work_of(case.model())
    (y,) = lw.Engine(lw.compile(model, jobs=1))(dict(feeds))
    (expected,) = lw.Engine(lw.compile(case.model(), jobs=1))(dict(feeds))
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)


def test_of_a_table_only_the_rows_gathered_are_read():
    case = by_name("gather 4096 of 1000×64")
    assert work_of(case.model()).read == 4 * 4096 * 64 + 8 * 4096


def test_networks_have_the_convolutions_that_they_are_known_for():
    assert len(layers("resnet50")) == 23
    assert len(layers("vgg19")) == 9
    names = {layer.name for layer in layers("resnet50")}
    assert {"7×7 3→64 224² /2", "3×3 512→512 7²", "1×1 2048→512 7²"} <= names


def test_bars_follow_the_image():
    bars = {case.name: case.bar.ratio for case in CASES if case.group in ("conv-resnet50", "conv-vgg19")}
    wanted = {"3×3 64→64 56²": 2.5, "3×3 256→256 14²": 1.6, "3×3 512→512 7²": 1.1, "7×7 3→64 224² /2": 1.0}
    assert wanted.items() <= bars.items()


def test_what_is_chosen_brings_what_it_is_compared_with():
    names = [case.full_name for case in chosen_cases(["int8-matmul 256"])]
    assert names[:2] == ["matmul 256×256×256 constant", "matmul 256×256×256 run-time"]
    assert "matmul-small 1×1×1 constant" in [case.full_name for case in chosen_cases(["matmul-small 8×8×8 c"])]
    assert chosen_cases(["no such kernel"]) == []


def test_a_roof_is_what_takes_longest():
    rates = {"peak": 1e9, **{f"{kind} {place}": 1e9 for kind in ("read", "copy") for place in ("L2", "L3", "memory")}}
    assert roof_of(rates, 10**6, 1000, 10, 1).place == "fma"
    assert roof_of(rates, 10, 10**6, 10, 1).request == "read L2"
    assert roof_of(rates, 10, 2**20, 2**20, 1).request == "copy L3"
    assert roof_of(rates, 10, 2**20, 2**20, 2).request == "copy L2"
    assert roof_of(rates, 10, 2**26, 2**26, 2).request == "copy memory"
