"""A request holds one caller's inputs and outputs between the phases: set_input, run, get_output.

Mutable: it belongs to one thread; its engine may be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

from ..base.errors import RuntimeArgumentError
from .arrays import Array
from .outputs import RunOutputs
from .signature import Signature, Values
from .tensor_specs import TensorSpecs

Run: TypeAlias = Callable[[Sequence[Array], Values | None, int | None], RunOutputs]
"""Runs the engine on checked inputs, into buffers if given, with so many threads if given."""


class Request:
    """One run of an engine in phases, made by ``engine.request()``. Phases out of order raise ``RuntimeArgumentError``,
    which says what to call."""

    def __init__(self, signature: Signature, run: Run) -> None:
        self._name = signature.name
        self._signature = signature
        self._run = run
        self._inputs: dict[int, Array] = {}
        self._outputs: RunOutputs | None = None

    @property
    def inputs(self) -> TensorSpecs:
        """The names, dtypes and shapes of the inputs that ``set_input`` takes, in order."""
        return self._signature.inputs

    @property
    def outputs(self) -> TensorSpecs:
        """The names, dtypes and shapes of the outputs that ``get_output`` gives, in order."""
        return self._signature.outputs

    def __reduce__(self) -> NoReturn:
        raise RuntimeArgumentError("a request belongs to an engine of this process: make one by engine.request() there")

    def __repr__(self) -> str:
        state = "done" if self._outputs is not None else f"{len(self._inputs)} of {len(self._signature.inputs)} inputs"
        return f"<Request of {self._name}, {state}>"

    def set_input(self, key: str | int, value: object) -> None:
        """Give an input, by name or position. The array is read by ``run``, not copied here; it must be contiguous."""
        self._inputs.update(self._signature.arrays_of_input(key, value))
        self._outputs = None

    def run(self, out: Values | None = None, threads: int | None = None) -> None:
        """Compute the outputs from the inputs that were set: new arrays, or those of ``out``."""
        specs = self._signature.inputs
        if missing := [spec.name for k, spec in enumerate(specs) if k not in self._inputs]:
            raise RuntimeArgumentError(
                f"{self._name}: input {', '.join(missing)} is not set: call set_input before run"
            )
        self._outputs = None
        arrays = self._signature.native([self._inputs[k] for k in range(len(specs))])
        self._outputs = self._run(arrays, out, threads)

    def get_output(self, key: str | int = 0) -> Array:
        """An output of the last run, by name or position."""
        if self._outputs is None:
            raise RuntimeArgumentError(f"{self._name} has no outputs yet: call run first")
        return self._outputs[self._signature.output_number(key)]
