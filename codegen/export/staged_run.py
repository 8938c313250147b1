"""``run`` of an exported model of several stages, some of whose outputs have a size that only the run knows, and
``output``, which hands on those that the context keeps.

``context_words.py`` says what its context holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ...artifact.block import BornOutput
from ...artifact.extents import demand
from ...artifact.memory_table import OutputMode
from ...artifact.model import CompiledModel
from ...artifact.stage_refusals import (
    NegativeExtent,
    NoExtent,
    NoOutputMemory,
    NoStageMemory,
    StageRefusal,
    TooManyBytes,
    TooSmallExtent,
    refusals_of,
)
from ...base.dataclass import dataclass
from ..abi import CODE_BITS
from ..formulas import FormulaEmitter
from ..types import I32, I64, PTR
from .body import ENTRY, FunctionBody, Messages
from .context_words import HEAD, ContextWords
from .given import given_inputs, given_outputs
from .interface import Interface, Status, shown
from .segments import set_up_segments
from .states import StateEmitter
from .weights import WeightsImage

OUTPUT = "lw.api.output"


@dataclass(frozen=True, slots=True, eq=False)
class _LateParameter:
    """What a caller gives for an output whose size only the run knows: memory for so many elements, or null; and where
    its extents are to be written, or null."""

    output: BornOutput
    number: int
    stage: int
    elements: llvm_ir.Value
    capacity: llvm_ir.Value
    shape: llvm_ir.Value


def emit_staged_run(
    module: llvm_ir.Module,
    name: str,
    model: CompiledModel,
    interface: Interface,
    image: WeightsImage,
    messages: Messages,
) -> None:
    """``i32 run(context, inputs…, outputs…, dims…)``, where a late output is ``elements, capacity, shape``."""
    kinds: list[llvm_ir.Type] = [PTR]
    for tensor in interface.tensors:
        kinds += [PTR, I64, PTR] if tensor.rank is not None else [PTR]
    body = FunctionBody(module, name, [*kinds, *[I64] * len(interface.dims)])
    _StagedRun(body, model, ContextWords(model)).emit(interface, image, messages)


class _StagedRun:
    """Emits the function. Mutable: the position in it."""

    def __init__(self, body: FunctionBody, model: CompiledModel, words: ContextWords) -> None:
        self._body, self._model, self._words = body, model, words
        self._context = body.arguments[0]
        self._states = StateEmitter(body, model, self._context)

    def emit(self, interface: Interface, image: WeightsImage, messages: Messages) -> None:
        body, model, builder = self._body, self._model, self._body.builder
        tensors, late, given = self._arguments(interface)
        whole = {id(each.elements) for each in late}
        body.refuse_null([self._context, *(pointer for pointer in tensors if id(pointer) not in whole)])
        dims = self._states.all_dims(given)
        for dim, value in dims.items():
            negative = builder.icmp_signed("<", value, llvm_ir.Constant(I64, 0))
            body.leave_if(negative, messages.number(f"{dim} is negative"))
        table = body.at(self._context, llvm_ir.Constant(I64, HEAD))
        self._set_up(table)
        for each in late:
            self._place(table, each)
        weights = builder.load(body.field(self._context, 3), typ=PTR)
        constants = [body.at(weights, llvm_ir.Constant(I64, offset)) for offset in image.offsets]
        formulas = FormulaEmitter(builder, dims)
        pointers = self._states.all_tensors(tensors, formulas)
        body.leave_if(formulas.wrong, Status.NO_MEMORY)
        zeros = [llvm_ir.Constant(I64, 0)] * (model.frame_slots - model.layout.first_local)
        frame = body.slots([*pointers, *constants, *dims.values(), table, *zeros])
        code = body.call(ENTRY, [self._context, frame])
        self._finish(code, frame, table, late, messages)

    def _arguments(self, interface: Interface) -> tuple[list[llvm_ir.Value], list[_LateParameter], list[llvm_ir.Value]]:
        """The pointers of all tensors; late outputs, in the order of the table; and the dimensions."""
        values = iter(self._body.arguments[1:])
        tensors: list[llvm_ir.Value] = []
        triples: dict[int, tuple[llvm_ir.Value, llvm_ir.Value, llvm_ir.Value]] = {}
        positions = [*given_inputs(self._model), *given_outputs(self._model)]
        for position, tensor in zip(positions, interface.tensors, strict=True):
            tensors.append(next(values))
            if tensor.rank is not None:
                triples[position] = tensors[-1], next(values), next(values)
        stages = enumerate(self._model.body.stages)
        born = [(output, number) for number, stage in stages for output in stage.outputs]
        late = [
            _LateParameter(output, number, stage, *triples[output.number])
            for number, (output, stage) in enumerate(born)
        ]
        return tensors, late, list(values)

    def _set_up(self, table: llvm_ir.Value) -> None:
        """What the entry and ``lw.grow`` find in the context."""
        body, builder = self._body, self._body.builder
        grow = body.function_named("lw.grow", PTR, [PTR, I64, I64])
        self._store(table, 0, grow)
        self._store(table, 1, self._context)
        set_up_segments(body, self._model, self._context)
        for field, count in ((5, len(self._model.body.stages)), (6, len(self._words.late))):
            builder.store(llvm_ir.Constant(I64, count), body.field(self._context, field))

    def _place(self, table: llvm_ir.Value, late: _LateParameter) -> None:
        """Say in the table where an output is to be: in the caller's memory, or in what is kept for it."""
        builder, words = self._body.builder, self._words
        keeps = self._is_null(late.elements)
        size = self._model.outputs[late.output.number].dtype.storage_bytes
        negative = builder.icmp_signed("<", late.capacity, llvm_ir.Constant(I64, 0))
        self._body.leave_if(negative, Status.BAD_ARGUMENT)
        room = builder.mul(late.capacity, llvm_ir.Constant(I64, size))
        kept = words.kept(late.number)
        address = builder.select(keeps, self._load(table, kept, PTR), late.elements)
        modes = (llvm_ir.Constant(I64, int(mode)) for mode in (OutputMode.GROWS, OutputMode.GIVEN))
        values = address, builder.select(keeps, self._load(table, kept + 1), room), builder.select(keeps, *modes)
        for word, value in enumerate(values, words.output(late.number)):
            self._store(table, word, value)
        self._store(table, words.result(late.number), llvm_ir.Constant(I64, 0))

    def _finish(
        self,
        code: llvm_ir.Value,
        frame: llvm_ir.Value,
        table: llvm_ir.Value,
        late: Sequence[_LateParameter],
        messages: Messages,
    ) -> None:
        """Return what a code of the entry means; where it is 0, with the extents of late outputs written."""
        body, model = self._body, self._model
        builder, steps = body.builder, model.steps
        with builder.if_then(builder.icmp_signed("==", code, llvm_ir.Constant(I32, 0))):
            self._states.keep(self._formulas(frame))
            self._tell_shapes(frame, late, table)
            builder.ret(llvm_ir.Constant(I32, Status.OK))
        meanings = {
            (step << CODE_BITS) | low: messages.number(f"{function.name}: {text}")
            for step, function in enumerate(map(model.function_of, steps), 1)
            for low, text in enumerate(function.messages, 1)
        }
        for number, stage in enumerate(model.body.stages):
            for low, refusal in enumerate(refusals_of(stage), 1):
                raw = ((len(steps) + number + 1) << CODE_BITS) | low
                if isinstance(refusal, NoOutputMemory):
                    output = next(each for each in late if each.output == refusal.output)
                    with builder.if_then(builder.icmp_signed("==", code, llvm_ir.Constant(I32, raw)), likely=False):
                        self._refuse_output(frame, late, output)
                else:
                    meanings[raw] = _meaning(refusal, messages)
        body.finish(code, meanings)

    def _refuse_output(self, frame: llvm_ir.Value, late: Sequence[_LateParameter], refused: _LateParameter) -> None:
        """The caller's memory is too small, or there is none for what is kept."""
        self._body.leave_if(self._is_null(refused.elements), Status.NO_MEMORY)
        self._tell_shapes(frame, [each for each in late if each.stage <= refused.stage], None)
        self._body.builder.ret(llvm_ir.Constant(I32, Status.TOO_SMALL))

    def _tell_shapes(self, frame: llvm_ir.Value, late: Sequence[_LateParameter], table: llvm_ir.Value | None) -> None:
        """Write the extents of outputs where the caller wants them, and into the context, with where they are."""
        builder, model = self._body.builder, self._model
        formulas = self._formulas(frame)
        for each in late:
            extents = [formulas.value(extent) for extent in model.outputs[each.output.number].shape]
            if table is not None:
                address = self._load(frame, model.layout.output(each.output.number))
                self._store(table, self._words.result(each.number), address)
                for word, extent in enumerate(extents, self._words.shape(each.number)):
                    self._store(table, word, extent)
            with builder.if_then(builder.not_(self._is_null(each.shape))):
                for word, extent in enumerate(extents):
                    self._store(each.shape, word, extent)

    def _formulas(self, frame: llvm_ir.Value) -> FormulaEmitter:
        """What evaluates extents on the dimensions that the run has left."""
        numbers = self._model.numbers.items()
        dims = {name: self._load(frame, slot) for slot, name in numbers if isinstance(name, str)}
        return FormulaEmitter(self._body.builder, dims)

    def _is_null(self, pointer: llvm_ir.Value) -> llvm_ir.Value:
        return self._body.builder.icmp_unsigned("==", pointer, llvm_ir.Constant(PTR, None))

    def _load(self, words: llvm_ir.Value, number: int, kind: llvm_ir.Type = I64) -> llvm_ir.Value:
        return self._body.builder.load(self._body.word(words, number), typ=kind)

    def _store(self, words: llvm_ir.Value, number: int, value: llvm_ir.Value) -> None:
        self._body.builder.store(value, self._body.word(words, number))


