"""Shared libraries from object files: by the system's compiler, one for the target, or the ziglang wheel."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from ...ir.errors import TargetError
from ...ir.target import Target

_ZIG_SYSTEMS = {"linux": "linux-gnu", "darwin": "macos", "macos": "macos"}


def link_shared(object_file: Path, library: Path, target: Target) -> None:
    """Link an object file to a shared library. Raises ``TargetError`` where there is no linker, or where it fails."""
    if target.arch.startswith("wasm") or "windows" in target.triple:
        raise TargetError(f"shared libraries for {target.triple} are not made; export an object, and link that")
    command = [*linker_for(target), "-shared", "-o", str(library), str(object_file), "-lm", "-pthread"]
    if "linux" in target.triple:
        # A library whose threads sleep in it must not be unmapped by dlclose.
        command += ["-Wl,-z,nodelete", f"-Wl,-soname,{library.name}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise TargetError(f"`{shlex.join(command)}` failed:\n{run.stderr.strip()}")


def linker_for(target: Target) -> list[str]:
    """The command of a compiler that links for the target. Raises ``TargetError`` where there is none."""
    host = llvm.get_process_triple()
    if target.arch == host.split("-", 1)[0] and _system(target.triple) == _system(host):
        named = shlex.split(os.environ.get("CC", ""))
        candidates = [named] if named else [["cc"], ["gcc"], ["clang"]]
    else:
        candidates = [[f"{target.arch}-linux-gnu-gcc"]] if _system(target.triple) == "linux" else []
    for command in candidates:
        if shutil.which(command[0]):
            return command
    system = _ZIG_SYSTEMS.get(_system(target.triple))
    if system is not None and find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", f"{target.arch}-{system}"]
    tried = ", ".join(command[0] for command in candidates) or "no compiler of the system"
    raise TargetError(
        f"there is no linker for {target.triple}: tried {tried}, and the ziglang wheel (pip install ziglang); "
        'export kind="object" and link it where there is one'
    )


def _system(triple: str) -> str:
    return next((name for name in ("linux", "darwin", "macos", "windows") if name in triple), "other")
