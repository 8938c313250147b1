"""Profiles: what they say of each function, and the forms they are written in."""

import itertools
import json
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.machine_rates import MachineRates
from loopwright.runtime.functions import packed_functions
from loopwright.runtime.measure import measure_profile as measuring
from loopwright.runtime.measure.measure_profile import measure_profile
from loopwright.runtime.measure.measure_rates import measure_rates
from loopwright.runtime.measure.profile import Profile, StepProfile

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
    assert product.shape == (32, 64)


def test_functions_and_overhead_make_the_whole_call(profile):
    assert sum(f.share for f in profile.functions) + profile.overhead_share == pytest.approx(1.0)
    assert sum(f.seconds for f in profile.functions) + profile.overhead_seconds == pytest.approx(profile.call_seconds)
    assert profile.overhead_seconds > 0


def test_functions_come_by_their_time(profile):
    seconds = [f.seconds for f in profile.functions]
    assert seconds == sorted(seconds, reverse=True)


class Machine:
    """A clock that stands still but for what is timed: a call takes 3 ms around its code, 1, 2 and 3 ms in its steps.
    ``delay(k)`` is what something else that runs takes from part number k, of all that ever ran."""

    STEPS = (1e-3, 2e-3, 3e-3)

    def __init__(self, delay=lambda part: 0.0, python=0.0):
        self.now, self.parts, self.delay, self.python = 0.0, 0, delay, python

    def take(self, seconds):
        taken = seconds + self.delay(self.parts)
        self.now, self.parts = self.now + taken, self.parts + 1
        return taken

    def call(self):
        code = sum(map(self.take, self.STEPS))
        self.take(3e-3)
        return code

    @property
    def steps(self):
        return [lambda seconds=seconds: self.take(seconds + self.python) for seconds in self.STEPS]

    def profile(self, engine, monkeypatch):
        monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(measuring, "measure_rates", lambda target, threads: RATES)
        return measure_profile(engine.library.model, 1, {"N": 32}, {}, self.call, self.steps)


def test_overhead_is_what_a_call_takes_beyond_its_code(engine, monkeypatch):
    made = Machine().profile(engine, monkeypatch)
    assert made.call_seconds == made.measured_seconds == pytest.approx(9e-3)
    assert made.overhead_seconds == pytest.approx(3e-3)
    product, softmax = sorted(made.functions, key=lambda f: "softmax" in f.name)
    assert (product.seconds, softmax.seconds) == (pytest.approx(3e-3), pytest.approx(3e-3))
    assert product.gflops == pytest.approx(2 * (2 * 32 * 64 * 64 + 32 * 64) / 3e-3 / 1e9)
    assert product.gbps == pytest.approx(2 * 4 * (32 * 64 + 64 * 64 + 32 * 64) / 3e-3 / 1e9)
    least = 2 * max(product.operations / 2 / 100e9, product.traffic / 2 / 50e9)
    assert product.roof_fraction == pytest.approx(least / 3e-3)
    assert "beside what else ran" not in str(made)


def test_a_busy_machine_holds_up_calls_but_no_function(engine, monkeypatch):
    """Every fifth part of what runs is held up by 20 ms: hardly any call is as fast as it could be."""
    made = Machine(delay=lambda part: 20e-3 if part % 5 == 0 else 0.0).profile(engine, monkeypatch)
    assert made.measured_seconds >= 20e-3
    assert made.call_seconds == pytest.approx(9e-3)
    assert [step.seconds for step in made.steps] == [pytest.approx(seconds) for seconds in Machine.STEPS]
    assert made.overhead_share == pytest.approx(1 / 3)
    assert re.search(r"9.00 ms a call\n\(the median call took .*, beside what else ran\)\n", str(made))


