"""All parts of an export as one LLVM module, of which only the functions of C can be seen from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from ...ir.errors import InternalError
from ...ir.target import Target
from ..machine import optimize, target_machine


class Program:
    """An LLVM module for a target, behind LLVM's passes."""

    def __init__(
        self, parts: Sequence[str], renamed: Mapping[str, str], exported: Mapping[str, str], target: Target
    ) -> None:
        """Link parts, each of which is LLVM IR. ``renamed`` are symbols that get others before, ``exported`` those that
        are seen from outside, and by what names."""
        self._machine = target_machine(target)
        context = llvm.create_context()
        self._module = _parsed(parts[0], context, renamed, self._machine, target)
        for part in parts[1:]:
            self._module.link_in(_parsed(part, context, renamed, self._machine, target))
        _hide(self._module, exported)
        for symbol, name in exported.items():
            function = self._module.get_function(symbol)
            function.name = name
            if target.system == "windows":
                function.storage_class = "dllexport"

    @property
    def text(self) -> str:
        """LLVM IR."""
        return str(self._module)

    def object(self) -> bytes:
        return bytes(self._machine.emit_object(self._module))


def _parsed(
    text: str, context: llvm.ContextRef, renamed: Mapping[str, str], machine: llvm.TargetMachine, target: Target
) -> llvm.ModuleRef:
    """Optimized before they are linked: a kernel must not be compiled for the hole that its weights will fill."""
    try:
        module = llvm.parse_assembly(text, context)
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM rejects a part of an export:\n{error}") from error
    for function in module.functions:
        if function.name in renamed:
            function.name = renamed[function.name]
    optimize(module, machine, 3)
    return module


def _hide(module: llvm.ModuleRef, exported: Mapping[str, str]) -> None:
    """Make all that is defined internal, but for what is exported; free the names that this will get."""
    taken = set(exported.values())
    for value in [*module.functions, *module.global_variables]:
        if value.is_declaration or value.name in exported:
            continue
        value.linkage = "internal"
        if value.name in taken:
            value.name = f"{value.name}.part"
