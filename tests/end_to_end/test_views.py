"""What notebooks show of objects says what the objects are, as text, within a bound."""

import numpy as np
import pytest
from html_reader import Reader

import loopwright as lw
from loopwright import te
from loopwright.ir.html.view import MOST_BYTES

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
    assert "1, of 8,192 bytes" in text
    assert str(graph.body) in seen(graph.body).text


def test_a_deep_graph_stays_small():
    node = lw.var("x", (4,))
    start = node
    for _ in range(3000):
        node = lw.nn.relu(node)
    page = seen(lw.Function([start], node))
    assert "more lines, in print(graph)" in page.text


def test_names_are_text():
    hostile = "<b>x</b>"
    x = lw.var(hostile, (4,))
    graph = lw.Function([x], lw.nn.relu(x), hostile, (hostile,))
    page = seen(graph)
    assert "b" not in page.names
    assert hostile in page.text
