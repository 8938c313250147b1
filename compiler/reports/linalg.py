"""Tensor expressions as MLIR of the dialects func, tensor and linalg: what is computed, before any schedule.

Each compute is a ``linalg.generic`` over its axes, in the order of need. Reads that are affine in the axes and certain
to happen are its operands; others, as those that a condition guards, are ``tensor.extract`` in its body.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dataclass import dataclass
from ...base.errors import MlirError
from ...codegen.facts import VarFacts
from ...codegen.mlir.expr import MlirExprEmitter
from ...codegen.mlir.text import Helpers, Value, Writer, module_text, shaped, type_of
from ...ir.constants import const_int
from ...ir.contents import free_vars
from ...ir.expr import Axis, Binary, Const, Expr, IfThenElse, Load, Reduce, TensorBase, TensorRead, Var
from ...ir.stmt import PrimFunc
from ...ir.visit import children
from ...te.order import operations_behind
from ...te.tensor import ComputeOp, PlaceholderOp, Tensor

_Affine = tuple[tuple[tuple[Var, int], ...], int]
"""Variables with their factors, and a number: the sum of the products and the number."""


def linalg_text(func: PrimFunc) -> str:
    """The MLIR module of what a lowered function computes, whatever its schedule: inputs in, outputs out, as tensors.

    Raises ``MlirError`` for a function that was not lowered from tensor expressions, and for operations that linalg has
    no form for: scans, externs, and reductions over ranges that differ from element to element.
    """
    tensors = tuple(t for t in func.tensors if isinstance(t, Tensor))
    if not tensors:
        raise MlirError(f"{func.name} was not lowered from tensor expressions: it has the level loops only")
    helpers = Helpers([func.name])
    try:
        return module_text([_LinalgEmitter(func.name, tensors, helpers).emit()], helpers)
    except MlirError as error:
        raise MlirError(f"{func.name}: {error}") from None


@dataclass(frozen=True, slots=True, eq=False)
class _Domain:
    """What a compute runs over: its axes, then those of its reduction, with their names in affine maps."""

    axes: tuple[Axis, ...]
    names: tuple[str, ...]

    def map(self, results: Sequence[str]) -> str:
        return f"affine_map<({', '.join(self.names)}) -> ({', '.join(results)})>"

    def number(self, var: Var) -> int | None:
        return next((k for k, axis in enumerate(self.axes) if axis.var is var), None)


class _LinalgEmitter:
    """Writes one function. Mutable: the tensors so far, and the operands of the operation at hand."""

    def __init__(self, name: str, tensors: Sequence[Tensor], helpers: Helpers) -> None:
        self.name = name
        self.inputs = [t for t in tensors if isinstance(t.op, PlaceholderOp)]
        self.outputs = [t for t in tensors if not isinstance(t.op, PlaceholderOp)]
        self.w = Writer(helpers)
        self.exprs = MlirExprEmitter(self.w, self._read, contract=False)
        self.values: dict[TensorBase, Value] = {}
        self._operands: dict[Expr, Value] = {}

    def emit(self) -> str:
        for tensor in self.inputs:
            self.values[tensor] = Value(self.w.name(tensor.name), _tensor_type(tensor))
        params = [*self.values.values(), *self._dimensions()]
        for op in _in_order(self.outputs):
            self._compute(op)
        results = [self.values[t] for t in self.outputs]
        self.w.line(f"return {_typed(results)}")
        given = ", ".join(f"{v.name}: {v.type}" for v in params)
        return self.w.function(f"func.func @{self.name}({given}) -> {_result_types(results)}")

    def _dimensions(self) -> list[Value]:
        """Gives the symbolic dimensions their values: from the shapes, or as parameters, which it returns."""
        more: list[Value] = []
        tensors = [*self.inputs, *self.outputs]
        for dim in dict.fromkeys(v for t in tensors for e in t.shape for v in free_vars(e)):
            self.exprs.facts.learn(dim, VarFacts(non_negative=True))
            found = [(t, k) for t in self.inputs for k, e in enumerate(t.shape) if e is dim]
            if found:
                value = self.values[found[0][0]]
                text = f"tensor.dim {value.name}, {self.w.index(found[0][1]).name} : {value.type}"
                self.exprs.variables[dim] = self.w.op(text, "index", dim.name)
            else:
                more.append(Value(self.w.name(dim.name), "index"))
                self.exprs.variables[dim] = more[-1]
        return more

    # One operation.

    def _compute(self, op: ComputeOp) -> None:
        if op.ragged_axes:
            names = ", ".join(axis.name for axis in op.ragged_axes)
            raise MlirError(f"{op} reduces over {names}, whose range differs from element to element: linalg has none")
        domain = _domain(op)
        reads = _operand_reads(op, domain)
        windows = _unseen(op, domain, [affine for _, affine in reads])
        maps = [domain.map([_affine_text(part, domain) for part in affine]) for _, affine in reads]
        maps += [domain.map([domain.names[k]]) for k in windows]
        maps += [domain.map(domain.names[: len(op.axis)])] * len(op.outputs)
        given = [self.values[read.tensor] for read, _ in reads]
        given += [self._empty([domain.axes[k].extent], op.outputs[0], "window") for k in windows]
        outs = [self._initial(op, tensor) for tensor in op.outputs]
        kinds = ["parallel"] * len(op.axis) + ["reduction"] * len(op.reduce_axis)
        name, results = self._results(op)
        args = [Value(self.w.name(read.tensor.name), type_of(read.dtype)) for read, _ in reads]
        args += [Value(self.w.name("window"), type_of(op.outputs[0].dtype)) for _ in windows]
        totals = [Value(self.w.name(f"{t.name}_out"), type_of(t.dtype)) for t in op.outputs]
        head, end = _heads(name, maps, kinds, given, outs, results)
        for line in head[:-1]:
            self.w.line(line)
        with self.w.region(head[-1], end), self.exprs.scope():
            self.w.label("bb0", [*args, *totals])
            self._operands = {read: arg for (read, _), arg in zip(reads, args, strict=False)}
            self._body(op, domain, totals)
        self.values.update(zip(op.outputs, results, strict=True))

    def _results(self, op: ComputeOp) -> tuple[str, list[Value]]:
        """The left side of the operation, and its results."""
        name, types = self.w.name(op.name), [_tensor_type(t) for t in op.outputs]
        if len(types) == 1:
            return name, [Value(name, types[0])]
        return f"{name}:{len(types)}", [Value(f"{name}#{k}", kind) for k, kind in enumerate(types)]

    def _initial(self, op: ComputeOp, tensor: Tensor) -> Value:
        """What the output begins with: a reduction's identity; else it is only a shape."""
        empty = self._empty(tensor.shape, tensor, f"{tensor.name}_shape")
        body = op.body[tensor.index]
        if not isinstance(body, Reduce):
            return empty
        identity = self.exprs.value(body.combiner.identity[body.index])
        types = f"ins({identity.name} : {identity.type}) outs({empty.name} : {empty.type})"
        return self.w.op(f"linalg.fill {types} -> {empty.type}", empty.type, f"{tensor.name}_init")

    def _empty(self, shape: Sequence[Expr], like: Tensor, hint: str) -> Value:
        kind = shaped("tensor", [const_int(e) for e in shape], like.dtype)
        extents = ", ".join(self.exprs.value(e).name for e in shape if const_int(e) is None)
        return self.w.op(f"tensor.empty({extents}) : {kind}", kind, hint)

    def _body(self, op: ComputeOp, domain: _Domain, totals: Sequence[Value]) -> None:
        for number, axis in enumerate(domain.axes):
            self._bind(number, axis, op, domain)
        made = (
            self._reduced(op, op.reduction, totals)
            if op.reduction is not None
            else list(map(self.exprs.value, op.body))
        )
        self.w.line(f"linalg.yield {_typed(made)}")

    def _bind(self, number: int, axis: Axis, op: ComputeOp, domain: _Domain) -> None:
        """The value of an axis, if the body asks for it other than by an operand."""
        low = const_int(axis.min)
        self.exprs.facts.learn(axis.var, VarFacts(non_negative=low is not None and low >= 0))
        if any(axis.var in _asked(body, self._operands) for body in op.body):
            place = self.w.op(f"linalg.index {number} : index", "index", domain.names[number])
            value = place if low == 0 else self.w.binary("arith.addi", place, self.exprs.value(axis.min))
            self.exprs.variables[axis.var] = value

    def _reduced(self, op: ComputeOp, reduction: Reduce, totals: Sequence[Value]) -> list[Value]:
        """The totals with one more term, in the order of the outputs."""
        if reduction.condition is None:
            return self._combined(op, reduction, totals)
        types = ", ".join(v.type for v in totals)
        condition, name = self.exprs.value(reduction.condition), self.w.name()
        left = name if len(totals) == 1 else f"{name}:{len(totals)}"
        with self.w.region(f"{left} = scf.if {condition.name} -> ({types}) {{", "} else {"), self.exprs.scope():
            self.w.line(f"scf.yield {_typed(self._combined(op, reduction, totals))}")
        with self.w.region(""):
            self.w.line(f"scf.yield {_typed(totals)}")
        names = [name] if len(totals) == 1 else [f"{name}#{k}" for k in range(len(totals))]
        return [Value(n, v.type) for n, v in zip(names, totals, strict=True)]

    def _combined(self, op: ComputeOp, reduction: Reduce, totals: Sequence[Value]) -> list[Value]:
        combiner = reduction.combiner
        order = [body.index for body in op.body if isinstance(body, Reduce)]
        for total, number in zip(totals, order, strict=True):
            self.exprs.variables[combiner.lhs[number]] = total
        for var, source in zip(combiner.rhs, reduction.sources, strict=True):
            self.exprs.variables[var] = self.exprs.value(source)
        return [self.exprs.value(combiner.results[number]) for number in order]

    def _read(self, node: Load | TensorRead) -> Value:
        if isinstance(node, Load):
            raise MlirError(f"a tensor expression reads tensors, not buffers: {node}")
        if node in self._operands:
            return self._operands[node]
        tensor = self.values[node.tensor]
        indices = ", ".join(self.exprs.value(i).name for i in node.indices)
        kind = type_of(node.dtype)
        return self.w.op(f"tensor.extract {tensor.name}[{indices}] : {tensor.type}", kind, node.tensor.name)


