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

from ...base.errors import TargetError
from ...base.target import Target, system_of

_CROSS_COMPILERS = {"linux": "linux-gnu-gcc", "windows": "w64-mingw32-gcc"}
_ZIG_SYSTEMS = {"linux": "linux-gnu", "macos": "macos", "windows": "windows-gnu"}


def link_shared(object_file: Path, library: Path, target: Target) -> None:
    """Link an object file to a shared library. Raises ``TargetError`` where there is no linker, or where it fails."""
    if target.arch.startswith("wasm") or "msvc" in target.triple:
        raise TargetError(f"shared libraries for {target.triple} are not made; export an object, and link that")
    command = [*linker_for(target), "-shared", "-o", str(library), str(object_file), "-lm"]
    match target.system:
        case "linux":
            # A library whose threads sleep in it must not be unmapped by dlclose.
            command += ["-pthread", "-Wl,-z,nodelete", f"-Wl,-soname,{library.name}"]
        case "macos":
            command += ["-pthread", f"-Wl,-install_name,@rpath/{library.name}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise TargetError(f"`{shlex.join(command)}` failed:\n{run.stderr.strip()}")


def linker_for(target: Target) -> list[str]:
    """The command of a compiler that links for the target. Raises ``TargetError`` where there is none."""
    host = llvm.get_process_triple()
    if target.arch == host.split("-", 1)[0] and target.system == system_of(host):
        named = shlex.split(os.environ.get("CC", ""))
        candidates = [named] if named else [["cc"], ["gcc"], ["clang"]]
    else:
        candidates = [[f"{target.arch}-{_CROSS_COMPILERS[target.system]}"]] if target.system in _CROSS_COMPILERS else []
    for command in candidates:
        if shutil.which(command[0]):
            return command
    if target.system in _ZIG_SYSTEMS and find_spec("ziglang") is not None:
        arch = {"arm64": "aarch64"}.get(target.arch, target.arch)
        return [sys.executable, "-P", "-m", "ziglang", "cc", "-target", f"{arch}-{_ZIG_SYSTEMS[target.system]}"]
    tried = ", ".join(command[0] for command in candidates) or "no compiler of the system"
    raise TargetError(
        f"there is no linker for {target.triple}: tried {tried}, and the ziglang wheel (pip install ziglang); "
        'export kind="object" and link it where there is one'
    )
