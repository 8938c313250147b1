"""The cache of whole models: a file that was compiled before is neither parsed nor planned again.

An entry is found by the bytes of the model's file, before these are read as a model, and by all that the compilation
goes by. It is a library file, whose constants are mapped. There is none where code from outside has a part in
compiling, which the key does not tell, and with ``LOOPWRIGHT_CACHE_MODELS=0``.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Self

from ..artifact.cache import disk_cache
from ..artifact.cache_entry import MODEL, About
from ..artifact.cache_key import cache_key, compiler_version, target_text
from ..artifact.model import CompiledModel
from ..artifact.section_file import Section, SectionList
from ..base.background import background_executor
from ..base.dataclass import dataclass
from ..base.errors import LoopwrightError
from ..base.granted_cpus import granted_cpus
from ..base.target import Target
from ..codegen.host import host_target
from ..compiler.model.constant_arrays import Array
from ..compiler.model.function_cache import SOURCES
from ..compiler.settings import CompileSettings
from ..graph.types import GivenShapes
from ..ops.definition.foreign_code import is_any_foreign
from ..runtime.library import check_code, model_content, model_of
from .given_states import GivenStates

VARIABLE = "LOOPWRIGHT_CACHE_MODELS"
_SOURCES = (*SOURCES, "frontend", "runtime", "api")
_PIECE = 8 << 20
"""Bytes of a file that are read and digested at a time."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it was when it was read: the digest of its bytes, and which one it was, as far as the system tells."""

    path: Path
    digest: str
    identity: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """The file; None for one that cannot be read, of which others will tell, and for what can be read once only, as
        a pipe."""
        try:
            if not path.is_file():
                return None
            with path.open("rb") as file:
                identity = _identity(os.fstat(file.fileno()))
                return cls(path, _digest(file.fileno()), identity)
        except OSError:
            return None

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is still the one that was read."""
        try:
            return _identity(self.path.stat()) == self.identity
        except OSError:
            return False


def _digest(file: int) -> str:
    """What tells the bytes of a file from others: SHA-256 of those of its pieces, which all cores compute."""
    pieces = range(0, os.fstat(file).st_size, _PIECE)
    with background_executor(min(len(pieces), granted_cpus()) or 1) as threads:
        digests = threads.map(lambda begin: hashlib.sha256(os.pread(file, _PIECE, begin)).digest(), pieces)
        return hashlib.sha256(b"".join(digests)).hexdigest()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def model_entry(
    path: Path,
    shapes: GivenShapes | None,
    settings: CompileSettings,
    batch_invariant: bool,
    state: GivenStates = None,
) -> ModelEntry | None:
    """The entry of a file compiled by these settings; None where whole models are not kept."""
    if os.environ.get(VARIABLE) == "0" or is_any_foreign() or (file := _File.of(path)) is None:
        return None
    parts = {
        "name": path.name,  # which a model may be called after
        "shapes": _plain(shapes or {}),
        "batch_invariant": batch_invariant,
        "state": sorted(state.items()) if isinstance(state, Mapping) else state,
        "layouts": settings.layouts,
        "expect": _plain(settings.expect or {}),
        "alternatives": settings.alternatives,
        "unfused": sorted(settings.unfused),
        "records": [record.to_json() for record in settings.records],
        "onnx": version("onnx"),
        "host": target_text(host_target()),  # computes what depends on constants alone
    }
    more = json.dumps(parts, default=repr)
    key = cache_key(MODEL, file.digest, settings.target, settings.options, _SOURCES, more)
    return ModelEntry(file, key, settings.target)


def _plain(given: object) -> object:
    """Shapes as JSON values, the same for those that mean the same. What are none is never compiled, and may be any."""
    match given:
        case None | str() | bytes() | bool():
            return repr(given)
        case Mapping():
            return sorted((str(name), _plain(shape)) for name, shape in given.items())
        case Sequence():
            return list(map(_plain, given))
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except (TypeError, LoopwrightError):
        return repr(given)
    return repr(None) if number == -1 else number


class ModelEntry:
    """Where the cache has, or is to have, what the file of a model is compiled to. Mutable: ``note_files`` notes
    those that it refers to."""

    def __init__(self, file: _File, key: str, target: Target) -> None:
        self._file, self._key, self._target = file, key, target
        self._beside: dict[str, _File | None] = {}
        self._writing: _Writing | None = None

    def find_model(self) -> CompiledModel | None:
        """The model, if the cache has it, and the files that it refers to are as they were."""
        cache = disk_cache()
        found = cache.sections(self._key)
        if found is None:
            return None
        try:
            for name, digest in found.content["beside"].items():
                file = self._file_beside(name)
                if file is None or file.digest != digest:
                    return None
            model = model_of(found.content["model"], found)
            check_code(model, "the entry")
        except (LookupError, AttributeError, TypeError, ValueError, RecursionError, LoopwrightError) as error:
            cache.drop(self._key, f"it is no compiled model: {error}")
            return None
        return model

    def note_files(self) -> None:
        """Note the files that the model refers to, as they are before it is compiled."""
        from ..frontend.external_files import external_files  # only models of ONNX need onnx

        self._beside = {name: self._file_beside(name) for name in external_files(self._file.path)}

    def keep_constants(self, name: str, arrays: Iterable[Array]) -> None:
        """Begin to store what a model of this name is compiled to, by its constants, in a thread of its own."""
        about = About(MODEL, name, str(self._target), compiler_version())
        self._writing = _Writing(self._key, about, arrays)

    def keep_model(self, model: CompiledModel) -> None:
        """Store what the model was compiled to, unless a file of it has changed since."""
        assert self._writing is not None
        files = (self._file, *self._beside.values())
        if all(file is not None and file.is_unchanged for file in files):
            beside = {name: file.digest for name, file in self._beside.items() if file is not None}
            self._writing.complete(model, beside)
        self.close()

    def close(self) -> None:
        """End the thread that writes; of what is not complete, nothing is left."""
        if self._writing is not None:
            self._writing.close()

    def _file_beside(self, name: str) -> _File | None:
        return _File.of(self._file.path.resolve().parent / name)


class _Writing:
    """A thread that writes an entry of the cache: the constants as they are made, the rest when all is known."""

    def __init__(self, key: str, about: About, arrays: Iterable[Array]) -> None:
        self._rest: Future[tuple[CompiledModel, Mapping[str, str]]] = Future()
        self._sections = SectionList()
        self._content: object = None
        self._thread = ThreadPoolExecutor(1)
        self._written = self._thread.submit(self._write, key, about, arrays)

    def complete(self, model: CompiledModel, beside: Mapping[str, str]) -> None:
        """Write the rest of the model, whose files have these digests, to the disk."""
        self._rest.set_result((model, beside))
        self._written.result()

    def close(self) -> None:
        """End the thread; without ``complete`` there is no entry."""
        self._rest.cancel()
        self._thread.shutdown()

    def _write(self, key: str, about: About, arrays: Iterable[Array]) -> None:
        with suppress(CancelledError):
            disk_cache().put_sections(key, about, self._all(arrays), lambda: self._content)

    def _all(self, arrays: Iterable[Array]) -> Iterator[Section]:
        for array in arrays:
            if self._rest.cancelled():
                raise CancelledError
            self._sections.add(array)
            yield array
        constants = len(self._sections.sections)
        model, beside = self._rest.result()
        self._content = {"model": model_content(model, self._sections), "beside": beside}
        yield from self._sections.sections[constants:]
