"""The states of an exported model, which its context keeps from run to run (``runtime/state_memory.py`` is what an
engine has): where a run reads and writes them, and the functions of C that reset, truncate, tell and copy them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from llvmlite import ir as llvm_ir

from ...artifact.extents import Extent
from ...artifact.function import TensorSpec
from ...artifact.model import CompiledModel
from ...artifact.stage_refusals import MAX_EXTENT
from ..formulas import FormulaEmitter
from ..types import I8, I32, I64, PTR
from .body import FunctionBody
from .context_words import EXTENTS, HEAD, IS_SET, NEXT, ContextWords
from .given import dims_of_states, given_inputs, given_outputs, grown_axis
from .interface import Status

RESET, TRUNCATE, STATE, FORK = "lw.api.reset", "lw.api.truncate", "lw.api.state", "lw.api.fork"


class StateEmitter:
    """Emits what a run does with states. Mutable: the position in the function."""

    def __init__(self, body: FunctionBody, model: CompiledModel, context: llvm_ir.Value) -> None:
        self._body, self._model = body, model
        self._words = ContextWords(model)
        self._table = body.at(context, llvm_ir.Constant(I64, HEAD))

    def all_dims(self, given: Sequence[llvm_ir.Value]) -> dict[str, llvm_ir.Value]:
        """All dimensions of a run, in the model's order: those that callers give, and those that states tell."""
        told, values = dims_of_states(self._model), iter(given)
        found: dict[str, llvm_ir.Value] = {}
        for name in self._model.dims:
            if name in told:
                number, axis = told[name]
                found[name] = self._load(self._words.state(number) + EXTENTS + axis)
            else:
                found[name] = next(values)
        return found

    def all_tensors(self, given: Sequence[llvm_ir.Value], formulas: FormulaEmitter) -> list[llvm_ir.Value]:
        """The addresses of all inputs, then those of all outputs: those that callers give, and those of states."""
        values = iter(given)
        inputs = {number: next(values) for number in given_inputs(self._model)}
        outputs = {number: next(values) for number in given_outputs(self._model)}
        read, written = self._addresses(formulas)
        found = inputs | read, outputs | written
        return [addresses[number] for addresses in found for number in range(len(addresses))]

    def _addresses(self, formulas: FormulaEmitter) -> tuple[dict[int, llvm_ir.Value], dict[int, llvm_ir.Value]]:
        """The addresses of states as inputs and as outputs, by their positions; a state without a value gets zeros.
        Leaves the function where a state does not fit the dimensions, and where there is no memory."""
        inputs: dict[int, llvm_ir.Value] = {}
        outputs: dict[int, llvm_ir.Value] = {}
        model, builder = self._model, self._body.builder
        for number, state in enumerate(model.states):
            word = self._words.state(number)
            before, after = model.inputs[state.input], model.outputs[state.output]
            self._check(word, before, formulas)
            read, written = self._size(before, formulas), self._size(after, formulas)
            room = self._larger(read, written) if state.in_place else read
            self._reserve(word, room, read)
            own = self._load(word, PTR)
            fresh = builder.icmp_signed("==", self._load(word + IS_SET), llvm_ir.Constant(I64, 0))
            with builder.if_then(fresh):
                zero = [own, llvm_ir.Constant(I8, 0), read, llvm_ir.Constant(llvm_ir.IntType(1), 0)]
                self._body.call("llvm.memset.p0.i64", zero, llvm_ir.VoidType())
            inputs[state.input] = outputs[state.output] = own
            if not state.in_place:
                self._reserve(word + NEXT, written, llvm_ir.Constant(I64, 0))
                outputs[state.output] = self._load(word + NEXT, PTR)
        return inputs, outputs

    def keep(self, formulas: FormulaEmitter) -> None:
        """What a run has written is the state from here on."""
        for number, state in enumerate(self._model.states):
            word = self._words.state(number)
            if not state.in_place:
                pairs = [(at, self._load(word + at), self._load(word + (at + NEXT) % 4)) for at in range(NEXT)]
                for at, own, other in pairs:
                    self._store(word + at, other)
                    self._store(word + at + NEXT, own)
            self._store(word + IS_SET, llvm_ir.Constant(I64, 1))
            for axis, extent in enumerate(self._model.outputs[state.output].shape):
                self._store(word + EXTENTS + axis, formulas.value(extent))

    def _check(self, word: int, spec: TensorSpec, formulas: FormulaEmitter) -> None:
        """A state that has a value must have the extents that the dimensions of this run give it."""
        builder = self._body.builder
        is_set = builder.icmp_signed("!=", self._load(word + IS_SET), llvm_ir.Constant(I64, 0))
        for axis, extent in enumerate(spec.shape):
            other = builder.icmp_signed("!=", self._load(word + EXTENTS + axis), formulas.value(extent))
            self._body.leave_if(builder.and_(is_set, other), Status.BAD_ARGUMENT)

    def _size(self, spec: TensorSpec, formulas: FormulaEmitter) -> llvm_ir.Value:
        """The bytes of a tensor. Leaves the function where they are too many."""
        builder = self._body.builder
        size = _product(formulas, spec.shape, spec.dtype.storage_bytes)
        self._body.leave_if(builder.icmp_unsigned(">", size, llvm_ir.Constant(I64, MAX_EXTENT)), Status.NO_MEMORY)
        return size

    def _larger(self, a: llvm_ir.Value, b: llvm_ir.Value) -> llvm_ir.Value:
        return self._body.builder.select(self._body.builder.icmp_signed(">", a, b), a, b)

    def _reserve(self, word: int, size: llvm_ir.Value, kept: llvm_ir.Value) -> None:
        """Have so many bytes at the address in a word, of which the first ones are as they were."""
        code = self._body.call("lw.reserve.state", [self._body.word(self._table, word), size, kept])
        self._body.leave_if(self._body.builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0)), code)

    def _load(self, word: int, kind: llvm_ir.Type = I64) -> llvm_ir.Value:
        return self._body.builder.load(self._body.word(self._table, word), typ=kind)

    def _store(self, word: int, value: llvm_ir.Value) -> None:
        self._body.builder.store(value, self._body.word(self._table, word))


