"""Tactics: the registry, what an engine chooses and by what, and what tactics of Python are given."""

import json
import sys
import threading
import time
from typing import ClassVar

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact.extents import evaluate
from loopwright.runtime.functions.host_call import HostCall

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)


@pytest.fixture(scope="module")
def library():
    a, b = lw.var("a", (3, 4)), lw.var("b", (4, 5))
    return lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)), jobs=1)


@pytest.fixture(scope="module")
def compiled_name(library):
    return library.functions[0].choices[0].implementation


class Product(lw.AbstractTactic):
    """Notes what it is told, and where it runs."""

    made: ClassVar = []

    def __init__(self):
        self.inits, self.threads = [], []
        self.made.append(self)

    def init(self, attrs, types):
        self.inits.append((dict(attrs), [str(t.dtype) for t in types], [t.shape for t in types]))

    def enqueue(self, args):
        a, b, c = args
        self.threads.append(threading.get_ident())
        np.matmul(a, b, out=c)


class Failing(Product):
    def enqueue(self, args):
        raise ValueError("no product")


class Declining(Product):
    def supports(self, attrs, types):
        return types[0].shape == (1, 1)


def registry_of(*tactics):
    Product.made.clear()
    made = lw.TacticRegistry()
    for name, creator, priority in tactics:
        made.register("nn.matmul", name, creator, priority)
    return made


def chosen(engine):
    return list(engine.init().tactics.values())


def prepared():
    return [tactic for tactic in Product.made if tactic.inits]


def test_the_highest_priority_is_chosen_and_compiled_code_among_equals(library, compiled_name):
    own = max(c.plevel for c in library.functions[0].choices[0].candidates if c.implementation == compiled_name)
    for priority, name in ((own + 1, "test.product"), (own, compiled_name), (0, compiled_name)):
        engine = lw.Engine(library, tactics=registry_of(("test.product", Product, priority)))
        assert chosen(engine) == [name]
        np.testing.assert_allclose(engine([A, B])[0], A @ B)
        assert len(prepared()) == (name != compiled_name)


def test_a_tactic_is_prepared_once_an_executor_and_runs_on_the_callers_thread(library):
    engine = lw.Engine(library, executors=2, tactics=registry_of(("test.product", Product, 99))).init()
    tactics = prepared()
    for _ in range(3):
        np.testing.assert_allclose(engine([A, B])[0], A @ B)
    assert len(tactics) == 2
    for tactic in tactics:
        assert len(tactic.inits) == 1
        _, dtypes, shapes = tactic.inits[0]
        assert (dtypes, shapes) == (["float32"] * 3, [(3, 4), (4, 5), (3, 5)])
    assert {thread for tactic in tactics for thread in tactic.threads} == {threading.get_ident()}


def test_an_executor_prefers_the_tactics_of_its_config(library, compiled_name):
    registry = registry_of(("test.product", Product, 0), ("test.other", Product, 99))
    for names, found in (
        (("test.product", "test.other"), "test.product"),
        (("test.none", compiled_name), compiled_name),
        ((), "test.other"),
    ):
        config = lw.ExecutorConfig(tactics=names)
        assert chosen(lw.Engine(library, executors=[config], tactics=registry)) == [found]


def test_what_does_not_support_a_call_is_passed_over(library, compiled_name):
    assert chosen(lw.Engine(library, tactics=registry_of(("test.product", Declining, 99)))) == [compiled_name]


def test_measuring_writes_records_that_the_next_engine_and_the_compiler_read(library, compiled_name, tmp_path):
    path = tmp_path / "records.jsonl"
    registry = registry_of(("test.product", Product, 99))
    engine = lw.Engine(library, tactics=registry).init(select="measure", records=path)
    records = {record.implementation: record for record in lw.TuningRecords.load(path)}
    assert records.keys() == {compiled_name, "test.product"}
    cheapest = min(records.values(), key=lambda record: record.cost).implementation
    assert chosen(engine) == [cheapest]
    assert {record.workload.op for record in records.values()} == {"nn.matmul"}
    before = path.read_text()
    assert list(lw.Engine(library, tactics=registry).init("measure", path).tactics.values()) == [cheapest]
    assert path.read_text() == before, "what has a record was measured again"


