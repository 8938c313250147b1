"""Tactics: the registry, what an engine chooses and by what, and what tactics of Python are given."""

import json
import threading
from typing import ClassVar

import numpy as np
import pytest

import loopwright as lw

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


def test_blas_is_a_tactic_beside_others():
    pytest.importorskip("scipy")
    a, b = lw.var("a", (3, 4)), lw.var("b", (4, 5))
    target = lw.resolve_target("llvm -mcpu=native -libs=cblas")
    library = lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)), target=target, jobs=1)
    engine = lw.Engine(library, tactics=registry_of(("test.product", Product, 0))).init()
    assert list(engine.tactics.values()) == ["matmul.cblas"]
    np.testing.assert_allclose(engine([A, B])[0], A @ B)


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
    assert registry.of("nn.relu") == ()