def _product(formulas: FormulaEmitter, shape: tuple[Extent, ...], size: int) -> llvm_ir.Value:
    """The bytes of a box, with overflow noted as of other formulas."""
    return reduce(formulas.times, (formulas.value(extent) for extent in shape), llvm_ir.Constant(I64, size))


def emit_state_functions(module: llvm_ir.Module, model: CompiledModel, beside: bool) -> None:
    """Emit the functions of C for states: ``reset``, ``truncate``, ``state`` and ``fork``."""
    words = ContextWords(model)
    _emit_reset(module, model, words)
    _emit_truncate(module, model, words)
    _emit_state(module, model, words)
    _emit_fork(module, model, words, beside)


def _emit_reset(module: llvm_ir.Module, model: CompiledModel, words: ContextWords) -> None:
    """``i32 reset(context)``: no state has a value."""
    body = FunctionBody(module, RESET, [PTR])
    (context,) = body.arguments
    body.refuse_null([context])
    table = body.at(context, llvm_ir.Constant(I64, HEAD))
    for number, state in enumerate(model.states):
        first = words.state(number) + IS_SET
        for word in range(first, first + 1 + len(model.inputs[state.input].shape)):
            body.builder.store(llvm_ir.Constant(I64, 0), body.word(table, word))
    body.builder.ret(llvm_ir.Constant(I32, Status.OK))


def _emit_truncate(module: llvm_ir.Module, model: CompiledModel, words: ContextWords) -> None:
    """``i32 truncate(context, i64 length)``: of states that all grow, which are at least so long."""
    body = FunctionBody(module, TRUNCATE, [PTR, I64])
    context, length = body.arguments
    body.refuse_null([context])
    builder = body.builder
    table = body.at(context, llvm_ir.Constant(I64, HEAD))
    axes = [grown_axis(state) for state in model.states]
    body.leave_if(builder.icmp_signed("<", length, llvm_ir.Constant(I64, 0)), Status.BAD_ARGUMENT)
    if None in axes:
        builder.ret(llvm_ir.Constant(I32, Status.BAD_ARGUMENT))
        return
    positions = [words.state(number) + EXTENTS + (axis or 0) for number, axis in enumerate(axes)]
    lengths = [builder.load(body.word(table, position), typ=I64) for position in positions]
    for own in lengths:
        body.leave_if(builder.icmp_signed(">", length, own), Status.BAD_ARGUMENT)
    for number, (state, axis, position, own) in enumerate(zip(model.states, axes, positions, lengths, strict=True)):
        if axis:  # what is left does not lie at the beginning
            first = words.state(number)
            extents = [
                builder.load(body.word(table, first + EXTENTS + k), typ=I64)
                for k in range(len(model.inputs[state.input].shape))
            ]
            size = llvm_ir.Constant(I64, model.inputs[state.input].dtype.storage_bytes)
            inner = reduce(builder.mul, extents[axis + 1 :], size)
            outer = reduce(builder.mul, extents[:axis], llvm_ir.Constant(I64, 1))
            memory = builder.load(body.word(table, first), typ=PTR)
            arguments = [memory, outer, builder.mul(own, inner), builder.mul(length, inner)]
            body.call("lw.shorten", arguments, llvm_ir.VoidType())
        builder.store(length, body.word(table, position))
    builder.ret(llvm_ir.Constant(I32, Status.OK))


