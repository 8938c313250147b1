"""An engine together with inputs, checked once: what ``engine.bind`` gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from ..base.brief import listed
from ..base.errors import RuntimeArgumentError
from .arrays import array_text
from .executor import Executor
from .executor_set import ExecutorSet
from .outputs import RunOutputs
from .signature import Signature
from .tensor_specs import TensorSpecs


class BoundEngine:
    """``bound()`` runs the engine on its inputs, and gives the same output arrays, written anew; new ones of a model
    with outputs whose size only the run knows. ``runs`` are the runs of these by executor."""

    __slots__ = ("_executors", "_outputs", "_run", "_signature")

    def __init__(
        self,
        signature: Signature,
        executors: ExecutorSet,
        runs: Mapping[Executor, Callable[[], RunOutputs]],
        outputs: RunOutputs | None,
    ) -> None:
        self._executors = executors
        self._run: Callable[[Executor], RunOutputs] = lambda executor: runs[executor]()
        self._signature = signature
        self._outputs = outputs

    @property
    def inputs(self) -> TensorSpecs:
        """What the engine was bound to."""
        return self._signature.inputs

    @property
    def outputs(self) -> TensorSpecs:
        """What a call gives."""
        return self._signature.outputs

    def __call__(self) -> RunOutputs:
        return self._executors.use(self._run)

    def __repr__(self) -> str:
        shown = map(str, self._signature.outputs) if self._outputs is None else map(array_text, self._outputs)
        return f"<BoundEngine giving {listed(shown)}>"

    def __reduce__(self) -> NoReturn:
        raise RuntimeArgumentError(
            "a bound engine holds addresses of this process: pickle or copy engine.library, and bind an engine of that"
        )
