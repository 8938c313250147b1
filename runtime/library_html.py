"""The view of a library in a notebook: what it takes and gives, and a table of its functions."""

from __future__ import annotations

from collections import Counter

from ..artifact.function import CompiledFunction
from ..artifact.model import CompiledModel
from ..base.html.code import code
from ..base.html.markup import Markup, fold
from ..base.html.table import Column, facts, share_bar, shortened, table
from ..base.html.view import MOST_BYTES, view
from .library import Library

_NEST_BYTES = MOST_BYTES // 16
"""The most for one loop nest, so that several have room."""


def library_html(library: Library) -> str:
    """What a notebook shows of a library: its inputs, outputs and target, a row for each function, and their loop
    nests, folded; those that take the longest come first where an engine has profiled them."""
    model = library.model
    functions = sorted(library.functions, key=lambda function: -library.shares.get(function.symbol, 0.0))
    return view(f"Library {model.name}", model_facts(model), _table(library, functions), _nests(functions))


def model_facts(model: CompiledModel) -> Markup:
    """What a model takes and gives, and what it was compiled for."""
    how = {"precision": model.precision, "arithmetic": model.arithmetic}
    return facts(
        {
            "inputs": ", ".join(map(str, model.shown_inputs)),
            "outputs": ", ".join(map(str, model.shown_outputs)),
            "states": ", ".join(map(str, model.shown_states)),
            "target": model.target.cpu,
            "compiled with": ", ".join(f"{value} {name}" for name, value in how.items()),
        }
    )


def _table(library: Library, functions: list[CompiledFunction]) -> Markup:
    calls = Counter(step.symbol for step in library.model.steps)
    shares = library.shares
    columns = [Column("function"), Column("calls", numeric=True), Column("result"), Column("implementation")]
    rows = [[f.name, str(calls[f.symbol]), _result(f), f.implementation] for f in functions]
    if shares:
        columns.append(Column("share of time", numeric=True))
        rows = [[*row, share_bar(shares.get(f.symbol, 0.0))] for row, f in zip(rows, functions, strict=True)]
    return table(columns, rows, "library.functions")


def _result(function: CompiledFunction) -> str:
    """The type of what a function computes; of several results, that of the last one."""
    if not function.arguments:
        return ""
    result = function.arguments[-1]
    return f"{result.dtype}[{', '.join(map(str, result.shape))}]"


def _nests(functions: list[CompiledFunction]) -> Markup:
    """The loop nests, as many as have room in half of a view."""
    room, nests = MOST_BYTES // 2, []
    for function in functions:
        nest = fold(shortened(function.name), code(function.loop_ir, "loops", "function.loop_ir", _NEST_BYTES))
        room -= len(nest.encode())
        if room < 0:
            break
        nests.append(nest)
    left = len(functions) - len(nests)
    count = f", {len(nests)} of {len(functions)}; the others in library.functions" if left else ""
    return fold(f"loop nests{count}", *nests) if nests else Markup()