def test_records_come_before_priority(library, compiled_name, tmp_path):
    """The records of measuring, with other times: whichever is cheaper there is taken."""
    path = tmp_path / "records.jsonl"
    registry = registry_of(("test.product", Product, 99))
    lw.Engine(library, tactics=registry).init("measure", path)
    records = list(lw.TuningRecords.load(path))
    for winner in (compiled_name, "test.product"):
        with path.open("a") as file:
            for record in records:
                data = record.to_json() | {"seconds": [1e-9 if record.implementation == winner else 1.0]}
                file.write(json.dumps(data) + "\n")
        assert list(lw.Engine(library, tactics=registry).init(records=path).tactics.values()) == [winner]


def test_records_count_for_runs_of_as_many_threads(library, compiled_name, tmp_path):
    path = tmp_path / "records.jsonl"
    registry = registry_of(("test.product", Product, 0))

    def engine(threads, **settings):
        return lw.Engine(library, tactics=registry, threads=threads).init(records=path, **settings)

    engine(1, select="measure")
    records = list(lw.TuningRecords.load(path))
    assert [record.threads for record in records] == [1, 1]
    with path.open("a") as file:
        for record in records:
            data = record.to_json() | {"seconds": [1e-9 if record.implementation == "test.product" else 1.0]}
            file.write(json.dumps(data) + "\n")
    assert [chosen(engine(threads)) for threads in (1, 2)] == [["test.product"], [compiled_name]]
    engine(2, select="measure")
    assert [record.threads for record in lw.TuningRecords.load(path)] == [1, 1, 1, 1, 2, 2]


def test_calls_that_are_kept_from_fusion_are_served_by_tactics_of_python():
    a, b = lw.var("a", (3, 4)), lw.var("b", (4, 5))
    function = lw.Function([a, b], lw.nn.relu(lw.nn.negative(lw.nn.matmul(a, b))))
    registry = registry_of(("test.product", Product, 99))
    fused = lw.Engine(lw.compile(function, jobs=1), tactics=registry).init()
    assert list(fused.tactics.values()) == []
    alone = lw.compile(function, jobs=1, unfused=["nn.matmul"])
    assert [f.name for f in alone.functions] == ["fused_nn_matmul", "fused_negative_relu"]
    engine = lw.Engine(alone, tactics=registry).init()
    assert list(engine.tactics.values()) == ["test.product"]
    np.testing.assert_allclose(engine([A, -B])[0], A @ B)
    np.testing.assert_allclose(fused([A, -B])[0], A @ B)


def test_symbolic_calls_go_by_priority(tmp_path):
    a, b = lw.var("a", (lw.te.var("n"), 4)), lw.var("b", (4, 5))
    library = lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)), jobs=1)
    engine = lw.Engine(library, tactics=registry_of(("test.product", Product, 99)))
    engine.init("measure", tmp_path / "records.jsonl")
    assert list(engine.tactics.values()) == ["test.product"]
    for n in (3, 1):
        np.testing.assert_allclose(engine([A[:n], B])[0], A[:n] @ B)


def test_an_error_of_a_tactic_is_the_cause_of_ours(library):
    engine = lw.Engine(library, tactics=registry_of(("test.failing", Failing, 99))).init()
    with pytest.raises(lw.KernelError, match="ValueError: no product") as raised:
        engine([A, B])
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(lw.KernelError, match=r"the tactic test\.failing failed when it was measured: no product"):
        lw.Engine(library, tactics=registry_of(("test.failing", Failing, 99))).init(select="measure")


def test_an_interrupt_while_tactics_are_measured_is_not_wrapped(library):
    class Leaving(lw.AbstractTactic):
        def enqueue(self, args):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lw.Engine(library, tactics=registry_of(("test.leaving", Leaving, 0))).init(select="measure")


def test_an_interrupt_on_the_way_into_a_measured_tactic_is_not_lost(library, monkeypatch):
    """Python notices it at the entry of what native code calls, from where no error comes out."""

    def interrupt(frame, event, arg):
        if frame.f_code is HostCall._run.__code__:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    engine = lw.Engine(library, tactics=registry_of(("test.product", Product, 0)))
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.init(select="measure")
    finally:
        sys.settrace(before)


def test_blas_is_a_tactic_beside_others():
    needed_tools.module("scipy")
    a, b = lw.var("a", (3, 4)), lw.var("b", (4, 5))
    target = lw.resolve_target("llvm -mcpu=native -libs=cblas")
    library = lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)), target=target, jobs=1)
    engine = lw.Engine(library, tactics=registry_of(("test.product", Product, 0))).init()
    assert list(engine.tactics.values()) == ["matmul.cblas"]
    np.testing.assert_allclose(engine([A, B])[0], A @ B)


