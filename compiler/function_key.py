"""What the cache tells compiled functions apart by: a digest of all that one depends on."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from ..codegen.cache import compiler_version
from ..codegen.options import CodegenOptions
from ..graph.node import Function
from ..graph.printer import graph_text
from ..ir.target import Target

FORMAT = 2


def function_key(function: Function, target: Target, options: CodegenOptions) -> str:
    """A digest of all that the compiled function depends on."""
    parts = (
        graph_text(function),
        str(target),
        f"{target.l1_bytes} {target.l2_bytes}",  # schedules size their tiles by these, which str() leaves out
        options.precision,
        str(options.opt_level),
        compiler_version(),
        compiler_digest(),
        str(FORMAT),
    )
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:{part};".encode())
    return total.hexdigest()


@cache
def compiler_digest() -> str:
    """A digest of the package's own sources: what another version compiled is not ours."""
    total = hashlib.sha256()
    root = Path(__file__).parent.parent
    for folder in ("ir", "te", "lowering", "codegen", "graph", "ops", "compiler"):
        for path in sorted((root / folder).rglob("*.py")):
            total.update(str(path.relative_to(root)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
