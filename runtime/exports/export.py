"""Models and kernels for programs without Python: an object, a shared library or LLVM IR, with a header of C.

``codegen/export`` has the program and the header; here they are put together with the pool of threads, and written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

from ...artifact.model import CompiledModel
from ...artifact.nest_source import SUFFIX, NestSource
from ...base.choices import is_one_of
from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError, ModelError, RuntimeArgumentError, TargetError
from ...base.paths import as_path
from ...base.target import Target
from ...codegen.abi import PARALLEL_FOR
from ...codegen.compile import CompiledCode
from ...codegen.export.body import ENTRY
from ...codegen.export.functions import (
    CREATE,
    DESTROY,
    MESSAGE,
    RUN,
    VERIFY,
    kernel_functions,
    model_functions,
)
from ...codegen.export.given import arena_bytes, check_states
from ...codegen.export.header import kernel_header, model_header
from ...codegen.export.interface import Interface, kernel_interface, model_interface
from ...codegen.export.program import link_program
from ...codegen.export.staged_run import OUTPUT
from ...codegen.export.states import FORK, RESET, STATE, TRUNCATE
from ...codegen.export.weights import MAX_INSIDE, WeightsImage, weights_image
from ...codegen.machine import feature_string, target_machine
from ...ir.stmt import PrimFunc
from ..threads.thread_pool import has_threads, serial_pool_ir, thread_pool_ir
from .linker import link_shared

Kind = Literal["object", "shared", "llvm"]
Weights = Literal["inside", "beside"]

_SHARED_SUFFIXES = {"macos": ".dylib", "windows": ".dll"}


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of an export; ``weights`` is None where they lie in ``code``, or there are none. ``sources`` are the
    loop nests that the line tables of the code speak of."""

    code: Path
    header: Path
    weights: Path | None = None
    sources: tuple[Path, ...] = ()


def export_model(
    model: CompiledModel,
    folder: str | os.PathLike[str],
    kind: Kind = "object",
    name: str | None = None,
    weights: Weights | None = None,
) -> Exported:
    """Write a model; see ``Library.export``."""
    folder = as_path(folder)
    _check_kind(kind)
    if packed := [function.name for function in model.functions if function.is_packed]:
        raise TargetError(f"{model.name} calls functions of Python, which exports do without: {', '.join(packed)}")
    check_states(model)
    interface = model_interface(model, name)
    target = model.target
    _check_target(target)
    beside = _is_beside(model, kind, weights)
    image = weights_image(model.constants)
    attach = "weights_beside.ll" if beside else "weights_inside.ll"
    nests = {f.symbol: _nest(f.source_text, folder, f.symbol) for f in model.functions if f.source_text}
    parts = [
        model_functions(model, interface, image, beside),
        _resource("export_context.ll"),
        *([_resource("export_states.ll")] if model.states else ()),
        _resource(attach),
        _platform(target),
        *dict.fromkeys([model.entry_llvm_ir, *(_in_folder(f.llvm_ir, nests.get(f.symbol)) for f in model.functions)]),
    ]
    exported = {
        CREATE: f"{interface.name}_create",
        RUN: f"{interface.name}_run",
        DESTROY: f"{interface.name}_destroy",
        MESSAGE: f"{interface.name}_message",
    }
    exported |= {VERIFY: f"{interface.name}_verify"} if beside else {}
    if model.states:
        exported |= {RESET: f"{interface.name}_reset", TRUNCATE: f"{interface.name}_truncate"}
        exported |= {STATE: f"{interface.name}_state", FORK: f"{interface.name}_fork"}
    exported |= {OUTPUT: f"{interface.name}_output"} if any(t.rank is not None for t in interface.tensors) else {}
    program = link_program(_whole(parts, target), {model.entry: ENTRY}, exported, target, kind == "llvm")
    file = f"{interface.name}.weights" if beside else None
    header = model_header(interface, target, file, arena_bytes(model))
    return _write(Path(folder), interface, header, program, kind, target, image, beside, list(nests.values()))


def export_kernel(
    func: PrimFunc,
    code: CompiledCode,
    folder: str | os.PathLike[str],
    kind: Kind = "object",
    name: str | None = None,
) -> Exported:
    """Write a kernel; see ``Kernel.export``."""
    folder = as_path(folder)
    _check_kind(kind)
    _check_target(code.target)
    if code.options.debug:
        raise LoopwrightError(f"{func.name} is a debug build, whose checks report to Python: export one without debug")
    interface = kernel_interface(func, code.externs, name)
    nest = None if code.source is None else _nest(code.source.text, folder, interface.name)
    parts = [kernel_functions(interface, code.messages, code.target), _in_folder(code.llvm_ir, nest)]
    exported = {RUN: interface.name, MESSAGE: f"{interface.name}_message"}
    program = link_program(_whole(parts, code.target), {code.entry: ENTRY}, exported, code.target, kind == "llvm")
    header = kernel_header(interface, code.target)
    return _write(
        Path(folder), interface, header, program, kind, code.target, weights_image(()), False, [nest] if nest else []
    )


