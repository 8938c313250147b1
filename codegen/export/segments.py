"""What an exported model's context has of the segments that loops have grow, set up before each run."""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ...artifact.model import CompiledModel
from ..abi import SEGMENTS
from ..types import I64, PTR
from .body import FunctionBody
from .context_words import HEAD, ContextWords


def set_up_segments(body: FunctionBody, model: CompiledModel, context: llvm_ir.Value) -> None:
    """Have the context tell where the table of segments is, with what has them grow; nothing for a model that has no
    segments."""
    if not model.segments:
        return
    first = HEAD // 8 + ContextWords(model).segment_count
    table = body.word(context, first + 1)
    values = llvm_ir.Constant(I64, model.segments), body.function_named("lw.grow.segment", PTR, [PTR, I64, I64, I64])
    for word, value in enumerate((*values, context), first):
        body.builder.store(value, body.word(context, word))
    body.builder.store(table, body.word(context, SEGMENTS))