def _meaning(refusal: StageRefusal, messages: Messages) -> int:
    match refusal:
        case NoExtent(birth, _):
            return messages.number(f"{birth} should be 0 or more, and no more than 2^47")
        case TooSmallExtent(least):
            return messages.number(least.demand)
        case NegativeExtent(extent):
            wanted = demand(extent)
            return messages.number(wanted or f"a tensor has the extent {shown(extent)}, which is negative")
        case TooManyBytes() | NoStageMemory() | NoOutputMemory():
            return int(Status.NO_MEMORY)


def emit_output(module: llvm_ir.Module, model: CompiledModel) -> None:
    """``i32 output(context, i32 number, ptr elements, ptr shape)``: where the last run has left a late output. Nothing
    is emitted for a model that has none."""
    words = ContextWords(model)
    if not words.late:
        return
    body = FunctionBody(module, OUTPUT, [PTR, I32, PTR, PTR])
    context, number, elements, shape = body.arguments
    body.refuse_null([context, elements, shape])
    builder = body.builder
    table = body.at(context, llvm_ir.Constant(I64, HEAD))
    for position, output in enumerate(words.late):
        own = given_outputs(model).index(output.number)
        with builder.if_then(builder.icmp_signed("==", number, llvm_ir.Constant(I32, own))):
            found = builder.load(body.word(table, words.result(position)), typ=PTR)
            body.leave_if(builder.icmp_unsigned("==", found, llvm_ir.Constant(PTR, None)), Status.BAD_ARGUMENT)
            builder.store(found, elements)
            for axis in range(len(model.outputs[output.number].shape)):
                extent = builder.load(body.word(table, words.shape(position) + axis), typ=I64)
                builder.store(extent, body.word(shape, axis))
            builder.ret(llvm_ir.Constant(I32, Status.OK))
    builder.ret(llvm_ir.Constant(I32, Status.BAD_ARGUMENT))
