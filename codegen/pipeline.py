"""Runs LLVM's default pipeline of passes on a module, for machine.py, for probes of features and for resident code."""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager


def run_pipeline(module: llvm.ModuleRef, machine: llvm.TargetMachine, options: llvm.PipelineTuningOptions) -> None:
    """Run in place the passes that LLVM takes at ``options.speed_level``, and free their memory."""
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    # The passes keep 68 KB. To close them frees nothing: the empty `_dispose` of the first base class, ObjectRef, hides
    # this one. Detached, they are not freed again should that change.
    NewPassManager._dispose(passes)  # noqa: SLF001  (no public way)
    passes.detach()
