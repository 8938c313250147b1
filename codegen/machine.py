"""LLVM's side of a Target: initialisation, target machines, data layout, the pass pipeline."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from ..base.errors import TargetError
from ..base.target import Target
from .features import implied_features
from .pipeline import run_pipeline


@cache
def initialize() -> None:
    """Register LLVM's code generators, those of other architectures included. Idempotent."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def feature_string(target: Target) -> str:
    """LLVM's feature line: what is on, then what the cpu name implies but the target lacks.

    Intel cores of the first AVX-512 generations are tuned to 256 bit vectors; our schedules choose the width, so that
    preference is switched off.
    """
    off = implied_features(target.triple, target.cpu) - target.features
    words = [f"+{name}" for name in sorted(target.features)] + [f"-{name}" for name in sorted(off)]
    if target.has("avx512f"):
        words.append("-prefer-256-bit")
    return ",".join(words)


def target_machine(target: Target, opt_level: int = 3, *, pic: bool = True) -> llvm.TargetMachine:
    """A fresh LLVM target machine; the small code model, position independent unless asked otherwise."""
    return _llvm_target(target.triple).create_target_machine(
        cpu=target.cpu,
        features=feature_string(target),
        opt=opt_level,
        reloc="pic" if pic else "static",
        codemodel="small",
    )


def linking_machine(triple: str) -> llvm.TargetMachine:
    """One for code that is compiled already, of any cpu: to find out what a cpu's name implies takes LLVM 26 MiB."""
    return _llvm_target(triple).create_target_machine(reloc="pic", codemodel="small")


def _llvm_target(triple: str) -> llvm.Target:
    initialize()
    try:
        return llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise TargetError(f"LLVM knows no target of triple {triple!r}: {error}") from error


@cache
def data_layout(target: Target) -> str:
    """The data layout of a target, for the head of a module."""
    return str(target_machine(target).target_data)


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt_level: int) -> None:
    """Run the pass pipeline in place.

    Schedules decide what is vectorised and unrolled, so LLVM's own vectorisers, unrolling and interleaving are off.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = False
    run_pipeline(module, machine, options)
