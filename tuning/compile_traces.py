"""Compiles tensor expressions by traces of schedules, in a child process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..artifact.extents import extent_of
from ..artifact.function import CompiledFunction, TensorSpec
from ..artifact.function_bytes import to_bytes
from ..artifact.options import CodegenOptions
from ..base.errors import LoopwrightError
from ..base.target import Target
from ..compiler.build import compile_schedule
from ..lowering.schedule import create_schedule
from ..lowering.trace import Trace
from ..te.tensor import Tensor
from .outcome import OutcomeKind
from .sandbox import Answer


def compile_traces(job: Mapping[str, Any]) -> Iterator[Answer]:
    """Answer that it is ready, then with the code by each trace, or why there is none."""
    inputs, outputs, target, options = pickle.loads(job["computes"])
    yield {}
    for text in job["items"]:
        try:
            yield _compiled(text, inputs, outputs, target, options)
        except LoopwrightError as error:
            yield {"kind": OutcomeKind.REFUSED.value, "detail": str(error).splitlines()[0][:300]}
        except Exception as error:  # whatever it is, the run goes on
            yield {"kind": OutcomeKind.FAILED.value, "detail": f"{type(error).__name__}: {str(error)[:300]}"}


def _compiled(
    text: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], target: Target, options: CodegenOptions
) -> Answer:
    schedule = create_schedule(outputs)
    schedule.replay(Trace.from_json(text))
    made = compile_schedule(schedule, [*inputs, *outputs], target, "main", options)
    code = made.code
    specs = tuple(TensorSpec(b.name, tuple(extent_of(e, {}) for e in b.shape), b.dtype) for b in made.func.buffers)
    function = CompiledFunction(
        "main", code.entry, (), (), code.messages, "", "", code.object, code.externs, arguments=specs
    )
    nest = hashlib.sha256(str(made.func).encode()).hexdigest()[:16]
    return {"kind": OutcomeKind.MEASURED.value, "code": to_bytes(function), "nest": nest}
