"""``lw.explain``: why each call of a model has the implementation it has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..base.choices import check_flag
from ..base.errors import RuntimeArgumentError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.reports.explain import Explanation, explain_call, explain_graph, explain_model
from ..compiler.selection.records import TuningRecords, records_from
from ..compiler.settings import CompileSettings, Layouts
from ..graph.node import Call, Function
from ..graph.types import GivenShapes
from ..runtime.library import Library
from .model_graph import expected_shapes, graph_of

if TYPE_CHECKING:
    from onnx import ModelProto


def explain(
    subject: Library | Call | Function | ModelProto | bytes | str | os.PathLike[str],
    target: str | Target | None = None,
    shapes: GivenShapes | None = None,
    precision: Precision | None = None,
    records: TuningRecords | str | os.PathLike[str] | None = None,
    layouts: Layouts | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
    expect: GivenShapes | None = None,
) -> Explanation:
    """Why each call of a model has the implementation it has: all candidates, their conditions, priorities and recorded
    costs, and the reason of the choice; ``print`` it, or take ``to_json()``.

    A library tells what was chosen for it. A model, a graph function or a single call is not compiled: the rest of the
    arguments are those that ``compile`` would get, and it raises what that does.

    >>> import loopwright as lw
    >>> call = lw.nn.softmax(lw.var("x", (4, 8)))
    >>> print(lw.explain(call, target="llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"))
    for x86-64, x86_64-linux-gnu
    softmax
        softmax(float32[4, 8], axes=(1,))
          → softmax.generic (10): the only one
            softmax.generic     10 valid
            softmax.rows        10 rejected (fails: 8 >= 64)
            softmax.short_rows  10 rejected (fails: rows of a few vectors)
    """
    check_flag(batch_invariant, "batch_invariant")
    if isinstance(subject, Library):
        options = (target, shapes, precision, records, layouts, arithmetic, batch_invariant or None, expect)
        if any(given is not None for given in options):
            raise RuntimeArgumentError("a library is explained as it was compiled; it takes no further arguments")
        return explain_model(subject.model)
    numeric = CodegenOptions(precision="standard" if precision is None else precision, arithmetic=arithmetic)
    chosen = "plan" if layouts is None else layouts
    usual = expected_shapes(expect, batch_invariant)
    settings = CompileSettings(resolve_target(target), numeric, records_from(records), chosen, expect=usual)
    if isinstance(subject, Call):
        return explain_call(subject, settings)
    return explain_graph(graph_of(subject, shapes, settings.target, batch_invariant), settings)
