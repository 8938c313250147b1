"""All parts of an export as one LLVM module, of which only the functions of C can be seen from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from ...base.errors import InternalError
from ...base.target import Target
from ..llvm_memory import require_for_compiling
from ..machine import optimize, target_machine


def link_program(
    parts: Sequence[str], renamed: Mapping[str, str], exported: Mapping[str, str], target: Target, as_text: bool
) -> bytes:
    """Object code of parts, each of which is LLVM IR; or LLVM IR again, behind its passes. ``renamed`` are symbols that
    get others before, ``exported`` those that are seen from outside, and by what names."""
    machine = target_machine(target)
    # As in compile.py, modules are freed before their context, whoever keeps a frame of this.
    with llvm.create_context() as context, _parsed(parts[0], context, renamed, machine, target) as module:
        for part in parts[1:]:
            module.link_in(_parsed(part, context, renamed, machine, target))  # which takes it over
        _hide(module, exported)
        for symbol, name in exported.items():
            function = module.get_function(symbol)
            function.name = name
            if target.system == "windows":
                function.storage_class = "dllexport"
        return str(module).encode() if as_text else bytes(machine.emit_object(module))


def _parsed(
    text: str, context: llvm.ContextRef, renamed: Mapping[str, str], machine: llvm.TargetMachine, target: Target
) -> llvm.ModuleRef:
    """Optimized before they are linked: a kernel must not be compiled for the hole that its weights will fill."""
    require_for_compiling(text)
    try:
        module = llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise _rejected(error) from error
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    try:
        module.verify()
    except RuntimeError as error:
        module.close()
        raise _rejected(error) from error
    for function in module.functions:
        if function.name in renamed:
            function.name = renamed[function.name]
    optimize(module, machine, 3)
    return module


def _rejected(error: RuntimeError) -> InternalError:
    return InternalError(f"LLVM rejects a part of an export:\n{error}")


def _hide(module: llvm.ModuleRef, exported: Mapping[str, str]) -> None:
    """Make all that is defined internal, but for what is exported; free the names that this will get."""
    taken = set(exported.values())
    for value in [*module.functions, *module.global_variables]:
        if value.is_declaration or value.name in exported:
            continue
        value.linkage = "internal"
        if value.name in taken:
            value.name = f"{value.name}.part"
