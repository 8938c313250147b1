"""What it takes to compile models and kernels: ``python benchmarks/compile_time.py``.

Counts of work (nodes of the loop IR, calls of the simplifier and what these look at, instructions of LLVM IR) hardly
depend on the machine: more than ``compile_budgets.json`` allows is a failure. ``--update`` writes the counts of this
version there, for what ``--only`` chooses. Seconds are of this machine, and printed beside: cold (nothing in the
cache), warm, and to the first answer of a model that is compiled meanwhile (``tiered=True``). Everything is compiled in
a process of its own, by one process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from cases import Case, all_cases
from models import Model, all_models

BUDGETS = Path(__file__).with_name("compile_budgets.json")
TARGET = "x86-64-v3"
SLACK = 1.02
"""Counts may exceed their budget by so much: a few nodes die or live with the moment in which memory is collected."""


def chosen(only: list[str] | None, budgets: Mapping[str, object]) -> list[Model | Case]:
    """What is named like one of these parts; without any, the models, and the kernels that have budgets."""
    everything = [*all_models(), *all_cases()]
    if only:
        return [each for each in everything if any(part in each.full_name for part in only)]
    return [each for each in everything if isinstance(each, Model) or each.full_name in budgets]


def measured(model: Path) -> dict[str, float]:
    """Counts of a compilation, and its seconds, in a process of its own with an empty cache."""
    found: dict[str, float] = {}
    for option in ("--tiered-child", "--child"):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, option, str(model)]
            environment = {**os.environ, "LOOPWRIGHT_CACHE_DIR": cache}
            run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        found |= json.loads(run.stdout.splitlines()[-1])
    return found


def child(model: str) -> None:
    """Compile twice, and print what that took as JSON."""
    import loopwright as lw
    from loopwright.base.timing import CompileTiming

    lw.resolve_target(TARGET)
    start = time.perf_counter()
    timings = lw.compile(model, TARGET, jobs=1).timings
    cold = time.perf_counter()
    lw.compile(model, TARGET, jobs=1)
    seconds = {"cold": cold - start, "warm": time.perf_counter() - cold}
    print(json.dumps({name: getattr(timings, name) for name in CompileTiming.COUNTS} | seconds))


def tiered_child(model: str) -> None:
    """Print what the first answer of a model takes that is compiled meanwhile; imports are not counted."""
    import numpy as np

    import loopwright as lw
    from loopwright.api import tiered  # noqa: F401
    from loopwright.frontend import from_onnx  # noqa: F401

    lw.resolve_target("native")
    inputs = dict(np.load(Path(model).with_name("inputs.npz")))
    start = time.perf_counter()
    library = lw.compile(model, tiered=True)
    lw.Engine(library)(inputs)
    print(json.dumps({"first": time.perf_counter() - start}))


def excesses(name: str, counts: Mapping[str, float], budget: Mapping[str, float]) -> list[str]:
    """What is beyond the budget, in words; what has no budget is."""
    return [
        f"{name}: {counts[what]:.0f} {what}, {budget.get(what, 0):.0f} are allowed"
        for what in ("nodes", "simplifications", "visits", "instructions")
        if counts[what] > SLACK * budget.get(what, 0)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="PART", help="those whose name has one of these parts")
    parser.add_argument("--update", action="store_true", help="write the budgets anew")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--tiered-child", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tiered_child:
        tiered_child(options.tiered_child)
        return
    if options.child:
        child(options.child)
        return
    budgets = json.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.exists() else {}
    problems: list[str] = []
    for each in chosen(options.only, budgets):
        with tempfile.TemporaryDirectory() as folder:
            each.write(Path(folder))
            counts = measured(Path(folder) / "model.onnx")
        cold, warm, first = (counts.pop(what) for what in ("cold", "warm", "first"))
        told = f"{cold:.2f} s cold, {warm:.2f} s warm, first answer after {first:.2f} s"
        print(f"{each.full_name}: {told}, {counts}", flush=True)
        problems += excesses(each.full_name, counts, budgets.get(each.full_name, {}))
        budgets[each.full_name] = counts
    if options.update:
        BUDGETS.write_text(json.dumps(budgets, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    elif problems:
        raise SystemExit("\n".join(["more work than the budget has:", *problems]))


if __name__ == "__main__":
    main()
