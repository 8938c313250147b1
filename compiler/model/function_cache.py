"""The cache of compiled functions: the last used ones in memory, all on disk.

``FunctionCache`` is mutable, under a lock; there is one a process.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from ...artifact.cache import DiskCache, disk_cache
from ...artifact.cache_entry import About
from ...artifact.cache_key import cache_key, compiler_version
from ...artifact.extents import evaluate
from ...artifact.function import CompiledFunction
from ...artifact.function_bytes import from_bytes, to_bytes
from ...base.errors import ModelError
from ...base.target import Target
from ...codegen.object_check import check_object
from ...graph.node import Call, Function
from ...graph.structural import graph_hash
from ...graph.types import leaf_types
from ...graph.visit import post_order
from ...ops.definition.registry import Op
from ...ops.definition.strategy import foreign_code
from ..fusion.closed_function import entry_symbol
from ..passes.trial_extents import LARGE
from ..selection.workload import workloads_of
from ..settings import CompileSettings
from ..symbols import symbols_of

KIND = "function"
MEMORY_ENTRIES = 256
"""Most functions kept in memory, the last used ones."""
SOURCES = ("base", "ir", "te", "lowering", "schedules", "artifact", "codegen", "graph", "ops", "compiler")
"""The folders whose code has a part in what is compiled: those that the compiler imports, by way of others as well."""
_MOST = 1 << 62


def function_key(function: Function, settings: CompileSettings) -> str:
    """A digest of all that a compiled function depends on; names do not count, and of records those of its calls."""
    target = settings.target
    known = settings.records.digest(workloads_of(function), target)
    more = f"{_foreign_code(function, target)}{known}"
    return cache_key(KIND, graph_hash(function), target, settings.options, SOURCES, more)


def _foreign_code(function: Function, target: Target) -> str:
    """What code from outside has a part in the function's calls."""
    ops = {node.op.name: node.op for node in post_order(function.body) if isinstance(node, Call)}
    codes = {name: foreign_code(op, target) for name, op in sorted(ops.items()) if isinstance(op, Op)}
    return " ".join(f"{name}: {code};" for name, code in codes.items() if code)


class CacheInfo(NamedTuple):
    """How often functions were found in memory, on disk, or not at all; how many are in memory, and at most."""

    memory_hits: int
    disk_hits: int
    misses: int
    entries: int
    limit: int


class FunctionCache:
    """Compiled functions by key. Least recently used ones leave memory when it is full."""

    def __init__(self, disk: Callable[[], DiskCache], limit: int = MEMORY_ENTRIES) -> None:
        self._disk = disk
        self._limit = limit
        self._memory: OrderedDict[str, CompiledFunction] = OrderedDict()
        self._hits = {"memory": 0, "disk": 0, "none": 0}
        self._lock = threading.Lock()

    def get(self, key: str) -> CompiledFunction | None:
        """The function, from memory or disk; None if neither has it."""
        with self._lock:
            found = self._memory.get(key)
            if found is not None:
                self._memory.move_to_end(key)
                self._hits["memory"] += 1
                return found
        found = self._from_disk(key)
        with self._lock:
            self._hits["none" if found is None else "disk"] += 1
        if found is not None:
            self.keep(key, found)
        return found

    def find(self, key: str, function: Function, target: Target) -> CompiledFunction | None:
        """The entry, if it can be of that function; otherwise it is dropped."""
        found = self.get(key)
        if found is None:
            return None
        try:
            _check_fit(found, function, target)
        except ModelError as error:
            with self._lock:
                self._memory.pop(key, None)
            self._disk().drop(key, str(error))
            return None
        return found

    def keep(self, key: str, function: CompiledFunction) -> None:
        """Keep a function in memory."""
        with self._lock:
            self._memory[key] = function
            self._memory.move_to_end(key)
            while len(self._memory) > self._limit:
                self._memory.popitem(last=False)

    def put(self, key: str, function: CompiledFunction, target: Target) -> None:
        """Keep a function in memory and on disk."""
        self.keep(key, function)
        about = About(KIND, function.name, str(target), compiler_version())
        self._disk().put(key, about, to_bytes(function))

    def info(self) -> CacheInfo:
        """How often functions were found since the cache was made, and how full its memory is."""
        with self._lock:
            hits = self._hits
            return CacheInfo(hits["memory"], hits["disk"], hits["none"], len(self._memory), self._limit)

    def clear(self) -> None:
        """Forget what is in memory."""
        with self._lock:
            self._memory.clear()

    def _from_disk(self, key: str) -> CompiledFunction | None:
        disk = self._disk()
        stored = disk.get(key)
        if stored is None:
            return None
        try:
            return from_bytes(stored)
        except (ValueError, RecursionError, ModelError) as error:
            disk.drop(key, f"it is no compiled function: {error}")
            return None


function_cache = FunctionCache(disk_cache)


def _check_fit(found: CompiledFunction, function: Function, target: Target) -> None:
    """Raise ``ModelError`` for what cannot have been compiled of a closed function. Files may hold anything."""
    kinds = [kind for node in (*function.params, function.body) for kind in leaf_types(node.type)]
    same = len(found.arguments) == len(kinds) and all(
        spec.dtype is kind.dtype and len(spec.shape) == len(kind.shape)
        for spec, kind in zip(found.arguments, kinds, strict=True)
    )
    dims = {symbol.name for symbol in symbols_of(kinds)}
    positions = () if found.call is None else found.call.operands
    if found.symbol != entry_symbol(function) or not same or not dims.issuperset(found.dims):
        raise ModelError(f"it was not compiled of {function.name}")
    if any(position is not None and not 0 <= position < len(kinds) for position in positions):
        raise ModelError("its call has operands that are no arguments")
    _check_extents(found)
    check_object(found.object, target, found.symbol)


def _check_extents(found: CompiledFunction) -> None:
    """Raise ``ModelError`` if an extent is of dimensions that the function does not have, or can be no number of
    bytes or operations. With open dimensions the size is not judged: it is negative where a window does not fit."""
    dims = {name: LARGE + number for number, name in enumerate(found.dims)}
    for extent in (found.operations, found.traffic, found.heap_once, found.heap_each):
        try:
            size = evaluate(extent, dims)
            fits = bool(dims) or 0 <= size < _MOST
        except (KeyError, ZeroDivisionError):
            fits = False
        if not fits:
            raise ModelError(f"its extent {str(extent)!r} cannot be")
