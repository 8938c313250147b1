"""Loads native code that stays for the life of the process: code that threads of ours run must never be unmapped."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from ...artifact.remembered import remembered
from ...base.target import Target
from ...codegen.llvm_memory import require_for_compiling, require_for_linking
from ...codegen.machine import initialize, linking_machine
from ...codegen.object_check import check_object
from ...codegen.pipeline import run_pipeline
from .fork_lock import ForkLock

_lock = ForkLock()
_loaded = 0


def load_resident(ir_text: str, exports: tuple[str, ...], speed_level: int = 2) -> dict[str, int]:
    """Compile LLVM IR for the machine at hand and return the addresses of its exported functions.

    The text may leave out triple and data layout. Symbols that it does not define come from the running process.
    """
    global _loaded  # noqa: PLW0603  (library names in a process must differ)
    image = _object(ir_text, exports[0], speed_level)
    require_for_linking([image])
    library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
    for name in exports:
        library.export_symbol(name)
    with _lock.held:
        _loaded += 1
        jit = llvm.create_lljit_compiler(linking_machine(llvm.get_process_triple()))
        tracker = library.link(jit, f"resident{_loaded}")
    addresses = {name: int(tracker[name]) for name in exports}
    # Without their Python owners nothing frees the code, not even the shutdown of the interpreter.
    tracker.detach()
    jit.detach()
    return addresses


@functools.cache
def _object(ir_text: str, symbol: str, speed_level: int) -> bytes:
    """Object code for the architecture at hand, with a function of that name; it may be loaded several times. The cache
    on disk has it after the first process that asks."""
    triple = llvm.get_process_triple()

    def checked(data: bytes) -> bytes:
        check_object(data, Target(triple, "generic"), symbol)
        return data

    question = f"{triple} {speed_level}\n{ir_text}"
    return remembered("resident", (symbol, triple), question, lambda: _compiled(ir_text, speed_level), bytes, checked)


def _compiled(ir_text: str, speed_level: int) -> bytes:
    require_for_compiling(ir_text)
    initialize()
    machine = llvm.Target.from_default_triple().create_target_machine(
        opt=speed_level, reloc="default", codemodel="jitdefault", jit=True
    )
    module = llvm.parse_assembly(ir_text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    run_pipeline(module, machine, llvm.create_pipeline_tuning_options(speed_level=speed_level))
    return bytes(machine.emit_object(module))
