"""Compiled models in hand and on disk: ``Library`` holds one; ``save`` and ``load_library`` keep it in one file.

The file is a zip archive without compression: ``manifest.json`` lists all else with its digest, and says what calls
what; objects and constants are members of their own. No pickle; nothing in it runs before the digests are checked.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.choice import Choice
from ..codegen.entry import KernelCall
from ..codegen.extents import extent_from_json, extent_json
from ..codegen.host import resolve_target
from ..codegen.model import CompiledFunction, CompiledModel, Intermediate, Least, ModelStep, Slice, TensorSpec
from ..ir.dtype import dtype
from ..ir.errors import LoopwrightError, ModelError, TargetError

FORMAT = 4
_MANIFEST = "manifest.json"


class Library:
    """A compiled model. ``lw.Engine(library)`` runs it; ``save`` writes it to a file."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Name, shape and dtype of each input, in order."""
        return self.model.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, shape and dtype of each output, in order."""
        return self.model.outputs

    @property
    def functions(self) -> tuple[CompiledFunction, ...]:
        """The different fused functions, each with its choices, loop nest and LLVM IR."""
        return self.model.functions

    def __repr__(self) -> str:
        specs = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<Library {self.model.name}({specs[0]}) -> ({specs[1]}), {len(self.functions)} functions>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the library to a file. It is there whole, or not at all.

        Raises ``ModelError`` where the file cannot be written.
        """
        try:
            _write_whole(self.model, Path(path))
        except OSError as error:
            raise ModelError(f"the library {os.fspath(path)} cannot be written: {error.strerror}") from error


def load_library(path: str | os.PathLike[str]) -> Library:
    """Read a library from a file. Raises ``ModelError`` if the file is damaged, foreign, or of another version."""
    if not isinstance(path, (str, os.PathLike)):
        raise ModelError(f"a library is read from the path of its file, found {path!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            return Library(_read(archive))
    except TargetError:
        raise  # says by itself what this machine lacks
    except FileNotFoundError:
        raise ModelError(f"there is no library {os.fspath(path)}") from None
    except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelError(f"{os.fspath(path)} is not a library, or is damaged: {error}") from error
    except (KeyError, TypeError, ValueError, LoopwrightError) as error:
        raise ModelError(f"{os.fspath(path)} is damaged, or made by another version: {error}") from error


def _write_whole(model: CompiledModel, path: Path) -> None:
    """Write aside, and move into place."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            _write(model, file)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(model: CompiledModel, file: Any) -> None:
    members: dict[str, bytes] = {"entry.o": model.entry_object, "entry.ll": model.entry_llvm_ir.encode()}
    functions = []
    for function in model.functions:
        fields = asdict(replace(function, object=b"", llvm_ir="", loop_ir=""))
        for key in ("object", "llvm_ir", "loop_ir"):
            del fields[key]
        functions.append(fields)
        members[f"functions/{function.symbol}.o"] = function.object
        members[f"functions/{function.symbol}.ll"] = function.llvm_ir.encode()
        members[f"functions/{function.symbol}.txt"] = function.loop_ir.encode()
    constants = []
    for number, array in enumerate(model.constants):
        constants.append({"shape": list(array.shape), "dtype": str(dtype(array.dtype))})
        members[f"constants/{number}"] = array.tobytes()
    manifest = {
        "format": FORMAT,
        "name": model.name,
        "target": str(model.target),
        "inputs": [_spec_json(s) for s in model.inputs],
        "outputs": [_spec_json(s) for s in model.outputs],
        "dims": model.dims,
        "least": [asdict(least) for least in model.least],
        "extents": [extent_json(extent) for extent in model.extents],
        "intermediates": [[extent_json(value.size), value.first, value.last] for value in model.intermediates],
        "slices": [[part.base, extent_json(part.begin)] for part in model.slices],
        "entry": model.entry,
        "functions": functions,
        "constants": constants,
        "steps": [
            {
                "function": step.function.symbol,
                "operands": step.call.operands,
                "origin": list(step.origin),
            }
            for step in model.steps
        ],
        "digests": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {_MANIFEST: json.dumps(manifest).encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name), data)


def _read(archive: zipfile.ZipFile) -> CompiledModel:
    manifest = json.load(io.TextIOWrapper(archive.open(_MANIFEST), "utf-8"))
    if manifest["format"] != FORMAT:
        raise ModelError(f"it has format {manifest['format']}, this version reads {FORMAT}")
    members = {name: _member(archive, name, digest) for name, digest in manifest["digests"].items()}
    functions = {f["symbol"]: _function(f, members) for f in manifest["functions"]}
    steps = tuple(
        ModelStep(
            functions[step["function"]],
            KernelCall(step["function"], tuple(step["operands"])),
            tuple(step["origin"]),
        )
        for step in manifest["steps"]
    )
    constants = tuple(
        np.frombuffer(members[f"constants/{number}"], dtype(c["dtype"]).to_numpy()).reshape(c["shape"])
        for number, c in enumerate(manifest["constants"])
    )
    return CompiledModel(
        manifest["name"],
        resolve_target(manifest["target"]),
        tuple(manifest["dims"]),
        tuple(Least(**least) for least in manifest["least"]),
        tuple(extent_from_json(extent) for extent in manifest["extents"]),
        tuple(_spec(s) for s in manifest["inputs"]),
        tuple(_spec(s) for s in manifest["outputs"]),
        constants,
        tuple(Intermediate(extent_from_json(size), first, last) for size, first, last in manifest["intermediates"]),
        tuple(Slice(base, extent_from_json(begin)) for base, begin in manifest["slices"]),
        steps,
        manifest["entry"],
        members["entry.o"],
        members["entry.ll"].decode(),
    )


def _member(archive: zipfile.ZipFile, name: str, digest: str) -> bytes:
    data = archive.read(name)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelError(f"{name} does not have the digest that the manifest states")
    return data


def _function(fields: dict[str, Any], members: dict[str, bytes]) -> CompiledFunction:
    base = f"functions/{fields['symbol']}"
    return CompiledFunction(
        fields["name"],
        fields["symbol"],
        tuple(fields["dims"]),
        tuple(Choice.from_json(choice) for choice in fields["choices"]),
        tuple(fields["messages"]),
        members[f"{base}.txt"].decode(),
        members[f"{base}.ll"].decode(),
        members[f"{base}.o"],
        tuple(fields["externs"]),
    )


def _spec_json(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "shape": [extent_json(e) for e in spec.shape], "dtype": str(spec.dtype)}


def _spec(fields: dict[str, Any]) -> TensorSpec:
    return TensorSpec(fields["name"], tuple(extent_from_json(e) for e in fields["shape"]), dtype(fields["dtype"]))
