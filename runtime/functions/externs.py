"""The packed functions that a model calls, looked up when it is loaded."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from typing import Any, cast

from ...artifact.function import CompiledFunction
from ...artifact.model import CompiledModel
from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError, TargetError
from ..arrays import Array
from . import entropy, images
from .host_call import HostCall
from .packed_functions import NATIVE, PackedFunction, get_func

__all__ = ["Externs", "entropy", "find_externs", "images"]


@dataclass(frozen=True, slots=True)
class Externs:
    """The functions from outside, by the symbols of those that call them: ``hosts`` are functions of Python,
    ``natives`` the addresses of functions of ctypes."""

    hosts: Mapping[str, HostCall]
    natives: Mapping[str, int]


def find_externs(model: CompiledModel) -> Externs:
    """Raises ``TargetError`` for a function that is not registered."""
    hosts: dict[str, HostCall] = {}
    natives: dict[str, int] = {}
    nodes = {step.symbol: step.origin for step in reversed(model.steps)}
    for function in model.functions:
        if function.is_packed:
            found = _find(model, function, nodes.get(function.symbol, ()))
            if isinstance(found, NATIVE):
                natives[function.symbol] = ctypes.cast(cast(Any, found), ctypes.c_void_p).value or 0
            else:
                hosts[function.symbol] = _host_call(function, found)
    return Externs(hosts, natives)


def _find(model: CompiledModel, function: CompiledFunction, origin: tuple[str, ...]) -> PackedFunction:
    name = _attributes(function)["function"]
    try:
        return get_func(name)
    except LoopwrightError:
        node = f" (node {', '.join(origin)})" if origin else ""
        raise TargetError(
            f"{model.name}: the operator extern{node} calls the function {name!r}, which is not registered: "
            f"lw.register_func({name!r}, …) before the model is loaded"
        ) from None


def _host_call(function: CompiledFunction, found: PackedFunction) -> HostCall:
    options: dict[str, Any] = json.loads(_attributes(function)["options"])

    def compute(inputs: list[Array], outputs: list[Array]) -> None:
        found(*inputs, *outputs, **options)

    assert function.call is not None
    return HostCall(function, function.call, compute)


def _attributes(function: CompiledFunction) -> dict[str, Any]:
    assert function.call is not None
    attributes: dict[str, Any] = json.loads(function.call.attributes)
    return attributes
