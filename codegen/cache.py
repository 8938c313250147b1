"""The object cache on disk: machine code by a digest of all that it depends on.

Files are written aside and moved into place, so readers in other processes see a whole entry or none. An entry carries
its own checksum; a damaged one is dropped, never trusted. Where the folder cannot be written, nothing is cached.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import platformdirs

from ..ir.target import Target
from .machine import feature_string
from .options import CodegenOptions

_log = logging.getLogger("loopwright.cache")
_MAGIC = b"lwobj1\n"
_DIGEST_BYTES = 32


def cache_folder() -> Path:
    """``LOOPWRIGHT_CACHE_DIR``, or the platform's folder for caches."""
    named = os.environ.get("LOOPWRIGHT_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("loopwright", appauthor=False))


@cache
def source_digest() -> str:
    """A digest of the sources of code generation: objects of another compiler version are not ours."""
    total = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        total.update(str(path.relative_to(folder)).encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def compiler_version() -> str:
    """What makes code of LLVM IR: another version may make other code, or IR that the other cannot read."""
    return f"{llvmlite.__version__} {llvm.llvm_version_info}"


def object_key(llvm_ir: str, target: Target, options: CodegenOptions) -> str:
    """The name of an object in the cache: a digest of the program, the target, the options and the compiler."""
    version = f"{compiler_version()} {source_digest()}"
    machine = f"{target.triple} {target.cpu} {feature_string(target)}"
    total = hashlib.sha256()
    for part in (version, machine, options.precision, str(options.opt_level), llvm_ir):
        total.update(f"{len(part)}:{part};".encode())
    return total.hexdigest()


class ObjectCache:
    """Objects in a folder. Holds no state but whether a failure to write has been reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warned = False

    def _path(self, key: str) -> Path:
        return self.folder / "objects" / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """The object, or None if there is none that is whole."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(error)
            return None
        start = len(_MAGIC) + _DIGEST_BYTES
        body = data[start:]
        if data[:start] == _MAGIC + self._checksum(key, body):
            return body
        _log.warning("dropping a damaged entry of the object cache: %s", path)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(error)
        return None

    def put(self, key: str, code: bytes) -> None:
        """Store an object; a folder that cannot be written is reported once and otherwise ignored."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + self._checksum(key, code) + code)
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._warn(error)

    def _checksum(self, key: str, code: bytes) -> bytes:
        return hashlib.sha256(key.encode() + code).digest()

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the object cache in %s is not usable, going on without it: %s", self.folder, error)


@cache
def _cache_in(folder: Path) -> ObjectCache:
    return ObjectCache(folder)


def object_cache() -> ObjectCache:
    """The cache in the folder that the environment names now."""
    return _cache_in(cache_folder())