def _heads(
    name: str,
    maps: Sequence[str],
    kinds: Sequence[str],
    given: Sequence[Value],
    outs: Sequence[Value],
    results: Sequence[Value],
) -> tuple[list[str], str]:
    """The lines before and behind the body of a ``linalg.generic``. With several results it is in the form that has no
    syntax of its own: what MLIR writes there, xDSL 0.74 does not read."""
    aligned = ["  indexing_maps = [", *(f"    {text}," for text in maps[:-1]), f"    {maps[-1]}", "  ],"]
    if len(results) == 1:
        words = ", ".join(f'"{kind}"' for kind in kinds)
        ends = f"}}{f' ins({_typed(given)})' if given else ''} outs({_typed(outs)}) {{"
        head = [f"{name} = linalg.generic {{", *aligned, f"  iterator_types = [{words}]", ends]
        return head, f"}} -> {results[0].type}"
    words = ", ".join(f"#linalg.iterator_type<{kind}>" for kind in kinds)
    operands = [*given, *outs]
    names, types = (", ".join(getattr(v, part) for v in operands) for part in ("name", "type"))
    sizes = f"  operandSegmentSizes = array<i32: {len(given)}, {len(outs)}>"
    head = [f'{name} = "linalg.generic"({names}) <{{', *aligned, f"  iterator_types = [{words}],", sizes, "}> ({"]
    return head, f"}}) : ({types}) -> {_result_types(results)}"


