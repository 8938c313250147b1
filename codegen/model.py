"""A compiled model as plain data: what the compiler gives to the runtime, and what a library file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir.dtype import DType
from ..ir.target import Target
from .entry import KernelCall


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and dtype of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def size(self) -> int:
        """Bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.storage_bytes

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which implementation serves an operator, and why."""

    op: str
    implementation: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """One fused function. Its arguments are its inputs (constants of one element left out), then its outputs."""

    name: str
    symbol: str
    choices: tuple[Choice, ...]
    messages: tuple[str, ...]
    loop_ir: str
    llvm_ir: str
    object: bytes


@dataclass(frozen=True, slots=True)
class ModelStep:
    """A call of a fused function: ``origin`` names the nodes of the imported model that it stands for."""

    function: CompiledFunction
    call: KernelCall
    origin: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledModel:
    """All of a model. The entry's argument slots are those of inputs, outputs, constants, then the arena's."""

    name: str
    target: Target
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    constants: tuple[npt.NDArray[Any], ...]
    arena_bytes: int
    steps: tuple[ModelStep, ...]
    entry: str
    entry_object: bytes
    entry_llvm_ir: str

    @property
    def functions(self) -> tuple[CompiledFunction, ...]:
        """The different functions, in order of first use."""
        return tuple({step.function.symbol: step.function for step in self.steps}.values())
