"""Makes a kernel of a function of tensors and its arguments: calls it once, schedules what it returns, and compiles
that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from ..artifact.options import CodegenOptions
from ..base.brief import listed
from ..base.dataclass import dataclass
from ..base.errors import ExpressionError, ScheduleError, TypeInferenceError
from ..base.target import Target
from ..lowering.schedule import Schedule, create_schedule
from ..schedules.default_schedule import default_schedule
from ..te.compute import compute, placeholder
from ..te.order import operations_behind
from ..te.tensor import PlaceholderOp, Tensor
from .arguments import Argument, ArrayArgument, Parameters
from .build import build_kernel
from .specialization import Specialization, shape_of

ScheduleFunction: TypeAlias = Callable[[Schedule], Schedule | None]
"""Changes the naive schedule that it is given, or gives another one of the same tensors."""


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How the specialisations of a kernel function are made; ``schedule`` None is ``lw.default_schedule``."""

    schedule: ScheduleFunction | None
    target: Target
    codegen: CodegenOptions


def specialize(
    name: str,
    function: Callable[..., Any],
    parameters: Parameters,
    bound: inspect.BoundArguments,
    arguments: Sequence[Argument],
    options: KernelOptions,
) -> Specialization:
    """The function for arguments like these. Errors in what it computes are told with its name and the arguments."""
    call = f"kernel {name}({listed(arguments)})"
    inputs = [placeholder(a.array.shape, a.kind, a.name) for a in arguments if isinstance(a, ArrayArgument)]
    tensors = iter(inputs)
    values = (next(tensors) if isinstance(a, ArrayArgument) else a.value for a in arguments)
    with _naming(call):
        args, kwargs = parameters.given(bound, values)
        returned = function(*args, **kwargs)
        several = isinstance(returned, (tuple, list))
        outputs = _outputs(call, returned if several else (returned,), inputs)
        schedule = _scheduled(call, outputs, options)
        used = _used(call, outputs, inputs)
        kernel = build_kernel(schedule, [*(inputs[k] for k in used), *outputs], options.target, name, options.codegen)
    results = tuple((shape_of(tensor), tensor.dtype.to_numpy()) for tensor in outputs)
    return Specialization(kernel, schedule, tuple(inputs), outputs, used, results, several)


@contextmanager
def _naming(call: str) -> Iterator[None]:
    """A context in which errors in what is computed or scheduled name the kernel and its arguments."""
    try:
        yield
    except (ExpressionError, TypeInferenceError, ScheduleError) as error:
        text = str(error)
        kind = next(k for k in (ExpressionError, TypeInferenceError, ScheduleError) if isinstance(error, k))
        raise error if text.startswith(call) else kind(f"{call}: {text}") from error


def _outputs(call: str, returned: Sequence[object], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors that the function returned, each the result of a compute of its own."""
    if not returned:
        raise ExpressionError(f"{call} returned nothing: return a tensor, or a tuple of tensors")
    outputs: list[Tensor] = []
    for value in returned:
        if not isinstance(value, Tensor):
            what = "nothing" if value is None else f"a value of type {type(value).__name__}"
            raise ExpressionError(
                f"{call} returned {what}: return a tensor, such as te.compute and functions of numpy on the arguments "
                "give, or a tuple of tensors"
            )
        is_new = not isinstance(value.op, PlaceholderOp) and not any(value is other for other in outputs)
        outputs.append(value if is_new else _copy(value))
    return tuple(outputs)


def _copy(tensor: Tensor) -> Tensor:
    return compute(tensor.shape, lambda *i: tensor[i], name="copy")


def _scheduled(call: str, outputs: tuple[Tensor, ...], options: KernelOptions) -> Schedule:
    if options.schedule is None:
        return default_schedule(outputs, options.target, options.codegen.precision != "strict")
    schedule = create_schedule(outputs)
    made = options.schedule(schedule)
    if made is not None and not isinstance(made, Schedule):
        raise ScheduleError(
            f"{call}: the function that schedules it gave {made!r}: it changes the schedule that it is given, or gives "
            "another one"
        )
    return schedule if made is None else made


def _used(call: str, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[int, ...]:
    """The positions of the inputs that the outputs depend on, after a check that they depend on nothing else."""
    found = operations_behind(outputs)
    known = {tensor.op for tensor in inputs}
    for op in found:
        if isinstance(op, PlaceholderOp) and op not in known:
            raise ExpressionError(f"{call} reads {op.outputs[0]!r}, which is none of its arguments: add one for it")
    used = set(found)
    return tuple(k for k, tensor in enumerate(inputs) if tensor.op in used)
