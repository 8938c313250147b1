"""Keys of the cache: a digest of all that a result depends on, so that a change of any of it is another entry."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

from ..base.target import Target
from .options import CodegenOptions

_PACKAGE = Path(__file__).parent.parent


def cache_key(
    kind: str, program: str, target: Target, options: CodegenOptions, folders: tuple[str, ...], more: str = ""
) -> str:
    """The key of what ``program``, a text or a digest of it, is compiled to.

    ``kind`` tells apart what different stages make of a program, ``folders`` are those whose sources have a part in it,
    and ``more`` is whatever else it depends on.
    """
    parts = (
        kind,
        program,
        target_text(target),
        repr(replace(options, cache=True)),
        compiler_version(),
        sources_digest(folders),
        more,
    )
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:{part};".encode())
    return total.hexdigest()


def target_text(target: Target) -> str:
    """All fields of a target: schedules go by some that ``str()`` leaves out, such as cache sizes and keys."""
    values = ((field.name, getattr(target, field.name)) for field in fields(target))
    return " ".join(f"{name}={sorted(value) if isinstance(value, frozenset) else value}" for name, value in values)


def compiler_version() -> str:
    """What makes code of LLVM IR: another version may make other code, or IR that the other cannot read."""
    import llvmlite
    import llvmlite.binding as llvm

    return f"{llvmlite.__version__} {llvm.llvm_version_info}"


@cache
def sources_digest(folders: tuple[str, ...]) -> str:
    """A digest of the package's own sources in these folders: what another version of them compiled is not ours."""
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            total.update(f"{path.relative_to(_PACKAGE).as_posix()}\n".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
