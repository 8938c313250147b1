"""Compile an intrinsic as a loop over arrays: what the accuracy table measures and the vector math tests run.

As a script it is their child process, since LLVM aborts on what it cannot select. It forks for each line of its input,
``[folder, target, [job, …]]`` in JSON, a job being ``<intrinsic>:<dtype with lanes>``, and answers with the fork's exit
code. For a job the arguments ``<folder>/<job>.npz`` are read and the results ``<folder>/<job>.npy`` written; without
arguments, the object file ``<folder>/<job>.o``. float16 and bfloat16 are uint16 bit patterns.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir as llvm_ir
from numpy.typing import NDArray

from loopwright.base.dtype import FLOAT32, FLOAT64, DType, dtype
from loopwright.base.target import Target
from loopwright.codegen.host import resolve_target
from loopwright.codegen.lanes import external
from loopwright.codegen.machine import data_layout, optimize, target_machine
from loopwright.codegen.small_floats import narrow, narrow_double, widen
from loopwright.codegen.types import memory_element, value_type
from loopwright.codegen.vector_math import emit_intrinsic
from loopwright.ir.intrinsics import INTRINSICS

SECONDS = 600
Array = NDArray[Any]
Emit = Callable[[llvm_ir.IRBuilder, list[llvm_ir.Value], DType, Target], llvm_ir.Value]


# Conversions are measured beside the intrinsics: name → (dtype of the argument, of the result, how it is emitted).
def _conversion(name: str, kind: DType) -> tuple[DType, DType, Emit] | None:
    match name:
        case "widen":
            return kind, FLOAT32, lambda b, a, k, t: widen(b, k, a[0], t)
        case "narrow":
            return FLOAT32, kind, lambda b, a, k, t: narrow(b, k, a[0], t)
        case "narrow64":
            return FLOAT64, kind, lambda b, a, k, t: narrow_double(b, k, a[0], t)
        case _:
            return None


def _signature(name: str, kind: DType) -> tuple[list[DType], DType, Emit]:
    conversion = _conversion(name, kind.element)
    if conversion:
        return [conversion[0]], conversion[1], conversion[2]
    intrinsic = INTRINSICS[name]
    result = intrinsic.result or kind.element
    return [kind.element] * intrinsic.arity, result, lambda b, a, k, t: emit_intrinsic(b, name, a, k, t)


def emit_map(name: str, kind: DType, target: Target) -> llvm_ir.Module:
    """A module with ``void map(ptr arguments…, ptr result, i64 blocks)``; a block is ``kind.lanes`` elements."""
    module = llvm_ir.Module("map")
    module.triple, module.data_layout = target.triple, data_layout(target)
    arguments, result, emit = _signature(name, kind)
    i64, pointer = llvm_ir.IntType(64), llvm_ir.PointerType()
    kinds = [pointer] * (len(arguments) + 1) + [i64]
    function = external(module, "map", llvm_ir.VoidType(), kinds)
    entry, loop, done = (function.append_basic_block(n) for n in ("entry", "loop", "done"))
    builder = llvm_ir.IRBuilder(entry)
    *sources, sink, blocks = function.args
    builder.cbranch(builder.icmp_signed(">", blocks, i64(0)), loop, done)
    builder.position_at_end(loop)
    i = builder.phi(i64)
    i.add_incoming(i64(0), entry)

    def at(base: llvm_ir.Value, element: DType) -> llvm_ir.Value:
        first = builder.mul(i, i64(kind.lanes))
        return builder.gep(base, [first], source_etype=memory_element(element))

    loaded = [
        builder.load(at(p, k), align=k.storage_bytes, typ=value_type(k.with_lanes(kind.lanes)))
        for p, k in zip(sources, arguments, strict=True)
    ]
    value = emit(builder, loaded, kind, target)
    if result.is_bool:
        byte = llvm_ir.IntType(8)
        value = builder.zext(value, byte if kind.lanes == 1 else llvm_ir.VectorType(byte, kind.lanes))
    builder.store(value, at(sink, result), align=result.storage_bytes)
    following = builder.add(i, i64(1))
    i.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, blocks), loop, done)
    builder.position_at_end(done)
    builder.ret_void()
    return module


def emit_object(name: str, kind: DType, spec: str) -> bytes:
    """The object file of the loop for a target, which need not be this machine's."""
    target = resolve_target(spec)
    machine = target_machine(target)
    return bytes(machine.emit_object(_optimised(emit_map(name, kind, target), machine)))


def _optimised(module: llvm_ir.Module, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    optimize(parsed, machine, 3)
    return parsed


def _storage(kind: DType) -> np.dtype[Any]:
    return np.dtype(np.uint16) if kind.is_float and kind.bits == 16 else kind.to_numpy()


def compile_map(name: str, kind: DType, spec: str) -> Callable[..., Array]:
    """A function from arrays to the array of results; lengths must be multiples of ``kind.lanes``."""
    target = resolve_target(spec)
    machine = target_machine(target)
    engine = llvm.create_mcjit_compiler(_optimised(emit_map(name, kind, target), machine), machine)
    engine.finalize_object()
    arguments, result, _ = _signature(name, kind)
    native = CFUNCTYPE(None, *[c_void_p] * (len(arguments) + 1), c_int64)(engine.get_function_address("map"))

    def run(*arrays: Array) -> Array:
        held = [np.ascontiguousarray(a, _storage(k)) for a, k in zip(arrays, arguments, strict=True)]
        out = np.empty(held[0].shape, _storage(result))
        assert out.size % kind.lanes == 0
        native(*(a.ctypes.data for a in held), out.ctypes.data, out.size // kind.lanes)
        return out

    run.engine = engine  # type: ignore[attr-defined]  # keeps the code alive
    return run


def fork_for(folder: Path, spec: str, jobs: list[str]) -> int:
    """The exit code of a fork that does some jobs: minus the signal that ended it, that of an alarm if it hangs."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        signal.alarm(SECONDS)
        run(folder, spec, jobs)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def run(folder: Path, spec: str, jobs: list[str]) -> None:
    for job in jobs:
        name, kind = job.split(":")
        if (folder / f"{job}.npz").exists():
            arrays = np.load(folder / f"{job}.npz")
            np.save(folder / f"{job}.npy", compile_map(name, dtype(kind), spec)(*(arrays[k] for k in arrays.files)))
        else:
            (folder / f"{job}.o").write_bytes(emit_object(name, dtype(kind), spec))


if __name__ == "__main__":
    resolve_target("native")  # forks need not find out again what this machine is
    for line in sys.stdin:
        folder, spec, jobs = json.loads(line)
        sys.stdout.write(f"{fork_for(Path(folder), spec, jobs)}\n")
        sys.stdout.flush()
