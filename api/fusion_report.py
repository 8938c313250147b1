"""``lw.fusion_report``: which operators of a model become one function."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from ..artifact.options import Arithmetic, CodegenOptions
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.reports import fusion_report as reports
from ..compiler.reports.fusion_report import FusionReport
from ..compiler.selection.records import TuningRecords, records_from
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..graph.types import GivenShapes
from .model_graph import expected_shapes, planned_graph

if TYPE_CHECKING:
    from onnx import ModelProto


def fusion_report(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    shapes: GivenShapes | None = None,
    target: str | Target | None = "native",
    unfused: Collection[str] = (),
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
    expect: GivenShapes | None = None,
) -> FusionReport:
    """Which operators of a model become one function, and what keeps the others apart; ``print`` it.

    Takes and raises what ``compile`` does. The model is not compiled, but for what depends on constants alone.

    >>> import loopwright as lw
    >>> x, w = lw.var("x", (4, 8)), lw.var("w", (8, 8))
    >>> y = lw.nn.relu(lw.nn.matmul(lw.nn.negative(x), w))
    >>> print(lw.fusion_report(lw.Function([x, w], lw.nn.transpose(y))))  # doctest: +NORMALIZE_WHITESPACE
    fused_negative: %0 negative
        not with %1 nn.matmul: nn.matmul is complex: its operands stay outside
    fused_nn_matmul_relu: %1 nn.matmul, %2 relu
        not with %3 transpose: nn.matmul is complex: its function takes in elementwise and broadcasting operators of
        its shape, with elements no wider, and transpose is injective
    fused_transpose: %3 transpose
    """
    options, known = CodegenOptions(arithmetic=arithmetic), records_from(records)
    usual = expected_shapes(expect, batch_invariant)
    settings = CompileSettings(resolve_target(target), options, known, unfused=unfused, expect=usual)
    return reports.fusion_report(planned_graph(model, shapes, settings, batch_invariant), unfused)