def _emit_state(module: llvm_ir.Module, model: CompiledModel, words: ContextWords) -> None:
    """``i32 state(context, i32 number, ptr elements, ptr shape)``: where a state is, and its extents."""
    body = FunctionBody(module, STATE, [PTR, I32, PTR, PTR])
    context, wanted, elements, shape = body.arguments
    body.refuse_null([context, elements, shape])
    builder = body.builder
    table = body.at(context, llvm_ir.Constant(I64, HEAD))
    for number, state in enumerate(model.states):
        word = words.state(number)
        with builder.if_then(builder.icmp_signed("==", wanted, llvm_ir.Constant(I32, number))):
            is_set = builder.load(body.word(table, word + IS_SET), typ=I64)
            body.leave_if(builder.icmp_signed("==", is_set, llvm_ir.Constant(I64, 0)), Status.BAD_ARGUMENT)
            builder.store(builder.load(body.word(table, word), typ=PTR), elements)
            for axis in range(len(model.inputs[state.input].shape)):
                builder.store(builder.load(body.word(table, word + EXTENTS + axis), typ=I64), body.word(shape, axis))
            builder.ret(llvm_ir.Constant(I32, Status.OK))
    builder.ret(llvm_ir.Constant(I32, Status.BAD_ARGUMENT))


def _emit_fork(module: llvm_ir.Module, model: CompiledModel, words: ContextWords, beside: bool) -> None:
    """``i32 fork(context, ptr other)``, with a path where weights lie beside: another context, with copies of the
    states."""
    body = FunctionBody(module, FORK, [PTR, PTR, PTR] if beside else [PTR, PTR])
    context, other = body.arguments[:2]
    body.refuse_null([context, other])
    builder = body.builder
    threads = builder.trunc(builder.load(body.field(context, 0), typ=I64), I32)
    path = body.arguments[2] if beside else llvm_ir.Constant(PTR, None)
    code = body.call("lw.api.create", [other, threads, path] if beside else [other, threads])
    body.leave_if(builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0)), code)
    made = builder.load(other, typ=PTR)
    source, target = (body.at(each, llvm_ir.Constant(I64, HEAD)) for each in (context, made))
    for number, state in enumerate(model.states):
        word, spec = words.state(number), model.inputs[state.input]
        extents = [builder.load(body.word(source, word + EXTENTS + k), typ=I64) for k in range(len(spec.shape))]
        size = reduce(builder.mul, extents, llvm_ir.Constant(I64, spec.dtype.storage_bytes))
        zero = llvm_ir.Constant(I64, 0)
        lost = body.call("lw.reserve.state", [body.word(target, word), size, zero])
        with builder.if_then(builder.icmp_signed("!=", lost, llvm_ir.Constant(I32, 0)), likely=False):
            body.call("lw.destroy", [made], llvm_ir.VoidType())
            builder.store(llvm_ir.Constant(PTR, None), other)
            builder.ret(lost)
        is_set = builder.load(body.word(source, word + IS_SET), typ=I64)
        with builder.if_then(builder.icmp_signed("!=", is_set, zero)):
            addresses = [builder.load(body.word(each, word), typ=PTR) for each in (target, source)]
            arguments = [*addresses, size, llvm_ir.Constant(llvm_ir.IntType(1), 0)]
            body.call("llvm.memcpy.p0.p0.i64", arguments, llvm_ir.VoidType())
        for at, value in enumerate((is_set, *extents), word + IS_SET):
            builder.store(value, body.word(target, at))
    builder.ret(llvm_ir.Constant(I32, Status.OK))