def _typed(values: Sequence[Value]) -> str:
    return f"{', '.join(v.name for v in values)} : {', '.join(v.type for v in values)}"


def _result_types(values: Sequence[Value]) -> str:
    types = ", ".join(v.type for v in values)
    return f"({types})" if len(values) > 1 else types


def _tensor_type(tensor: Tensor) -> str:
    return shaped("tensor", [const_int(e) for e in tensor.shape], tensor.dtype)


def _in_order(outputs: Sequence[Tensor]) -> list[ComputeOp]:
    """The operations that the outputs need, each behind those it reads. Raises ``MlirError`` for those without a form
    in linalg."""
    ordered = operations_behind(outputs)
    for op in reversed(ordered):  # a scan before its states
        if not isinstance(op, (ComputeOp, PlaceholderOp)):
            raise MlirError(f"linalg has no form for {op}: it has computes only; the level loops has it")
    return [op for op in ordered if isinstance(op, ComputeOp)]


def _domain(op: ComputeOp) -> _Domain:
    axes = (*op.axis, *op.reduce_axis)
    names = [axis.name for axis in axes]
    plain = len(set(names)) == len(names) and all(n.isascii() and n not in _WORDS for n in names)
    return _Domain(axes, tuple(names) if plain else tuple(f"d{k}" for k in range(len(axes))))


