"""Profiles: what they say of each function, and the forms they are written in."""

import itertools
import json
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.runtime.measure import profile as profile_module
from loopwright.runtime.measure.machine_rates import MachineRates, measure_rates
from loopwright.runtime.measure.profile import measure_profile

RATES = MachineRates(100e9, ((1 << 20, 50e9), (1 << 24, 10e9)))


@pytest.fixture(scope="module")
def engine():
    """Two products of one shape, one function, and a softmax: N rows."""
    rng = np.random.default_rng(0)
    x = lw.var("x", (te.var("N"), 64))
    weights = [lw.const(rng.standard_normal((64, 64)).astype(np.float32)) for _ in range(2)]
    body = x
    for weight in weights:
        body = lw.nn.relu(lw.nn.matmul(body, weight))
    return lw.Engine(lw.compile(lw.Function([x], lw.nn.softmax(body)), jobs=1), threads=1)


@pytest.fixture(scope="module")
def profile(engine):
    return engine.profile({"x": np.ones((32, 64), np.float32)})


def test_functions_add_up_their_calls(profile):
    product = next(f for f in profile.functions if "matmul" in f.name)
    assert product.calls == 2
    assert product.operations == 2 * (2 * 32 * 64 * 64 + 32 * 64)
    assert product.traffic == 2 * 4 * (32 * 64 + 64 * 64 + 32 * 64)
    assert product.seconds == pytest.approx(sum(s.seconds for s in profile.steps if s.symbol == product.symbol))
    assert sum(f.share for f in profile.functions) == pytest.approx(1.0)


def test_functions_come_by_their_time(profile):
    seconds = [f.seconds for f in profile.functions]
    assert seconds == sorted(seconds, reverse=True)


def test_overhead_is_what_a_call_takes_beyond_its_run(engine, monkeypatch):
    """By a clock that stands still but for what is timed: 7 ms a call, 4 ms the run in it, kernels 1, 2 and 3 ms."""
    now = 0.0

    def taking(seconds):
        def run():
            nonlocal now
            now += seconds

        return run

    monkeypatch.setattr(profile_module, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(profile_module, "measure_rates", lambda target, threads: RATES)
    model, steps = engine.library.model, (1e-3, 2e-3, 3e-3)
    made = measure_profile(model, 1, {"N": 32}, {}, taking(7e-3), taking(4e-3), lambda: steps)
    assert made.call_seconds == pytest.approx(7e-3)
    assert made.overhead_seconds == pytest.approx(3e-3)
    product, softmax = sorted(made.functions, key=lambda f: "softmax" in f.name)
    assert (product.seconds, softmax.seconds) == (pytest.approx(3e-3), pytest.approx(3e-3))
    assert product.gflops == pytest.approx(2 * (2 * 32 * 64 * 64 + 32 * 64) / 3e-3 / 1e9)
    assert product.gbps == pytest.approx(2 * 4 * (32 * 64 + 64 * 64 + 32 * 64) / 3e-3 / 1e9)
    least = 2 * max(product.operations / 2 / 100e9, product.traffic / 2 / 50e9)
    assert product.roof_fraction == pytest.approx(least / 3e-3)
    faster = measure_profile(model, 1, {"N": 32}, {}, taking(4e-3), taking(4e-3), lambda: steps)
    assert faster.overhead_seconds == pytest.approx(0.0)


def test_the_roofline_is_the_slower_of_computing_and_reading():
    assert RATES.least_seconds(10**9, 0) == pytest.approx(0.01)
    assert RATES.least_seconds(0, 1 << 20) == pytest.approx((1 << 20) / 50e9)
    assert RATES.least_seconds(0, 1 << 22) == pytest.approx((1 << 22) / 10e9)
    assert RATES.least_seconds(0, 1 << 30) == pytest.approx((1 << 30) / 10e9)
    assert RATES.least_seconds(10**9, 1 << 20) == pytest.approx(0.01)
    assert RATES.bound(10**9, 1 << 20) == "compute"
    assert RATES.bound(10**3, 1 << 20) == "memory"


def test_measured_rates_are_those_of_a_computer():
    rates = measure_rates(lw.resolve_target("native"), 1)
    assert 1e6 < rates.operations < 1e14
    sizes = [size for size, _ in rates.bandwidths]
    assert sizes == sorted(sizes)
    assert all(1e6 < bandwidth < 1e14 for _, bandwidth in rates.bandwidths)


def test_the_table_names_functions_nodes_and_implementations(profile):
    text = str(profile)
    for function in profile.functions:
        assert function.name in text
        assert function.implementation in text
    assert "around the kernels" in text


def test_json_has_every_number(profile):
    data = json.loads(json.dumps(profile.to_json()))
    assert [f["name"] for f in data["functions"]] == [f.name for f in profile.functions]
    assert {"gflops", "gbps", "roof_fraction", "share", "nodes", "implementation"} <= data["functions"][0].keys()
    assert len(data["steps"]) == 3


def test_the_chrome_trace_lays_the_steps_end_to_end(profile):
    events = json.loads(profile.chrome_trace())["traceEvents"]
    assert [e["name"] for e in events] == ["call overhead", *(s.function for s in profile.steps)]
    for before, after in itertools.pairwise(events):
        assert after["ts"] == pytest.approx(before["ts"] + before["dur"])
    assert all(event["ph"] == "X" for event in events)


def test_the_chart_has_a_bar_a_function_and_escapes_names():
    x = lw.var("<x>", (4, 4))
    library = lw.compile(lw.Function([x], lw.nn.relu(x), "a<b&c"), jobs=1)
    root = ET.fromstring(lw.Engine(library, threads=1).profile([np.ones((4, 4), np.float32)]).svg())
    assert root.tag.endswith("svg")
    assert sum(child.tag.endswith("}g") for child in root) == 1


def test_origins_are_the_nodes_of_the_imported_model():
    from onnx import TensorProto, helper

    node = helper.make_node("Relu", ["x"], ["y"], name="the_relu")
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    proto = helper.make_model(helper.make_graph([node], "g", value[:1], value[1:]), ir_version=8)
    profile = lw.Engine(lw.compile(proto, jobs=1), threads=1).profile([np.ones(4, np.float32)])
    assert profile.functions[0].nodes == ("the_relu",)
    assert "the_relu" in str(profile)


def test_rates_count_the_work_of_threads_that_the_pool_does_not_have(monkeypatch):
    """More threads than there are, and footprints that are no larger than the array that is read."""
    rates = measure_rates(lw.resolve_target("native"), 300)
    sizes = [size for size, _ in rates.bandwidths]
    assert sizes == sorted(set(sizes))
    assert 0 < rates.operations < 1e14
