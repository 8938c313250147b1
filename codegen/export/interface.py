"""What the functions of an export take, in the words of C: parameters, the bounds of dimensions, texts of errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

from ...artifact.extents import Extent
from ...artifact.function import TensorSpec
from ...artifact.model import CompiledModel
from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...ir.stmt import PrimFunc
from ..abi import symbolic_dims
from .given import dims_of_states, given_inputs, given_outputs
from .names import c_comment, c_function_name, c_names

_PARAMETERS = ("context", "threads", "weights", "code", "max_threads", "arena_bytes")
"""Names that parameters and macros of ours have in headers."""

MAX_THREADS = 1024


class Status(IntEnum):
    """What functions return besides the numbers of messages, which count from 1."""

    OK = 0
    NO_MEMORY = -1
    BAD_ARGUMENT = -2
    BAD_WEIGHTS = -3
    TOO_SMALL = -4


STATUS_TEXTS = {
    Status.OK: "no error",
    Status.NO_MEMORY: "there is not enough memory",
    Status.BAD_ARGUMENT: (
        f"a pointer is null, threads is not from 1 to {MAX_THREADS}, or a capacity or a state does not fit"
    ),
    Status.TOO_SMALL: "the memory that was given for an output is too small, and its shape is filled in",
    Status.BAD_WEIGHTS: "the file of weights cannot be read, or is not the one that was exported with this code",
}


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A pointer to the elements of a tensor in C order; ``elements`` is None where dimensions decide it.

    An output whose size only a run knows has a ``rank``, and two more parameters, ``capacity`` and ``shape``.
    """

    name: str
    about: str
    dtype: DType
    written: bool
    elements: int | None
    rank: int | None = None
    capacity: str = ""
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Interface:
    """Functions named ``name``…, on tensors and symbolic dimensions. ``externs`` are the prototypes of functions that
    whoever links must bring, ``states`` what contexts keep from run to run, in words."""

    name: str
    tensors: tuple[TensorParameter, ...]
    dims: tuple[str, ...]
    externs: tuple[str, ...]
    states: tuple[str, ...] = ()


def model_interface(model: CompiledModel, name: str | None) -> Interface:
    """The parameters of a model: its inputs, its outputs, its dimensions; without its states."""
    read, written = given_inputs(model), given_outputs(model)
    specs = [(model.inputs[k], False) for k in read] + [(model.outputs[k], True) for k in written]
    born = [output.number for stage in model.body.stages for output in stage.outputs]
    late = [len(read) + written.index(number) for number in born]
    told = dims_of_states(model)
    dims = [name for name in model.dims if name not in told]
    own = [spec.name for spec, _ in specs]
    more = [f"{own[number]}_{what}" for number in late for what in ("capacity", "shape")]
    names = c_names([*own, *dims, *more], _PARAMETERS)
    tensors = [
        TensorParameter(chosen, c_comment(str(spec)), spec.dtype, written, _elements(spec))
        for chosen, (spec, written) in zip(names, specs, strict=False)
    ]
    added = names[len(own) + len(dims) :]
    for number, capacity, shape in zip(late, added[::2], added[1::2], strict=True):
        rank = len(specs[number][0].shape)
        tensors[number] = replace(tensors[number], rank=rank, capacity=capacity, shape=shape)
    externs = dict.fromkeys(prototype for f in model.functions for prototype in f.externs)
    return Interface(
        c_function_name(model.name if name is None else name),
        tuple(tensors),
        tuple(names[len(own) : len(own) + len(dims)]),
        tuple(externs),
        tuple(c_comment(str(model.inputs[state.input])) for state in model.states),
    )


def kernel_interface(func: PrimFunc, externs: Iterable[str], name: str | None) -> Interface:
    """The parameters of a kernel: its buffers, then its symbolic dimensions."""
    dims = [dim.name for dim in symbolic_dims(func)]
    names = c_names([*(buffer.name for buffer in func.buffers), *dims], _PARAMETERS)
    written = {buffer.data for buffer in func.outputs}
    tensors = []
    for chosen, buffer in zip(names, func.buffers, strict=False):
        shape = ", ".join(map(str, buffer.shape))
        strides = "" if buffer.strides is None else f", strides [{', '.join(map(str, buffer.strides))}]"
        about = f"{buffer.name}: {buffer.dtype}[{shape}]{strides}"
        tensors.append(TensorParameter(chosen, c_comment(about), buffer.dtype, buffer.data in written, None))
    return Interface(
        c_function_name(func.name if name is None else name),
        tuple(tensors),
        tuple(names[len(tensors) :]),
        tuple(externs),
    )


def _elements(spec: TensorSpec) -> int | None:
    count = 1
    for extent in spec.shape:
        if not isinstance(extent, int):
            return None
        count *= extent
    return count


def shown(extent: Extent) -> str:
    """An extent in the text of an error."""
    return c_comment(str(extent))
