"""Checks one random call of an operator: that every implementation has a schedule, and that results are right.

Run as a script it is a server: a plan as JSON comes in a line, a line with the outcome goes out.
"""

import json
import sys
import traceback
import warnings
from contextlib import suppress

import numpy as np
import operators_detection
import operators_moving
import operators_products
import operators_signals
import operators_simple
import operators_strings
import operators_trees
import operators_windows
from draw import Draw, assert_close, exact, is_float, magnitudes, numpy_kind, runnable

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.model.alternatives import alternatives_of
from loopwright.compiler.model.compile_function import compile_function
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.model.units import in_order, units_of
from loopwright.compiler.passes.flatten_tuples import flatten_tuples
from loopwright.compiler.passes.graph_passes import run_graph_passes
from loopwright.compiler.reports.explain import _zeros
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.types import TupleType

DRAWS = (
    operators_detection.DRAWS
    | operators_simple.DRAWS
    | operators_moving.DRAWS
    | operators_products.DRAWS
    | operators_signals.DRAWS
    | operators_strings.DRAWS
    | operators_trees.DRAWS
    | operators_windows.DRAWS
)
NATIVE = ("x86-64", "x86-64-v2", "x86-64-v3", "native")
TARGETS = (
    *NATIVE,
    "x86-64-v4",
    *(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}" for cpu in ("znver4", "sapphirerapids", "alderlake")),
    "llvm -mtriple=aarch64-linux-gnu",
    "llvm -mtriple=riscv64-linux-gnu",
)
"""The first ones run on the machine, as far as it has their instructions; of the others schedules and code are made."""


def check(plan):
    """``{"error": …}``; ``"met"`` has the implementations that the plan came to."""
    outcome = {"met": [], "error": None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check(plan, outcome["met"])
    except lw.ModelError as error:
        if not (plan["symbolic"] and "Give the shapes of the inputs" in str(error)):
            outcome["error"] = f"{type(error).__name__}: {error}"
    except Exception as error:
        outcome["error"] = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"
    return outcome


def _check(plan, met):
    d = Draw([plan["seed"]], plan["size"])
    case = DRAWS[plan["op"]](d)
    function = call_in_function(case, plan, arrays := arrays_of(case, plan, d.rng))
    named = TARGETS[plan["target"]]
    target = lw.resolve_target(named) if plan["how"] in ("lower", "compile") else runnable(named)
    is_fast = "winograd" in plan["op"] or "strassen" in plan["op"]
    options = CodegenOptions(
        precision="strict" if plan["strict"] and not is_fast else "standard",
        arithmetic="direct" if plan["outliers"] and not case.local and not is_fast else None,
        cache=False,
    )
    if plan["how"] in ("lower", "compile"):
        schedule_all(function, CompileSettings(target, options), plan["how"] == "compile", met)
        return
    settings = CompileSettings(target, options)
    if plan["how"] == "forced":
        units = units_of(in_order(function)[0])
        ways = [way for unit in units for way in alternatives_of(unit.function, settings)]
        settings = ways[plan["seed"] % len(ways)] if ways else settings
    library = lw.compile(
        function,
        target,
        jobs=1,
        precision=options.precision,
        arithmetic=options.arithmetic,
        records=settings.records,
        layouts=plan["layouts"],
    )
    choices = [choice for made in library.functions for choice in made.choices]
    require_no_refusal(choices)
    met += [choice.implementation for choice in choices]
    fed = [array for array, given in zip(arrays, case.inputs, strict=True) if not given.constant]
    check_results(lw.Engine(library)(fed), case, plan, arrays, f"{function.body} for {target.cpu} by {met}")


def arrays_of(case, plan, rng):
    """The arguments; of a call that is only compiled the constant ones, without values."""
    if plan["how"] in ("lower", "compile"):
        return [np.zeros(given.shape, numpy_kind(given.kind)) if given.constant else None for given in case.inputs]
    return [given.values(rng, plan["outliers"]) for given in case.inputs]


def call_in_function(case, plan, arrays):
    """The call, followed by a relu if the plan has one; if it says so, and the operator takes that, the first extent of
    the first argument is symbolic; unless it is 1, for an open extent does not stretch."""
    nodes = [
        lw.const(array) if given.constant else lw.var(f"x{k}", given.shape, given.kind)
        for k, (given, array) in enumerate(zip(case.inputs, arrays, strict=True))
    ]
    body = case.make(*nodes)
    leading = case.inputs[0].shape[:-1] if case.inputs and not case.inputs[0].constant else ()
    if plan["symbolic"] and leading and leading[0] != 1:
        first = lw.var("x0", (te.var("n"), *case.inputs[0].shape[1:]), case.inputs[0].kind)
        with suppress(lw.LoopwrightError):
            body = case.make(first, *nodes[1:])
            nodes[0] = first
    if plan["relu"] and not isinstance(body.type, TupleType) and body.type.dtype.is_float:
        body = lw.nn.relu(body)
    variables = [node for node, given in zip(nodes, case.inputs, strict=True) if not given.constant]
    return flatten_tuples(lw.Function(variables, body))


def check_results(results, case, plan, arrays, what):
    with np.errstate(all="ignore"):
        wanted = case.oracle(*map(exact, arrays))
        scale = None if case.magnitude is None else case.magnitude(*map(magnitudes, arrays))
    if scale is not None and not (case.local or plan["outliers"]):
        scale = np.max(scale, initial=0.0)
    if not isinstance(wanted, tuple):
        wanted = (np.maximum(wanted, 0) if plan["relu"] and is_float(results[0].dtype) else wanted,)
    for found, expected in zip(results, wanted, strict=True):
        assert_close(np.asarray(found), expected, scale, case.tolerance, what)


def schedule_all(function, settings, compiled, met):
    """Schedule and lower the functions of a graph, as it is and with its layouts planned, by all implementations that
    could serve; compile them as well if the target cannot be run."""
    planned = run_graph_passes(function, settings, evaluate=_zeros)
    for graph in dict.fromkeys((function, planned)):
        for unit in units_of(in_order(graph)[0]):
            for tried in (settings, *alternatives_of(unit.function, settings)):
                made = lower_function(unit.function, tried, "main")
                require_no_refusal(made.choices)
                met += [choice.implementation for choice in made.choices]
                if compiled:
                    compile_function("", unit.function, tried)


def require_no_refusal(choices):
    for choice in choices:
        for candidate in choice.candidates:
            assert candidate.refused is None, (
                f"{choice.call}: {candidate.implementation} is refused: {candidate.refused}"
            )


def serve():
    for line in sys.stdin:
        print(json.dumps(check(json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