def _nest(text: str, folder: str | os.PathLike[str], name: str) -> NestSource:
    """The source of line tables, beside the code."""
    return NestSource(text, Path(folder).absolute() / f"{name}{SUFFIX}")


def _in_folder(llvm_ir: str, nest: NestSource | None) -> str:
    return llvm_ir if nest is None else nest.named_in(llvm_ir)


def _check_kind(kind: object) -> None:
    if not is_one_of(kind, Kind):
        raise RuntimeArgumentError(f"an export is one of {', '.join(get_args(Kind))}, found kind={kind!r}")


def _check_target(target: Target) -> None:
    """What exports call has other types where addresses have 32 bits; of those only WebAssembly's are known."""
    if "p:32:32" in str(target_machine(target).target_data) and has_threads(target.triple):
        raise TargetError(f"exports are for targets whose addresses have 64 bits, and {target.triple} has 32")


def _is_beside(model: CompiledModel, kind: Kind, weights: object) -> bool:
    if weights is not None and not (isinstance(weights, str) and weights in get_args(Weights)):
        raise RuntimeArgumentError(f"weights are {' or '.join(get_args(Weights))}, found weights={weights!r}")
    beside = weights == "beside" or (weights is None and kind == "llvm" and bool(model.constants))
    if beside and not has_threads(model.target.triple):
        raise TargetError(
            f'weights beside are mapped, which {model.target.triple} cannot: export with weights="inside"'
        )
    if not beside and kind == "llvm" and model.constants:
        raise RuntimeArgumentError('weights stay out of the text of LLVM IR: export with weights="beside"')
    size = sum(constant.nbytes for constant in model.constants)
    if not beside and size > MAX_INSIDE:
        raise ModelError(
            f'{model.name} has {size} bytes of weights, too many for code to reach: export with weights="beside"'
        )
    return beside


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _platform(target: Target) -> str:
    """What contexts call of the library of C, whose sizes have the width of addresses."""
    size = "i32" if target.arch == "wasm32" else "i64"
    convert = f"trunc i64 %bytes to {size}" if size == "i32" else "add i64 %bytes, 0"
    return (
        f"declare ptr @aligned_alloc({size}, {size})\n"
        "declare void @free(ptr)\n"
        "define ptr @lw.allocate(i64 %bytes) {\n"
        f"  %size = {convert}\n"
        f"  %memory = call ptr @aligned_alloc({size} 64, {size} %size)\n"
        "  ret ptr %memory\n}\n"
        "define void @lw.release(ptr %memory) {\n  call void @free(ptr %memory)\n  ret void\n}\n"
    )


def _whole(parts: Sequence[str], target: Target) -> list[str]:
    """The parts, and what they call: the pool of threads, and what a system lacks."""
    found = list(parts)
    if any(PARALLEL_FOR in part for part in parts):
        found.append(thread_pool_ir(target.triple) if has_threads(target.triple) else serial_pool_ir())
    if target.system == "windows":
        found.append(_resource("windows.ll"))
    return found


def _write(
    folder: Path,
    interface: Interface,
    header: str,
    program: bytes,
    kind: Kind,
    target: Target,
    image: WeightsImage,
    beside: bool,
    nests: Sequence[NestSource],
) -> Exported:
    """Write all files aside, then move them into place. ``program`` is LLVM IR, or object code."""
    name = interface.name
    suffix = {"object": ".o", "shared": shared_suffix(target), "llvm": ".ll"}[kind]
    weights = folder / f"{name}.weights" if beside else None
    sources = tuple(folder / nest.path.name for nest in nests)
    found = Exported(folder / f"{name}{suffix}", folder / f"{name}.h", weights, sources)
    try:
        with _aside(folder) as scratch:
            code = scratch / found.code.name
            if kind == "llvm":
                code.write_bytes(_head(name, target).encode() + program)
            else:
                linked = scratch / f"{name}.o"
                linked.write_bytes(program if beside or not image.arrays else image.fill(program))
                if kind == "shared":
                    link_shared(linked, code, target)
            (scratch / found.header.name).write_text(header, encoding="utf-8")
            if found.weights is not None:
                _write_weights(scratch / found.weights.name, image)
            for nest in nests:
                (scratch / nest.path.name).write_text(nest.text, encoding="utf-8")
            for path in (found.weights, *found.sources, found.code, found.header):
                if path is not None:
                    (scratch / path.name).replace(path)
    except OSError as error:
        raise ModelError(f"the export cannot be written to {folder}: {error.strerror}") from error
    return found


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A folder for files that are not complete, on the same disk; gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_weights(path: Path, image: WeightsImage) -> None:
    with path.open("wb") as file:
        for offset, view in image.parts():
            file.write(bytes(offset - file.tell()))
            file.write(view)


def shared_suffix(target: Target) -> str:
    """How the name of a shared library ends on the target's system, with its dot."""
    return _SHARED_SUFFIXES.get(target.system, ".so")


def _head(name: str, target: Target) -> str:
    return (
        f"; {name}: it was optimized already. To compile it:\n"
        f"; llc -filetype=obj -relocation-model=pic -mcpu={target.cpu} -mattr={feature_string(target)} {name}.ll\n"
    )