# Compiled alternatives.


@pytest.fixture(scope="module")
def alternatives():
    """A fused product, softmax and a layout that symbolic shapes leave alone: several implementations of each."""
    needed_tools.module("scipy")
    a, b = lw.var("a", (24, 96)), lw.var("b", (96, 80))
    y = lw.nn.softmax(lw.nn.relu(lw.nn.matmul(a, b)))
    target = lw.resolve_target("llvm -mcpu=native -libs=cblas")
    return lw.compile(lw.Function([a, b], y), target=target, jobs=1, alternatives=True)


def wide_inputs():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in ((24, 96), (96, 80))]


def softmax_of_product(a, b):
    y = np.exp(np.maximum(a.astype(np.float64) @ b, 0))
    return y / y.sum(axis=1, keepdims=True)


def test_each_alternative_of_a_fused_function_can_be_preferred_and_is_right(alternatives):
    product, softmax = alternatives.functions
    own = {product.symbol: product.implementation, softmax.symbol: softmax.implementation}
    others = {
        function.symbol: [other.implementation for other in alternatives.model.alternatives[function.symbol]]
        for function in (product, softmax)
    }
    assert product.implementation == "matmul.cblas"
    assert {"matmul.paneled", "matmul.direct"} <= set(others[product.symbol])
    assert others[softmax.symbol] == ["softmax.generic"]
    inputs = wide_inputs()
    for symbol, names in others.items():
        for name in names:
            engine = lw.Engine(alternatives, executors=[lw.ExecutorConfig(tactics=(name,))], threads=2).init()
            assert engine.tactics == own | {symbol: name}
            np.testing.assert_allclose(engine(inputs)[0], softmax_of_product(*inputs), rtol=1e-4, atol=1e-6)


def test_nothing_but_records_and_settings_chooses_an_alternative(alternatives):
    engine = lw.Engine(alternatives).init()
    assert list(engine.tactics.values()) == [function.implementation for function in alternatives.functions]


def test_a_profile_is_of_the_first_executor_and_names_its_tactics(alternatives):
    configs = [lw.ExecutorConfig(threads=1, tactics=("matmul.direct",)), lw.ExecutorConfig(threads=2)]
    engine = lw.Engine(alternatives, executors=configs)
    for _ in range(3):
        engine(wide_inputs())  # the next free executor is another one each time
        profile = engine.profile(wide_inputs())
        assert (profile.threads, profile.steps[0].implementation) == (1, "matmul.direct")


def test_measuring_compares_blas_with_our_code_in_one_engine(alternatives, tmp_path):
    path = tmp_path / "records.jsonl"
    engine = lw.Engine(alternatives, threads=1).init(select="measure", records=path)
    costs = {}
    for record in lw.TuningRecords.load(path):
        costs.setdefault(record.workload.op, {})[record.implementation] = record.cost
    assert {"matmul.cblas", "matmul.paneled", "matmul.direct"} <= costs["nn.matmul"].keys()
    assert list(engine.tactics.values()) == [min(costs[op], key=costs[op].get) for op in ("nn.matmul", "softmax")]
    inputs = wide_inputs()
    np.testing.assert_allclose(engine(inputs)[0], softmax_of_product(*inputs), rtol=1e-4, atol=1e-6)
    before = path.read_bytes()
    assert lw.Engine(alternatives, threads=1).init("measure", path).tactics == engine.tactics
    assert path.read_bytes() == before


def test_records_choose_an_alternative_whichever_they_praise(alternatives, tmp_path):
    path = tmp_path / "records.jsonl"
    lw.Engine(alternatives, threads=1).init("measure", path)
    records = list(lw.TuningRecords.load(path))
    for winner in ("matmul.direct", "matmul.cblas", "matmul.paneled"):
        with path.open("a") as file:
            for record in records:
                data = record.to_json() | {"seconds": [1e-9 if record.implementation == winner else 1.0]}
                file.write(json.dumps(data) + "\n")
        engine = lw.Engine(alternatives, threads=1).init(records=path)
        assert winner in engine.tactics.values()


