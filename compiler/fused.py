"""From a fused group to native code: computes chained, the anchor's schedule applied, lowered, compiled.

The result is plain data, which goes between processes and into the cache.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from .. import te
from ..codegen.cache import compiler_version, object_cache
from ..codegen.compile import compile_module
from ..codegen.model import Choice, CompiledFunction
from ..codegen.options import CodegenOptions, Precision
from ..graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from ..graph.printer import graph_text
from ..graph.types import TensorType
from ..graph.visit import post_order
from ..ir.errors import CacheError, InternalError
from ..ir.expr import Expr
from ..ir.stmt import PrimFunc
from ..ir.target import Target
from ..lowering.default_schedule import default_schedule
from ..lowering.passes.outline_parallel import outline_parallel
from ..lowering.pipeline import lower
from ..lowering.rules.fold_order import require_order_of_definition
from ..lowering.schedule import Schedule
from ..ops.selection import Selection, select_implementation
from ..te.tensor import PlaceholderOp, Tensor
from .partition import Group, pattern_of

MAX_NAME = 80
FORMAT = 1


@dataclass(frozen=True, slots=True)
class LoweredOutput:
    """What ``lower_call`` gives: the output tensors of a call, and the implementation that computes them."""

    outputs: tuple[Tensor, ...]
    selection: Selection


def lower_call(call: Call, inputs: tuple[Tensor, ...], target: Target) -> LoweredOutput:
    """Choose an implementation of a call for a target, and compute its outputs from the input tensors."""
    selection = select_implementation(call, target)
    made = selection.chosen.compute(call.attrs, inputs, call.type)
    return LoweredOutput(made if isinstance(made, tuple) else (made,), selection)


def is_inlined_constant(node: Node) -> bool:
    """Constants of one element stand in the code; others are arguments."""
    return isinstance(node, Constant) and node.value.size == 1


def as_function(group: Group) -> Function:
    """A group as a closed function, with parameters named by position, so that equal groups print alike."""
    params = {
        node: Var(f"p{number}", node.type)
        for number, node in enumerate(n for n in group.inputs if not is_inlined_constant(n))
    }
    made: dict[Node, Node] = dict(params)
    for call in group.calls:
        args = tuple(made.get(a, a) for a in call.args)
        made[call] = replace(call, args=args, origin=())
    outputs = tuple(made[o] for o in group.outputs)
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    return Function(tuple(params.values()), body, function_name(group))


def function_name(group: Group) -> str:
    """``fused_nn_conv2d_add_nn_relu``, cut at 80 characters with a digest of the rest."""
    name = "_".join(["fused", *(re.sub(r"\W", "_", call.op.name) for call in group.calls)])
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{digest}"


def group_key(function: Function, target: Target, options: CodegenOptions) -> str:
    """A digest of all that the compiled function depends on."""
    parts = (
        graph_text(function),
        str(target),
        f"{target.l1_bytes} {target.l2_bytes}",  # schedules size their tiles by these, which str() leaves out
        options.precision,
        str(options.opt_level),
        compiler_version(),
        compiler_digest(),
        str(FORMAT),
    )
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:{part};".encode())
    return total.hexdigest()


@cache
def compiler_digest() -> str:
    """A digest of the package's own sources: what another version compiled is not ours."""
    total = hashlib.sha256()
    root = Path(__file__).parent.parent
    for folder in ("ir", "te", "lowering", "codegen", "graph", "ops", "compiler"):
        for path in sorted((root / folder).rglob("*.py")):
            total.update(str(path.relative_to(root)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def cached_group(function: Function, target: Target, options: CodegenOptions) -> CompiledFunction | None:
    """What the cache on disk has of a function, if anything."""
    stored = object_cache().get(group_key(function, target, options)) if options.cache else None
    return _from_bytes(stored) if stored is not None else None


def compile_group(function: Function, target: Target, options: CodegenOptions) -> CompiledFunction:
    """Lower and compile a closed function made by ``as_function``, or take it from the cache on disk."""
    stored = cached_group(function, target, options)
    if stored is not None:
        return stored
    symbol = f"{function.name}_{hashlib.sha256(graph_text(function).encode()).hexdigest()[:12]}"
    func, choices = lower_function(function, target, symbol, options.precision)
    code = compile_module(outline_parallel(func), target, replace(options, cache=False))
    made = CompiledFunction(function.name, code.entry, choices, code.messages, str(func), code.llvm_ir, code.object)
    if options.cache:
        object_cache().put(group_key(function, target, options), _to_bytes(made))
    return made


def lower_function(
    function: Function, target: Target, symbol: str, precision: Precision = "standard"
) -> tuple[PrimFunc, tuple[Choice, ...]]:
    """The loop nest of a closed function, scheduled by the implementation chosen for its anchor."""
    tensors: dict[Node, tuple[Tensor, ...]] = {}
    params: list[Tensor] = []
    for param in function.params:
        params.append(_placeholder(param, param.name))
        tensors[param] = (params[-1],)
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    lowered: list[LoweredOutput] = []
    for call in calls:
        inputs = tuple(_tensor(argument, tensors) for argument in call.args)
        lowered.append(lower_call(call, inputs, target))
        tensors[call] = lowered[-1].outputs
    results = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    outputs = tuple(_computed(t) for result in results for t in tensors[result])
    schedule = _schedule(calls, lowered, outputs, target)
    if precision == "strict":
        require_order_of_definition(schedule.state)
    func = lower(schedule, [*params, *outputs], symbol, target)
    choices = tuple(Choice(x.selection.op, x.selection.chosen.name, x.selection.reason) for x in lowered)
    return func, choices


def _schedule(
    calls: Sequence[Call], lowered: Sequence[LoweredOutput], outputs: tuple[Tensor, ...], target: Target
) -> Schedule:
    """The schedule of the anchor's implementation; of a function without calls, which copies, the default one."""
    if not calls:
        return default_schedule(outputs, target)
    anchor = anchor_number(calls)
    chosen = lowered[anchor].selection.chosen
    return chosen.schedule(calls[anchor].attrs, lowered[anchor].outputs, outputs, target)


def anchor_number(calls: Sequence[Call]) -> int:
    """The last call of the highest pattern: its schedule serves the function."""
    best = max(pattern_of(call) for call in calls)
    return max(number for number, call in enumerate(calls) if pattern_of(call) is best)


def _placeholder(node: Node, name: str) -> Tensor:
    kind = node.type
    if not isinstance(kind, TensorType):
        raise InternalError(f"a fused function takes tensors only, found a {kind}")
    return te.placeholder(kind.shape, kind.dtype, re.sub(r"^(?=\d|$)|[^A-Za-z0-9_]", "_", name))


def _tensor(node: Node, tensors: dict[Node, tuple[Tensor, ...]]) -> Tensor:
    match node:
        case TupleGet(value, index):
            return tensors[value][index]
        case Constant():
            if node not in tensors:
                tensors[node] = (_constant_tensor(node),)
            return tensors[node][0]
        case _:
            return tensors[node][0]


def _constant_tensor(node: Constant) -> Tensor:
    kind = node.type
    assert isinstance(kind, TensorType)
    value: Expr = te.const(node.value.reshape(-1)[0], kind.dtype)
    return te.compute(kind.shape, lambda *_: value, name="constant")


def _computed(tensor: Tensor) -> Tensor:
    """An output must be computed: a copy, where an operator hands its input on."""
    if isinstance(tensor.op, PlaceholderOp):
        return te.compute(tensor.shape, lambda *i: tensor[i], name="copy")
    return tensor


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
    fields["messages"] = tuple(fields["messages"])
    return CompiledFunction(**fields, object=data[8 + size :])
