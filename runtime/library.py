"""Compiled models in hand and on disk: ``Library`` holds one; ``save`` and ``load`` keep it in one file.

``artifact/section_file.py`` has the form of the file. Its content says what calls what; objects, texts and constants
are sections. No pickle; nothing in it runs before the digests of all but the constants are checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..artifact.block_json import block_from_json, block_json
from ..artifact.dimension_bounds import DimensionBounds
from ..artifact.function import CompiledFunction, TensorSpec
from ..artifact.model import CompiledModel
from ..artifact.options import Arithmetic, Precision
from ..artifact.plain_data import from_plain
from ..artifact.section_file import SectionFile, SectionList, write_sections
from ..base.brief import listed, one_line
from ..base.dataclass import dataclass
from ..base.dtype import DType, dtype
from ..base.errors import LoopwrightError, ModelError, OutOfMemoryError, TargetError
from ..base.memory import memory_errors
from ..base.output_form import OutputForm
from ..base.paths import as_path
from ..base.quantities import count_text
from ..base.state import State
from ..base.target import Target
from ..base.timing import CompileTiming
from ..base.value_form import ValueForm
from ..codegen.host import host_target
from ..codegen.object_check import check_object
from .foreign import why_not_here
from .tensor_specs import TensorSpecs

if TYPE_CHECKING:
    from .exports.export import Exported, Kind, Weights


class Library:
    """A compiled model. ``lw.Engine(library)`` runs it; ``save`` writes it to a file. ``source`` is the file of the
    model that it was compiled from, if there was one and the library is not loaded. ``timings`` are a tree of
    stages that prints as a table.

    Mutable: ``shares`` are the shares of time of the functions, by symbol, in the last profile that an engine took;
    empty before that. Views in notebooks show them."""

    def __init__(self, model: CompiledModel, source: Path | None = None, timings: CompileTiming | None = None) -> None:
        self._model = model
        self.source = source
        self._timings = timings
        self.shares: Mapping[str, float] = {}

    @property
    def model(self) -> CompiledModel:
        """What the model was compiled to, as plain data."""
        return self._model

    @property
    def timings(self) -> CompileTiming | None:
        """Where the time of the compilation went; None if the library is loaded."""
        return self._timings

    @property
    def shown(self) -> CompiledModel:
        """The model, or one without code that has the same inputs and outputs, while it is being compiled."""
        return self.model

    @property
    def is_compiled(self) -> bool:
        """Whether the code is there; always, unless the model was compiled with ``tiered=True``."""
        return True

    @property
    def compilation(self) -> Future[Library]:
        """The compilation as a future, which gives this library; done, unless the model was compiled with
        ``tiered=True``."""
        done: Future[Library] = Future()
        done.set_result(self)
        return done

    @property
    def inputs(self) -> TensorSpecs:
        """Name, dtype and shape of each input, in order and by name; dimensions that are open have names."""
        return TensorSpecs(self.shown.shown_inputs)

    @property
    def outputs(self) -> TensorSpecs:
        """Name, dtype and shape of each output, in order and by name; dimensions that are open have names."""
        return TensorSpecs(self.shown.shown_outputs)

    @property
    def states(self) -> TensorSpecs:
        """Name, dtype and shape of each state that sessions of an engine keep, by the names of the inputs."""
        return TensorSpecs(self.shown.shown_states)

    @property
    def functions(self) -> tuple[CompiledFunction, ...]:
        """The different fused functions, each with its choices, loop nest and LLVM IR."""
        return self.model.functions

    def __repr__(self) -> str:
        how = [f"{len(self.functions)} functions"]
        if self.model.precision != "standard":
            how.append(f"{self.model.precision} precision")
        if self.model.arithmetic != "fast":
            how.append(f"{self.model.arithmetic} arithmetic")
        if any(least.exactly for least in self.model.first_stage.least):
            how.append("batch-invariant")
        if self.model.states:
            how.append(count_text(len(self.model.states), "state"))
        name = one_line(self.model.name, 40)
        return f"<Library {name}({listed(self.inputs, 40)}) -> ({listed(self.outputs, 40)}), {', '.join(how)}>"

    def _repr_html_(self) -> str:
        from .library_html import library_html  # it knows libraries

        return library_html(self)

    def export(
        self,
        folder: str | os.PathLike[str],
        kind: Kind = "object",
        name: str | None = None,
        weights: Weights | None = None,
    ) -> Exported:
        """Write the model for programs without Python: code, a header of C, and perhaps a file of weights.

        ``kind`` is ``"object"`` (an object file), ``"shared"`` (a shared library, where there is a linker), or
        ``"llvm"`` (LLVM IR as text). Files and functions begin with ``name`` (default: the model's), made an identifier
        of C. ``weights`` lie ``"inside"`` the code, or ``"beside"`` it in a file, which the program maps when it makes
        a context; LLVM IR has them beside. All is compiled once more, for the library's target.
        Raises ``TargetError`` where there is no linker, or the target cannot have what is asked for; ``ModelError``
        where files cannot be written, or weights are too large to lie inside.
        """
        from .exports.export import export_model  # what runs models does without the code generator

        return export_model(self.model, folder, kind, name, weights)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the library to a file. It is there whole, or not at all.

        Raises ``ModelError`` where the file cannot be written.
        """
        sections = SectionList()
        content = model_content(self.model, sections)
        file = as_path(path)
        try:
            write_sections(file, content, sections.sections)
        except OSError as error:
            raise ModelError(f"the library {os.fspath(path)} cannot be written: {error.strerror}") from error


def load(path: str | os.PathLike[str], verify: bool = False) -> Library:
    """Read a library from a file; nothing is compiled, if this cpu has what the library was compiled for.

    Where it lacks some of that, or runs another system, the LLVM IR in the file is compiled once more, unless it names
    instructions that are missing. The result is right, and slower than a library that was compiled for this cpu.

    Constants are mapped, not read: the system fetches them when they are used, and keeps them once for all processes.
    So the file must stay as it is; ``save`` does not write into one, but puts another in its place. Damage to anything
    but the constants is found here; to constants with ``verify`` only, which reads them all. A library holds machine
    code: load those only that come from where you trust.

    Raises ``ModelError`` if the file is damaged, foreign, or of another version, and ``TargetError`` where this machine
    cannot run it; ``OutOfMemoryError`` where there is no memory for it.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ModelError(f"a library is read from the path of its file, found {path!r}")
    try:
        with memory_errors(f"loading {os.fspath(path)}"):
            with Path(path).open("rb") as opened:
                file = SectionFile(opened)
            if verify:
                file.check_all()
            model = model_of(file.content, file)
    except OutOfMemoryError:
        raise
    except FileNotFoundError:
        raise ModelError(f"there is no library {os.fspath(path)}") from None
    except (OSError, LookupError, AttributeError, TypeError, ValueError, RecursionError, LoopwrightError) as error:
        raise ModelError(f"{os.fspath(path)} is no library of this version, or is damaged: {error}") from error
    return Library(_runnable(model, os.fspath(path)))


def _runnable(model: CompiledModel, path: str) -> CompiledModel:
    """The model, or one like it for this machine."""
    problem = why_not_here(model.target)
    if problem is None:
        check_code(model, path)
        return model
    if model.target.arch != host_target().arch:
        raise TargetError(f"{path} cannot run here: {problem}")
    try:
        from .reemit import for_this_machine  # as above

        return for_this_machine(model)
    except TargetError as error:
        raise TargetError(f"{path} cannot run here: {problem}, and {error}") from None


def check_code(model: CompiledModel, path: str) -> None:
    """Raise ``ModelError`` for code that LLVM would not take for object files of the model's target; ``path`` is where
    it was found."""
    others = [function for found in model.alternatives.values() for function in found]
    codes = [(f.object, f.symbol) for f in (*model.functions, *others) if not f.is_packed]
    try:
        for code, symbol in ((model.entry_object, model.entry), *codes):
            check_object(code, model.target, symbol)
    except ModelError as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def model_content(model: CompiledModel, sections: SectionList) -> dict[str, Any]:
    """The model as JSON, with numbers of sections in place of bytes, long texts and arrays, which are added to
    ``sections``."""
    return {
        "name": model.name,
        "target": asdict(model.target) | {"features": sorted(model.target.features)},
        "inputs": [s.to_json() for s in model.inputs],
        "outputs": [s.to_json() for s in model.outputs],
        "dims": model.dims,
        "stages": block_json(model.body),
        "entry": model.entry,
        "entry_object": sections.add(model.entry_object),
        "entry_llvm_ir": sections.add(model.entry_llvm_ir.encode()),
        "functions": [_function_json(function, sections) for function in model.functions],
        "alternatives": {
            symbol: [_function_json(function, sections) for function in functions]
            for symbol, functions in model.alternatives.items()
        },
        "constants": [
            {"shape": array.shape, "dtype": str(dtype(array.dtype)), "section": sections.add(array)}
            for array in model.constants
        ],
        "precision": model.precision,
        "arithmetic": model.arithmetic,
        "forms": [None if form is None else asdict(form) for form in model.forms],
        "grouped_inputs": [asdict(form) for form in model.grouped_inputs],
        "grouped_outputs": [asdict(form) for form in model.grouped_outputs],
        "string_inputs": model.string_inputs,
        "bounds": [asdict(bounds) for bounds in model.bounds],
        "states": [asdict(state) for state in model.states],
        "expected": list(model.expected.items()),
        "repeated": model.repeated,
        "segments": model.segments,
    }


def _function_json(function: CompiledFunction, sections: SectionList) -> dict[str, Any]:
    return function.to_json() | {
        "object": sections.add(function.object),
        "llvm_ir": sections.add(function.llvm_ir.encode()),
        "loop_ir": sections.add(function.loop_ir.encode()),
        "source_text": sections.add(function.source_text.encode()),
    }


@dataclass(frozen=True, slots=True)
class _Constant:
    shape: tuple[int, ...]
    dtype: DType
    section: int


@dataclass(frozen=True, slots=True)
class _Content:
    """What ``model_content`` writes, but for the functions and the stages."""

    name: str
    target: Target
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    dims: tuple[str, ...]
    entry: str
    entry_object: int
    entry_llvm_ir: int
    constants: tuple[_Constant, ...]
    precision: Precision
    arithmetic: Arithmetic
    forms: tuple[OutputForm | None, ...]
    grouped_inputs: tuple[ValueForm, ...]
    grouped_outputs: tuple[ValueForm, ...]
    string_inputs: tuple[int, ...]
    bounds: tuple[DimensionBounds, ...]
    states: tuple[State, ...]
    expected: tuple[tuple[str, int], ...]
    repeated: tuple[tuple[int, int], ...]
    segments: int


def model_of(fields: Mapping[str, Any], file: SectionFile) -> CompiledModel:
    """The model that ``model_content`` made the fields and the sections of a file of. Raises ``LookupError``,
    ``AttributeError``, ``TypeError``, ``ValueError``, ``RecursionError`` or ``LoopwrightError`` for others."""
    content: _Content = from_plain(_Content, fields, "library")
    inputs = len(content.inputs) - bool(content.string_inputs)
    outputs = len(content.outputs) - sum(form is not None and form.kind == "bytes" for form in content.forms)
    for forms, count in ((content.grouped_inputs, inputs), (content.grouped_outputs, outputs)):
        if forms and sum(form.arrays for form in forms) != count:
            raise ModelError("library: what callers see is made of another number of arrays")
    _check_states(content)
    if not all(0 <= n < inputs and 0 <= axis < len(content.inputs[n].shape) for n, axis in content.repeated):
        raise ModelError("library: what is repeated is an axis that no input has")
    if content.segments < 0:
        raise ModelError("library: the number of growing segments is negative")
    others: Mapping[str, Any] = fields["alternatives"]
    alternatives = {symbol: tuple(_function(f, file) for f in found) for symbol, found in others.items()}
    return CompiledModel(
        content.name,
        content.target,
        content.dims,
        content.inputs,
        content.outputs,
        tuple(file.array(c.section, c.dtype.to_numpy(), c.shape) for c in content.constants),
        tuple(_function(f, file) for f in fields["functions"]),
        block_from_json(fields["stages"]),
        content.entry,
        file.section(content.entry_object),
        file.section(content.entry_llvm_ir).decode(),
        alternatives,
        content.precision,
        content.arithmetic,
        content.forms,
        content.grouped_inputs,
        content.grouped_outputs,
        content.string_inputs,
        content.bounds,
        content.states,
        dict(content.expected),
        content.repeated,
        content.segments,
    )


def _check_states(content: _Content) -> None:
    """Raise ``ModelError`` for states that are not in the model, or of which an axis is not."""
    for state in content.states:
        if not (0 <= state.input < len(content.inputs) and 0 <= state.output < len(content.outputs)):
            raise ModelError("library: a state is an input or output that the model does not have")
        rank = len(content.inputs[state.input].shape)
        if len(content.outputs[state.output].shape) != rank or not 0 <= (state.axis or 0) < max(rank, 1):
            raise ModelError("library: a state has an axis that its tensor does not have")
    for numbers in ([s.input for s in content.states], [s.output for s in content.states]):
        if len(set(numbers)) != len(numbers):
            raise ModelError("library: two states are one tensor")


def _function(fields: dict[str, Any], file: SectionFile) -> CompiledFunction:
    texts = {name: file.section(fields[name]).decode() for name in ("loop_ir", "llvm_ir", "source_text")}
    return CompiledFunction.from_json(fields | texts | {"object": file.section(fields["object"])})