def test_a_machine_half_as_fast_in_every_other_round_still_adds_up(engine, monkeypatch):
    made = Machine(delay=lambda part: 3e-3 * (part // 70 % 2)).profile(engine, monkeypatch)
    assert sum(f.share for f in made.functions) + made.overhead_share == pytest.approx(1.0)
    assert all(0 < f.share < 1 for f in made.functions)


def test_what_python_takes_to_call_a_step_is_no_time_of_its_function(engine, monkeypatch):
    made = Machine(python=1e-3).profile(engine, monkeypatch)
    assert made.call_seconds == pytest.approx(9e-3)
    assert [step.seconds for step in made.steps] == [pytest.approx(6e-3 * part / 9e-3) for part in (2e-3, 3e-3, 4e-3)]


@pytest.mark.parametrize("config", [{"threads": 2}, {"executors": [lw.ExecutorConfig(cores=[0])]}], ids=str)
def test_functions_of_python_have_their_rows_too(monkeypatch, config):
    def halve(x, y):
        y[...] = x / 2

    monkeypatch.setattr(packed_functions, "_functions", {**packed_functions._functions})
    lw.register_func("test.halve", halve, override=True)
    x = lw.var("x", (2, 4))
    library = lw.compile(lw.Function([x], lw.nn.relu(lw.nn.extern("test.halve", lw.nn.add(x, x)))), jobs=1)
    engine = lw.Engine(library, **config)
    profile = engine.profile([np.ones((2, 4), np.float32)])
    assert len(profile.functions) == 3
    assert all(function.seconds > 0 for function in profile.functions)
    np.testing.assert_array_equal(engine([np.ones((2, 4), np.float32)])[0], np.ones((2, 4)))


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


def numbered(count):
    """A profile of functions with long names, from milliseconds to next to nothing."""
    steps = tuple(
        StepProfile(
            f"fused_nn_winograd_conv2d_add_relu_{k}",
            f"symbol_{k}",
            "winograd_conv2d.tiled",
            (f"/layer{k}/conv{k}/Conv", f"/layer{k}/relu{k}/Relu"),
            (1, 64, 112, 112),
            1.2345e-2 / 17**k,
            10**9 // 17**k,
            10**6 // 17**k,
            1e-2 / 17**k,
            "compute",
        )
        for k in range(count)
    )
    return Profile("a model of a long name " * 9, 2, 0.2, 1e-5, RATES, steps)


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_the_table_fits_the_width_and_cuts_no_number(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    made = numbered(6)
    lines = str(made).splitlines()
    assert max(map(len, lines)) <= columns
    first = next(line for line in lines if line.startswith("12.3 ms"))
    assert re.match(r"12\.3 ms   94\.0%     81\.0  0\.0810  81\.0%  compute  fused_nn", first)
    assert all("…" not in line[:48] for line in lines)
    assert ("winograd_conv2d.tiled" in first) == (columns == 140)


def test_the_table_has_functions_shapes_nodes_the_engine_and_the_sum(profile, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = str(profile)
    for function in profile.functions:
        assert function.name in text
        assert function.implementation in text
    assert "2 calls, 32×64" in text
    assert "engine" in text
    assert re.search(r"100\.0% .* a call", text)


def test_a_function_that_took_no_time_has_no_rates():
    step = StepProfile("f", "f", "copy", (), (), 0.0, 10, 10, 1e-9, "memory")
    (function,) = Profile("model", 1, 0.0, 0.0, RATES, (step,)).functions
    assert (function.gflops, function.roof_fraction, function.share) == (0.0, 0.0, 0.0)
    assert "scalar" in str(Profile("model", 1, 0.0, 0.0, RATES, (step,)))


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


def test_the_chart_has_a_bar_a_function_and_one_of_the_engine_and_escapes_names():
    x = lw.var("<x>", (4, 4))
    library = lw.compile(lw.Function([x], lw.nn.relu(x), "a<b&c\x1b\ud800"), jobs=1)
    root = ET.fromstring(lw.Engine(library, threads=1).profile([np.ones((4, 4), np.float32)]).svg())
    assert root.tag.endswith("svg")
    assert sum(child.tag.endswith("}g") for child in root) == 2  # and one of the engine


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
