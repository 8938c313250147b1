"""The kernel of every implementation in the registry, as MLIR: it verifies, runs, and computes what numpy does.

What only other machines or libraries have verifies."""

from itertools import product
from types import SimpleNamespace

import mlir_programs as programs
import mlir_tools as tools
import numpy as np

import loopwright as lw
from loopwright.graph.types import TupleType
from loopwright.ops.definition.implementation import outputs_of

TARGET = lw.resolve_target("native")


class Kernels(SimpleNamespace):
    """By title: ``modules``; of those that run here ``arguments``, and what numpy makes of them, ``expected``."""


def kernels(level):
    """Of each implementation, for the first of the operator's cases that it serves."""
    operators = programs.load(programs.TESTS / "ops" / "test_every_operator.py")
    made = Kernels(modules={}, arguments={}, expected={}, same=operators.same, refused={})
    for name, cases in operators.CASES.items():
        own = operators.targets_of(name).items() - operators.TARGETS.items()
        others = [target for _, target in sorted(own)] if level == "loops" else []
        for target, (make, oracle, *given) in product((TARGET, *others), cases):
            arrays = [np.asarray(a, order="C") for a in given]
            call = make(*(lw.var(f"x{k}", a.shape, a.dtype.name) for k, a in enumerate(arrays)))
            for implementation, serves in operators.candidates(call, target):
                title = f"f:{name} by {implementation.name}"
                if not serves or title in made.modules or title in made.refused:
                    continue
                tensors, computed = operators.implement(call, implementation)
                outputs = outputs_of(computed)
                scheduled = implementation.schedule if level == "loops" else _unscheduled
                schedule = scheduled(call.attrs, computed, outputs, target)
                func = lw.lower(schedule, [*tensors, *outputs], "f", target)
                try:
                    made.modules[title] = lw.emit_mlir(func, level)
                except lw.MlirError as error:
                    made.refused[title] = str(error)
                    continue
                if target is not TARGET:
                    continue
                results = [np.zeros([int(e) for e in o.shape], o.dtype.to_numpy()) for o in outputs]
                made.arguments[title] = [*arrays, *results]
                wanted = oracle(*map(operators.exact, arrays))
                made.expected[title] = wanted if isinstance(call.type, TupleType) else (wanted,)
    return made


def _unscheduled(attrs, anchor, outputs, target):
    """What is computed does not depend on the schedule."""
    return lw.create_schedule(list(outputs))


def verify(made):
    """By all tools that are here."""
    from xdsl_tools import verify_by_xdsl

    verify_by_xdsl(made.modules)
    tools.verify_by_mlir_opt({title: text for title, text in made.modules.items() if title not in made.arguments})


def results_of(made, folder, passes=tools.LOWERING):
    return tools.run_all({title: made.modules[title] for title in made.arguments}, made.arguments, folder, passes)


def check_results(made, found):
    for title, wanted in made.expected.items():
        results = found[title][-len(wanted) :]
        for result, expected in zip(results, wanted, strict=True):
            try:
                made.same(result, expected)
            except AssertionError as error:
                raise AssertionError(f"{title}: {error}\n{made.modules[title][:4000]}") from None


@tools.needs_xdsl
def test_kernels_at_the_level_of_loops(tmp_path):
    made = kernels("loops")
    assert made.refused == {}
    assert made.modules.keys() > made.arguments.keys()
    verify(made)
    check_results(made, results_of(made, tmp_path))


@tools.needs_xdsl
def test_kernels_at_the_level_of_linalg(tmp_path):
    made = kernels("linalg")
    assert {"f:cumsum by cumsum.generic", "f:topk by topk.generic"} <= made.refused.keys()
    refused = "; ".join(made.refused.values())
    reasons = (
        "linalg has no form for extern ",
        "linalg has no form for scan ",
        "range differs from element to element",
    )
    assert sum(refused.count(reason) for reason in reasons) == len(made.refused), refused
    verify(made)
    passes = f"{tools.BUFFERIZATION},{tools.LOWERING}"
    check_results(made, results_of(made, tmp_path, passes))
