"""Checks one random graph: compiled, it gives what numpy gives, an operator at a time; no schedule of ours is refused.

Run as a script it is a server: a plan as JSON comes in a line, a line with the outcome goes out.
"""

import json
import sys
import traceback
import warnings

import numpy as np
import random_graphs
from check_operator import require_no_refusal
from draw import runnable

import loopwright as lw

TARGETS = ("x86-64", "x86-64-v2", "x86-64-v3", "native")
NOISY = 3
"""Evaluations with errors of rounding, by which a result's tolerance is found."""

NEARLY_INFINITE = 1e38
"""Finite numbers beyond this may overflow on the way, or not, as the sums are ordered."""
ROUNDING = 2.0**-23
"""Of float32: errors are so much of the terms that a result is summed of, however they cancel."""


def check(plan):
    """``{"error": …}``; ``"met"`` has the forms of the nodes."""
    outcome = {"met": [], "error": None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome["met"] = [node[0] for node in plan["nodes"]]
            _check(plan)
    except Exception as error:
        outcome["error"] = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"
    return outcome


def _check(plan):
    graph = random_graphs.make_graph(plan)
    arrays = graph.arrays(plan)
    try:
        library = lw.compile(
            graph.function,
            runnable(TARGETS[plan["target"]]),
            jobs=1,
            layouts=plan["layouts"],
            precision=plan["precision"],
            arithmetic="direct" if plan["outliers"] else None,
        )
    except lw.ModelError as error:
        if plan["symbolic"] and "Give the shapes of the inputs" in str(error):
            return
        raise
    require_no_refusal(choice for made in library.functions for choice in made.choices)
    found = lw.Engine(library)(arrays)
    for number, (result, *wanted) in enumerate(zip(found, *references(graph, arrays, plan), strict=True)):
        assert_same(np.asarray(result), wanted, f"output {number} of\n{graph.function}\n")


def references(graph, arrays, plan):
    """What the outputs may be: with each operator's result rounded, with none, with all in float32, which overflows
    earlier, as do terms before they cancel, and with errors of rounding put in."""
    yield random_graphs.evaluate(graph, arrays)
    yield random_graphs.evaluate(graph, arrays, between=np.float64)
    yield random_graphs.evaluate(graph, arrays, inside=np.float32)
    yield random_graphs.evaluate(graph, arrays, limit=NEARLY_INFINITE)
    for number in range(NOISY):
        yield random_graphs.evaluate(graph, arrays, np.random.default_rng([plan["seed"], number]))


def assert_same(found, references, what):
    """Where all references are of one class, finite, an infinity, or NaN, so is what is found; finite numbers are as
    near to the first as these are to one another, with a margin."""
    wanted, *others = references
    assert found.shape == wanted.shape, f"{what} has the shape {found.shape}, not {wanted.shape}"
    wide = found.astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(other - wanted) for other in others], axis=0, initial=0.0)
        finite = np.abs(wanted[np.isfinite(wanted)])
        usual = np.median(finite) if finite.size else 0.0
        near = np.abs(wide - wanted) <= 40 * spread + 2e-6 * (np.abs(wanted) + usual) + 1e-36
        sure = np.logical_and.reduce([_class(other) == _class(wanted) for other in others])
        sure &= np.isinf(wanted) | ~(np.abs(wanted) > NEARLY_INFINITE)
        sure &= ~(spread / ROUNDING > NEARLY_INFINITE)  # terms that cancel may overflow first, in another order
        right = np.where(np.isfinite(wanted), np.isfinite(wide) & near, _class(wide) == _class(wanted)) | ~sure
    if not right.all():
        place = tuple(int(i) for i in np.argwhere(~right)[0])
        count = f"{int((~right).sum())} of {right.size} differ"
        raise AssertionError(f"{what} is {found[place]} at {place}, not {wanted[place]} ± {spread[place]}; {count}")


def _class(values):
    """0 for finite numbers, 1 and -1 for the infinities, 2 for NaN."""
    return np.where(np.isnan(values), 2, np.where(np.isinf(values), np.sign(values), 0))


def serve():
    for line in sys.stdin:
        print(json.dumps(check(json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
