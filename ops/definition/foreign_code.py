"""Code from outside that has a part in compiling: what caches must know of it, since our own sources do not tell.

Whatever is registered by other distributions, scripts or sessions is noted here with a digest of its sources at that
time. Mutable: the table of digests, which only grows.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from pathlib import Path

_OWN = __name__.partition(".ops.")[0]
"""The package itself."""
_digests: dict[object, str] = {}


def note(function: object) -> None:
    """Remember where a function that is being registered comes from, if it is not ours."""
    module = getattr(function, "__module__", None) or ""
    if module != _OWN and not module.startswith(f"{_OWN}."):
        _digests[function] = _digest(module)


def foreign_digest(*functions: object) -> str:
    """A text that tells the code of these functions from other code; empty where all of it is ours."""
    return " ".join(_digests[function] for function in functions if function in _digests)


def is_any_foreign() -> bool:
    """Whether any code from outside has a part in compiling."""
    return bool(_digests)


def _digest(module: str) -> str:
    """A digest of the module's file, and of those beside and below it if it is in a package.

    What has no file, as in a session at a prompt, is like nothing else: no other process shares what it compiles.
    """
    loaded = sys.modules.get(module)
    path = Path(getattr(loaded, "__file__", None) or "")
    if not path.is_file():
        return f"{module} {uuid.uuid4().hex}"
    files = sorted(path.parent.rglob("*.py")) if getattr(loaded, "__package__", None) else [path]
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.relative_to(path.parent).as_posix()}\n".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return f"{module} {total.hexdigest()}"
