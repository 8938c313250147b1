"""What notebooks show of objects says what the objects are, as text, within a bound."""

import re
from dataclasses import replace

import numpy as np
import pytest
from html_reader import Reader

import loopwright as lw
from loopwright import te
from loopwright.artifact.block import RunBlock
from loopwright.base.html.view import MOST_BYTES
from loopwright.base.quantities import share_text

TARGET = "x86-64-v3"


def product_tensors(extent=32):
    A = te.placeholder((extent, 24), name="A")
    B = te.placeholder((24, extent), name="B")
    r = te.reduce_axis((0, 24), name="r")
    return [A, B, te.compute((extent, extent), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]


def vectorized(tensors):
    schedule = lw.create_schedule(tensors[-1])
    _, inner = schedule["C"].split(tensors[-1].op.axis[1], 8)
    schedule["C"].vectorize(inner)
    return schedule


def network():
    x = lw.var("x", (4, 64))
    w = lw.const(np.ones((64, 32), np.float32), "weights")
    return lw.Function([x], lw.nn.relu(lw.nn.matmul(x, w)), output_names=("y",))


def seen(shown):
    """The view of an object, read; it is not too long."""
    page = shown._repr_html_()
    assert len(page.encode()) <= MOST_BYTES
    return Reader(page)


@pytest.fixture(scope="module")
def product():
    return product_tensors()


def test_a_schedule_shows_its_nest_and_its_steps(product):
    schedule = vectorized(product)
    text = seen(schedule).text
    assert str(schedule) in text
    assert "2 steps" in text
    assert str(schedule.trace) in text
    assert "step" not in seen(lw.create_schedule(product[-1])).text


def test_a_schedule_shows_what_it_decided_by_name(product):
    schedule = lw.create_schedule(product[-1], {"rows": 4})
    schedule.decide("rows", [1, 2, 4], 2)
    assert "reorders a sum" not in seen(schedule).text
    schedule.decide("<lanes>", [1, 8], 1, reorders_sum=True)
    text = seen(schedule).text
    for shown in ("2 decisions", "1, 2, 4", "<lanes>", "1, 8", "reorders a sum", "yes"):
        assert shown in text


def test_a_long_nest_is_folded(product):
    stages = [product[0]]
    for number in range(40):
        stages.append(te.compute((32, 24), lambda i, j, *, before=stages[-1]: before[i, j] + 1.0, name=f"S{number}"))
    assert "details" not in seen(lw.create_schedule(stages[2])).names
    long = lw.create_schedule(stages[-1])
    assert "details" in seen(long).names
    assert str(long).splitlines()[-1] in seen(long).text


def test_a_lowered_function_shows_its_text(product):
    func = lw.lower(vectorized(product), product, name="product", target=TARGET)
    assert str(func) in seen(func).text
    assert "Lowered function product" in seen(func).text


def test_a_graph_shows_its_inputs_outputs_and_lines():
    graph = network()
    text = seen(graph).text
    assert str(graph) in text
    assert "x: float32[4, 64]" in text
    assert "y: float32[4, 32]" in text
    assert "1 (8.00 KiB)" in text
    assert str(graph.body) in seen(graph.body).text


def test_a_deep_graph_stays_small():
    node = lw.var("x", (4,))
    start = node
    for _ in range(3000):
        node = lw.nn.relu(node)
    page = seen(lw.Function([start], node))
    assert "more lines, in print(graph)" in page.text


def test_a_kernel_shows_its_loops_and_its_code(product):
    kernel = lw.build(vectorized(product), product, target=TARGET, name="product")
    text = seen(kernel).text
    assert kernel.signature in text
    assert kernel.loop_ir in text
    assert "8 lanes of float32 in ymm" in text
    assert any(line in text for line in kernel.assembly.splitlines() if "vfmadd" in line)


def test_a_kernel_that_no_schedule_made_shows_its_code(product):
    made = lw.build(vectorized(product), product, target=TARGET)
    page = seen(lw.Kernel(made.func, made.code))
    assert "table" not in page.names
    assert made.loop_ir in page.text


def test_a_report_shows_each_loop_and_what_it_costs(product):
    report = lw.build(lw.create_schedule(product[-1]), product, target=TARGET).vector_report()
    text = seen(report).text
    for loop in report.loops:
        assert loop.header in text
        assert loop.became in text
        assert all(cost in text for cost in loop.costs)
    assert any(loop.costs for loop in report.loops)
    assert f"{report.code[-1].code.instructions}" in text
    assert "xmm" in text
    assert "gather" not in text, "no loop has any"


def test_an_explanation_shows_all_candidates_and_the_reason():
    explanation = lw.explain(network(), target=TARGET)
    text = seen(explanation).text
    for choice in explanation.functions[0].choices:
        assert choice.call in text
        assert choice.reason in text
        assert all(candidate.implementation in text for candidate in choice.candidates)


def test_an_explanation_of_many_functions_is_folded():
    x = lw.var("x", (4, 64))
    node = x
    for extent in (64, 32, 16, 8):
        node = lw.nn.matmul(node, lw.const(np.ones((extent, extent // 2), np.float32)))
    page = seen(lw.explain(lw.Function([x], node), target=TARGET))
    assert page.names.count("details") == 4
    assert "open" not in page.attributes
    assert "open" in seen(lw.explain(network(), target=TARGET)).attributes


def test_a_library_shows_its_functions():
    library = lw.compile(network(), target=TARGET)
    text = seen(library).text
    function = library.functions[0]
    for part in (function.name, function.implementation, function.loop_ir, "float32[4, 32]", "x: float32[4, 64]"):
        assert part in text
    assert "share of time" not in text


def test_a_library_shows_the_shares_of_time_that_a_profile_found():
    library = lw.compile(network())
    engine = lw.Engine(library, threads=1)
    assert "not loaded" in seen(engine).text
    profile = engine.profile([np.ones((4, 64), np.float32)])
    for function in profile.functions:
        assert function.name in seen(profile).text
        assert share_text(function.share) in seen(profile).text
    text = seen(library).text
    assert "share of time" in text
    assert share_text(profile.functions[0].share) in text
    assert "not loaded" not in seen(engine).text
    assert "y: float32[4, 32]" in seen(engine).text


def test_the_view_of_a_library_of_many_functions_says_what_it_leaves_out():
    library = lw.compile(network(), target=TARGET)
    (function,) = library.functions
    names = [f"function_{number}_" + "with_a_long_name_" * 5 for number in range(2000)]
    first, *others = (replace(function, name=name, symbol=name) for name in names)
    functions = (replace(first, loop_ir="x = 1\n" * 10_000), *others)
    text = seen(lw.Library(replace(library.model, functions=functions, body=RunBlock(())))).text
    assert re.search(r"… \d+ more lines, in function.loop_ir", text)
    assert library.functions[0].loop_ir in text, "a long nest leaves room for others"
    assert re.search(r"… \d+ more rows, in library.functions", text)
    assert re.search(r"loop nests, \d+ of 2000; the others in library.functions", text)


def test_names_are_text():
    hostile = "<b>x</b>"
    x = lw.var(hostile, (4,))
    graph = lw.Function([x], lw.nn.relu(x), hostile, (hostile,))
    page = seen(graph)
    assert "b" not in page.names
    assert hostile in page.text