def test_a_record_of_other_code_than_an_alternative_chooses_none(alternatives, tmp_path):
    """An alternative is compiled as it comes: what decisions made of it says nothing of it, here or to the compiler."""
    product = alternatives.functions[0]
    call = lw.nn.matmul(lw.var("a", (24, 96)), lw.var("b", (96, 80)))
    target, own, other = alternatives.model.target, product.implementation, "matmul.direct"
    for decisions, winner in (({"rows": 4}, own), (None, other)):
        path = tmp_path / f"{winner}.jsonl"
        records = [
            lw.TuningRecord.of(call, target, own, [30e-6], decisions={"rows": 2}),
            lw.TuningRecord.of(call, target, other, [7e-6], decisions=decisions),
        ]
        lw.TuningRecords.append(path, *records)
        assert lw.Engine(alternatives).init(records=path).tactics[product.symbol] == winner


def test_memory_is_of_the_code_that_was_chosen(alternatives):
    product, softmax = alternatives.functions
    entry = len(alternatives.model.entry_object)
    for other in alternatives.model.alternatives[product.symbol]:
        config = lw.ExecutorConfig(threads=1, tactics=(other.implementation,))
        engine = lw.Engine(alternatives, executors=[config, lw.ExecutorConfig(threads=1)])
        assert engine.planned_memory().code == entry + len(product.object) + len(softmax.object)
        use = engine.init().planned_memory()
        assert use.code == 2 * (entry + len(softmax.object)) + len(product.object) + len(other.object)
        heaps = [evaluate(f.heap_once, {}) + evaluate(f.heap_each, {}) for f in (product, other, softmax)]
        assert use.kernels == max(heaps[1:]) + max(heaps[0], heaps[2])
    assert len({len(f.object) for f in (product, *alternatives.model.alternatives[product.symbol])}) > 1


def test_alternatives_are_saved_with_the_library(alternatives, tmp_path):
    alternatives.save(tmp_path / "model.lwlib")
    loaded = lw.load(tmp_path / "model.lwlib")
    assert loaded.model.alternatives == alternatives.model.alternatives
    config = lw.ExecutorConfig(tactics=("matmul.direct",))
    inputs = wide_inputs()
    (found,) = lw.Engine(loaded, executors=[config])(inputs)
    np.testing.assert_allclose(found, softmax_of_product(*inputs), rtol=1e-4, atol=1e-6)


def test_an_alternative_whose_functions_are_missing_here_is_passed_over(alternatives, monkeypatch):
    """As where a library comes to a machine without scipy; the product of BLAS is an alternative there."""
    ours = lw.compile(
        lw.Function([a := lw.var("a", (24, 96)), b := lw.var("b", (96, 80))], lw.nn.matmul(a, b)),
        target="llvm -mcpu=native -libs=cblas",
        jobs=1,
        alternatives=True,
        records=lw.TuningRecords(
            [lw.TuningRecord.of(lw.nn.matmul(a, b), "llvm -mcpu=native -libs=cblas", "matmul.paneled", [1.0])]
        ),
    )
    assert ours.functions[0].implementation == "matmul.paneled"

    def missing(symbol, prototype, program):
        raise lw.TargetError("there is no scipy")

    monkeypatch.setattr("loopwright.runtime.functions.symbols.blas_address", missing)
    config = lw.ExecutorConfig(tactics=("matmul.cblas",))
    engine = lw.Engine(ours, executors=[config]).init()
    assert list(engine.tactics.values()) == ["matmul.paneled"]
    np.testing.assert_allclose(engine(wide_inputs())[0], np.matmul(*wide_inputs()), rtol=1e-4, atol=1e-4)


def test_a_hopeless_tactic_is_run_once(library, tmp_path):
    """Its first run is long, and many times as long as that of our own code."""

    class Slow(Product):
        def enqueue(self, args):
            time.sleep(0.1)
            super().enqueue(args)

    path = tmp_path / "records.jsonl"
    lw.Engine(library, tactics=registry_of(("test.slow", Slow, 0))).init("measure", path)
    (seconds,) = [r.seconds for r in lw.TuningRecords.load(path) if r.implementation == "test.slow"]
    assert len(seconds) == 1
    assert sum(len(tactic.threads) for tactic in Product.made) == 1


def test_a_registry_serves_several_threads():
    registry = lw.TacticRegistry()

    def work(number):
        for k in range(100):
            registry.register("nn.matmul", f"test.{number}.{k}", Product)
            assert registry.of("nn.matmul")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.of("nn.matmul")) == 400
    assert registry.of("relu") == registry.of("registered elsewhere") == ()
