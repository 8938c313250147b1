"""A closed function compiled: lowered and made native code, or taken from the cache on disk.

The result is plain data, which goes between processes and into the cache.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace

from ..codegen.abi import symbolic_dims
from ..codegen.cache import object_cache
from ..codegen.compile import compile_module
from ..codegen.model import Choice, CompiledFunction
from ..codegen.options import CodegenOptions
from ..graph.node import Function
from ..graph.printer import graph_text
from ..ir.errors import CacheError
from ..ir.target import Target
from ..lowering.passes.outline_parallel import outline_parallel
from .function_key import FORMAT, function_key
from .lower_function import lower_function


def cached_function(function: Function, target: Target, options: CodegenOptions) -> CompiledFunction | None:
    """What the cache on disk has of a function, if anything."""
    stored = object_cache().get(function_key(function, target, options)) if options.cache else None
    return _from_bytes(stored) if stored is not None else None


def compile_function(function: Function, target: Target, options: CodegenOptions) -> CompiledFunction:
    """Lower and compile a closed function made by ``as_function``, or take it from the cache on disk."""
    stored = cached_function(function, target, options)
    if stored is not None:
        return stored
    symbol = f"{function.name}_{hashlib.sha256(graph_text(function).encode()).hexdigest()[:12]}"
    func, choices = lower_function(function, target, symbol, options.precision)
    code = compile_module(outline_parallel(func), target, replace(options, cache=False))
    dims = tuple(dim.name for dim in symbolic_dims(func))
    made = CompiledFunction(
        function.name, code.entry, dims, choices, code.messages, str(func), code.llvm_ir, code.object, code.externs
    )
    if options.cache:
        object_cache().put(function_key(function, target, options), _to_bytes(made))
    return made


def _to_bytes(function: CompiledFunction) -> bytes:
    fields = asdict(function)
    code: bytes = fields.pop("object")
    header = json.dumps({"format": FORMAT, **fields}).encode()
    return len(header).to_bytes(8, "little") + header + code


def _from_bytes(data: bytes) -> CompiledFunction:
    size = int.from_bytes(data[:8], "little")
    fields = json.loads(data[8 : 8 + size])
    if fields.pop("format") != FORMAT:
        raise CacheError("an entry of the cache has another format")
    fields["choices"] = tuple(Choice(**choice) for choice in fields["choices"])
    for name in ("dims", "messages", "externs"):
        fields[name] = tuple(fields[name])
    return CompiledFunction(**fields, object=data[8 + size :])