_WORDS = ("mod", "floordiv", "ceildiv", "symbol")


def _operand_reads(op: ComputeOp, domain: _Domain) -> list[tuple[TensorRead, list[_Affine]]]:
    """The reads that are operands, with their subscripts: they happen in each iteration, affine and in bounds."""
    if op.reduction is not None and op.reduction.condition is not None:
        return []
    roots = op.body if op.reduction is None else op.reduction.sources
    found: dict[TensorRead, list[_Affine]] = {}
    seen: set[Expr] = set()
    stack: list[Expr] = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, TensorRead):
            affine = _affine_read(node, domain)
            if affine is not None:
                found[node] = affine
                continue
        inner = (node.condition,) if isinstance(node, IfThenElse) else children(node)
        stack += [c for c in reversed(inner) if not isinstance(c, Var)]  # type: ignore[misc]
    return list(found.items())


def _affine_read(read: TensorRead, domain: _Domain) -> list[_Affine] | None:
    """The subscripts, if all are affine, none is negative, and none is known to leave the tensor."""
    parts = [_affine(index, domain) for index in read.indices]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    fits = (_fits(part, extent, domain) for part, extent in zip(known, read.tensor.shape, strict=True))
    return known if all(fits) else None


def _fits(part: _Affine, extent: Expr, domain: _Domain) -> bool:
    """Whether linalg accepts the subscript for a dimension: an axis alone runs over all of it, a sum stays inside."""
    terms, offset = part
    if offset == 0 and len(terms) == 1 and terms[0][1] == 1:
        number = domain.number(terms[0][0])
        return number is not None and domain.axes[number].extent is extent
    if offset < 0 or any(factor < 0 for _, factor in terms):
        return False
    last = offset
    for var, factor in terms:
        number = domain.number(var)
        count = None if number is None else const_int(domain.axes[number].extent)
        if count is None:
            return False
        last += factor * (count - 1)
    size = const_int(extent)
    return size is not None and last < size


def _affine(index: Expr, domain: _Domain) -> _Affine | None:
    """The subscript in the coordinates of the domain, which count from 0."""
    match index:
        case Const():
            return (), int(index)
        case Var():
            number = domain.number(index)
            low = None if number is None else const_int(domain.axes[number].min)
            return None if low is None else (((index, 1),), low)
        case Binary("+" | "-" as op, a, b):
            left, right = _affine(a, domain), _affine(b, domain)
            if left is None or right is None:
                return None
            sign = 1 if op == "+" else -1
            factors = dict(left[0])
            for var, factor in right[0]:
                factors[var] = factors.get(var, 0) + sign * factor
            return tuple((v, f) for v, f in factors.items() if f), left[1] + sign * right[1]
        case Binary("*", a, Const() as factor):
            scaled = _affine(a, domain)
            times = int(factor)
            return None if scaled is None else (tuple((v, f * times) for v, f in scaled[0]), scaled[1] * times)
        case _:
            return None


def _affine_text(part: _Affine, domain: _Domain) -> str:
    terms, offset = part
    numbers = [(domain.number(var), factor) for var, factor in terms]
    texts = [domain.names[k] + (f" * {f}" if f != 1 else "") for k, f in numbers if k is not None]
    return " + ".join([*texts, *([str(offset)] if offset or not texts else [])])


def _unseen(op: ComputeOp, domain: _Domain, reads: Sequence[Sequence[_Affine]]) -> list[int]:
    """The axes whose extents no operand tells: they get an operand that is only a shape, as windows of pools do."""
    alone = {
        part[0][0][0] for read in reads for part in read if part[1] == 0 and len(part[0]) == 1 and part[0][0][1] == 1
    }
    return [k for k, axis in enumerate(domain.axes) if k >= len(op.axis) and axis.var not in alone]


def _asked(root: Expr, operands: dict[Expr, Value]) -> set[Var]:
    """The variables that an expression mentions outside of the subscripts of operands."""
    found: set[Var] = set()
    seen: set[Expr] = set()
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if node in seen or node in operands:
            continue
        seen.add(node)
        if isinstance(node, Var):
            found.add(node)
        stack += children(node)  # type: ignore[arg-type]
    return found
