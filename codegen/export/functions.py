"""The functions of C that an export has, as LLVM IR: what checks arguments, fills argument slots, and says what a code
means. Symbols that begin with ``lw.`` are the export's own, and get their last names when all is linked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir as llvm_ir

from ...artifact.extents import demand
from ...artifact.model import CompiledModel
from ...base.target import Target
from ..abi import CODE_BITS
from ..formulas import FormulaEmitter
from ..lanes import external
from ..machine import data_layout
from ..stage_memory import plan_stage
from ..types import I8, I32, I64, PTR
from .body import ENTRY, FunctionBody, Messages
from .context_words import ContextWords
from .given import arena_bytes
from .interface import MAX_THREADS, STATUS_TEXTS, Interface, Status, shown
from .segments import set_up_segments
from .staged_run import emit_output, emit_staged_run
from .states import StateEmitter, emit_state_functions
from .weights import WeightsImage

CREATE, RUN, DESTROY, MESSAGE = "lw.api.create", "lw.api.run", "lw.api.destroy", "lw.api.message"
VERIFY = "lw.api.verify"
"""Of weights that lie beside: ``runtime/exports/weights_beside.ll`` has it."""


def model_functions(model: CompiledModel, interface: Interface, image: WeightsImage, beside: bool) -> str:
    """``create``, ``run``, ``destroy`` and ``message`` of a model, and the place of its weights, or their mark."""
    module = _module(model.target)
    _emit_create(module, arena_bytes(model) or 0, ContextWords(model).context_bytes, beside)
    messages = Messages()
    if model.is_staged:
        emit_staged_run(module, RUN, model, interface, image, messages)
        emit_output(module, model)
    else:
        _emit_run(module, model, interface, image, messages)
    if model.states:
        emit_state_functions(module, model, beside)
    _emit_destroy(module)
    _emit_message(module, messages.texts)
    _emit_image(module, image, beside)
    return str(module)


def kernel_functions(interface: Interface, messages: Sequence[str], target: Target) -> str:
    """The function of a kernel, and ``message``."""
    module = _module(target)
    body = FunctionBody(module, RUN, [PTR] * len(interface.tensors) + [I64] * len(interface.dims) + [I32])
    *values, threads = body.arguments
    count = len(interface.tensors)
    body.refuse_null(values[:count])
    texts = Messages()
    numbers = [texts.number(text) for text in messages]
    for name, dim in zip(interface.dims, values[count:], strict=True):
        body.leave_if(_is_negative(body, dim), texts.number(f"{name} is negative"))
    below = body.builder.sub(threads, llvm_ir.Constant(I32, 1))
    strange = body.builder.icmp_unsigned(">=", below, llvm_ir.Constant(I32, MAX_THREADS))
    body.leave_if(strange, Status.BAD_ARGUMENT)
    context = body.slots([body.builder.zext(threads, I64)])
    code = body.call(ENTRY, [context, body.slots(values)])
    body.finish(code, dict(enumerate(numbers, 1)))
    _emit_message(module, texts.texts)
    return str(module)


def _module(target: Target) -> llvm_ir.Module:
    module = llvm_ir.Module("functions", context=llvm_ir.Context())
    module.triple = target.triple
    module.data_layout = data_layout(target)
    return module


def _is_negative(body: FunctionBody, value: llvm_ir.Value) -> llvm_ir.Value:
    return body.builder.icmp_signed("<", value, llvm_ir.Constant(I64, 0))


def _emit_create(module: llvm_ir.Module, arena_bytes: int, size: int, beside: bool) -> None:
    body = FunctionBody(module, CREATE, [PTR, I32, PTR] if beside else [PTR, I32])
    path = body.arguments[2] if beside else llvm_ir.Constant(PTR, None)
    arguments = [*body.arguments[:2], path, llvm_ir.Constant(I64, arena_bytes), llvm_ir.Constant(I64, size)]
    body.builder.ret(body.call("lw.create", arguments))


def _emit_destroy(module: llvm_ir.Module) -> None:
    kind = llvm_ir.FunctionType(llvm_ir.VoidType(), [PTR])
    function = llvm_ir.Function(module, kind, DESTROY)
    builder = llvm_ir.IRBuilder(function.append_basic_block("entry"))
    builder.call(external(module, "lw.destroy", llvm_ir.VoidType(), [PTR]), list(function.args))
    builder.ret_void()


def _emit_run(
    module: llvm_ir.Module, model: CompiledModel, interface: Interface, image: WeightsImage, messages: Messages
) -> None:
    """``i32 run(context, inputs…, outputs…, dims…)``: fills the slots of ``CompiledModel``, and calls its entry."""
    body = FunctionBody(module, RUN, [PTR] + [PTR] * len(interface.tensors) + [I64] * len(interface.dims))
    context, *values = body.arguments
    tensors, given = values[: len(interface.tensors)], values[len(interface.tensors) :]
    body.refuse_null([context, *tensors])
    states = StateEmitter(body, model, context)
    dims = states.all_dims(given)
    emitter = FormulaEmitter(body.builder, dims)
    _check_dims(body, model, emitter, messages)
    pointers = states.all_tensors(tensors, emitter)
    stage = model.first_stage
    memory = plan_stage(stage)
    offsets = {slot: emitter.value(offset) for slot, offset in memory.offsets.items()}
    size = emitter.value(memory.size)
    derived = [emitter.value(each.value) for each in stage.derived]
    begins = [emitter.value(part.begin) for part in stage.slices]
    if model.dims:
        body.leave_if(emitter.wrong, Status.NO_MEMORY)
        code = body.call("lw.reserve", [context, size])
        body.leave_if(body.builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0)), code)
    set_up_segments(body, model, context)
    arena = body.builder.load(body.field(context, 1), typ=PTR)
    weights = body.builder.load(body.field(context, 3), typ=PTR)
    constants = [body.at(weights, llvm_ir.Constant(I64, offset)) for offset in image.offsets]
    addresses = {slot: body.at(arena, offset) for slot, offset in offsets.items()}
    slices = [body.at(addresses[part.base], begin) for part, begin in zip(stage.slices, begins, strict=True)]
    own = *derived, *(addresses[value.slot] for value in stage.intermediates), *slices
    code = body.call(ENTRY, [context, body.slots([*pointers, *constants, *dims.values(), *own])])
    with body.builder.if_then(body.builder.icmp_signed("==", code, llvm_ir.Constant(I32, 0))):
        states.keep(emitter)
        body.builder.ret(llvm_ir.Constant(I32, Status.OK))
    meanings = {
        (step << CODE_BITS) | low: messages.number(f"{function.name}: {text}")
        for step, function in enumerate(map(model.function_of, model.steps), 1)
        for low, text in enumerate(function.messages, 1)
    }
    body.finish(code, meanings)


def _check_dims(body: FunctionBody, model: CompiledModel, emitter: FormulaEmitter, messages: Messages) -> None:
    """What an engine checks of the dimensions; that tensors have them is for the caller to see to."""
    for name in model.dims:
        body.leave_if(_is_negative(body, emitter.value(name)), messages.number(f"{name} is negative"))
    for least in model.first_stage.least:
        number = llvm_ir.Constant(I64, least.number)
        refused = body.builder.icmp_signed("!=" if least.exactly else "<", emitter.value(least.dim), number)
        body.leave_if(refused, messages.number(least.demand))
    for extent in model.first_stage.extents:
        text = demand(extent) or f"the dimensions give a tensor the extent {shown(extent)}, which is negative"
        body.leave_if(_is_negative(body, emitter.value(extent)), messages.number(text))


def _emit_message(module: llvm_ir.Module, texts: Mapping[str, int]) -> None:
    """``ptr message(i32)``: a text for each code."""
    function = llvm_ir.Function(module, llvm_ir.FunctionType(PTR, [I32]), MESSAGE)
    builder = llvm_ir.IRBuilder(function.append_basic_block("entry"))
    unknown = function.append_basic_block("unknown")
    choice = builder.switch(function.args[0], unknown)
    known = [(int(status), text) for status, text in STATUS_TEXTS.items()]
    for code, text in known + [(number, text) for text, number in texts.items()]:
        block = function.append_basic_block()
        choice.add_case(llvm_ir.Constant(I32, code), block)
        builder.position_at_end(block)
        builder.ret(_text(module, text))
    builder.position_at_end(unknown)
    builder.ret(_text(module, "this is no code of this program"))


def _text(module: llvm_ir.Module, text: str) -> llvm_ir.Value:
    data = bytearray(text.encode() + b"\0")
    kind = llvm_ir.ArrayType(I8, len(data))
    return _constant(module, module.get_unique_name("lw.text"), llvm_ir.Constant(kind, data))


def _constant(module: llvm_ir.Module, name: str, value: llvm_ir.Constant) -> llvm_ir.GlobalVariable:
    found = llvm_ir.GlobalVariable(module, value.type, name)
    found.initializer = value
    found.global_constant = True
    return found


def _emit_image(module: llvm_ir.Module, image: WeightsImage, beside: bool) -> None:
    mark_type = llvm_ir.ArrayType(I8, len(image.mark))
    mark = llvm_ir.Constant(mark_type, bytearray(image.mark))
    if beside:
        _constant(module, "lw.mark", mark)
        _constant(module, "lw.image.bytes", llvm_ir.Constant(I64, image.size))
        _constant(module, "lw.image.sum", llvm_ir.Constant(I64, image.sum()))
        return
    hole = llvm_ir.ArrayType(I8, image.size - len(image.mark))
    kind = llvm_ir.LiteralStructType([mark_type, hole])
    symbol = _constant(module, "lw.image", llvm_ir.Constant(kind, [mark, llvm_ir.Constant(hole, None)]))
    symbol.align = 64
