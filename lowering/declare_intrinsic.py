"""``lw.declare_intrinsic``: makes a tensor intrinsic of what it computes and of the code for it, and tries that out.

It is declared by a compute, which says *what* it does, and by functions from buffers to statements of the loop IR,
which say *how*. ``intrinsic_check.py`` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType

from ..base.dtype import INDEX
from ..base.errors import LoopwrightError, ScheduleError, VerificationError
from ..ir.buffer import Buffer
from ..ir.build import index_var, make_buffer
from ..ir.constants import ZERO, const, const_int
from ..ir.expr import Expr, IfThenElse, Var
from ..ir.linear import linear_of
from ..ir.simplify import simplify
from ..ir.stmt import For, Launch, PrimFunc, Stmt, StmtNode, Store
from ..ir.verify import verify
from ..ir.visit import buffers_accessed, tensor_reads, walk
from ..te.tensor import ComputeOp, Tensor
from .intrinsic_check import check_intrinsic
from .nest.regions import infer
from .nest.stage_code import StageCode
from .state import initial_state
from .tensor_intrinsic import TensorIntrinsic, register_intrinsic

MAX_ITERATIONS = 1 << 16
"""Most terms that an intrinsic may compute: it is tried out in the interpreter when it is declared."""

_NONE_COMPACT: Mapping[Tensor, int] = MappingProxyType({})

Body = Callable[..., Stmt]


def declare_intrinsic(
    name: str, output: Tensor, update: Body, reset: Body | None = None, override: bool = False
) -> TensorIntrinsic:
    """Declare that ``update`` computes what ``output`` says; ``s[C].tensorize(loop, name)`` uses it from then on.

    ``output`` is a compute of constant shape over placeholders, which it reads whole, each dimension at an axis or a
    sum of axes. ``update(*inputs, output)`` takes buffers of these shapes, inputs in order of appearance, with strides
    and offsets that it must not rely on, and gives a statement: for a reduction, one that folds all terms into what the
    output holds. ``reset(output)`` stores the identity of the reduction; without it, the schedule does that.

    Both are run in the interpreter on random inputs and strides, and compared with the compute. Raises
    ``ScheduleError`` with the counterexample where they differ, and for a name that is taken, unless ``override``.
    """
    if not str(name).isidentifier():
        raise ScheduleError(f"the name of an intrinsic is an identifier, found {name!r}")
    _check_compute(name, output)
    made = make_intrinsic(name, output, update, reset)
    check_intrinsic(name, made.views, made.nest(made.declared), made.update)
    if made.reset is not None and made.identity is not None:
        check_intrinsic(name, made.views, made.nest(made.identity), made.reset)
    register_intrinsic(made, override)
    return made


def make_intrinsic(
    name: str, output: Tensor, update: Body, reset: Body | None = None, compact: Mapping[Tensor, int] = _NONE_COMPACT
) -> TensorIntrinsic:
    """What ``declare_intrinsic`` makes, neither tried out nor registered.

    ``compact`` says of tensors in how many of their last dimensions elements lie side by side in memory, as code may
    rely on then: a stage whose elements lie otherwise does not match.
    """
    inputs = output.op.inputs
    views = tuple(_view(t.name, t, compact.get(t, 0)) for t in (*inputs, output))
    declared, identity = _declared(output, dict(zip((*inputs, output), views, strict=True)))
    made = TensorIntrinsic(
        name,
        (*output.op.axis, *output.op.reduce_axis),
        views,
        declared,
        identity,
        _statement(name, "update", update, views, views[-1]),
        None if reset is None else _statement(name, "reset", reset, views[-1:], views[-1]),
    )
    if made.reset is not None and identity is None:
        raise ScheduleError(f"intrinsic {name}: reset stores the identity of a reduction, and its compute is none")
    return made


def _check_compute(name: str, output: Tensor) -> None:
    op = getattr(output, "op", None)
    if not isinstance(op, ComputeOp) or len(op.outputs) != 1:
        raise ScheduleError(f"intrinsic {name}: what it does is said by a compute with one output, found {output!r}")
    for tensor in op.inputs:
        if isinstance(tensor.op, ComputeOp):
            raise ScheduleError(f"intrinsic {name}: its compute reads placeholders only, found the compute {tensor!r}")
    extents = [const_int(e) for e in (*(a.extent for a in (*op.axis, *op.reduce_axis)), *_all_shapes(op))]
    numbers = [e for e in extents if e is not None and e > 0]
    if len(numbers) < len(extents) or prod(numbers[: len(op.axis) + len(op.reduce_axis)]) > MAX_ITERATIONS:
        raise ScheduleError(
            f"intrinsic {name}: its shapes are positive constants, and it has at most {MAX_ITERATIONS} terms"
        )
    reduction = op.reduction
    if any(a.min is not ZERO for a in op.reduce_axis):
        raise ScheduleError(f"intrinsic {name}: its reduction axes begin at 0")
    conditional = any(isinstance(node, IfThenElse) for body in op.body for node in walk(body))
    if conditional or (reduction is not None and reduction.condition is not None):
        raise ScheduleError(
            f"intrinsic {name}: its compute has no conditions on what is read, for its code may read all; use te.select"
        )
    _check_reads(name, op)


def _all_shapes(op: ComputeOp) -> list[Expr]:
    return [extent for tensor in op.inputs for extent in tensor.shape]


def _check_reads(name: str, op: ComputeOp) -> None:
    """Each dimension of what is read is at a sum of axes, each once, and is read from its begin to its end."""
    extent_of = {axis.var: const_int(axis.extent) or 0 for axis in (*op.axis, *op.reduce_axis)}
    for body in op.body:
        for read in tensor_reads(body):
            seen: set[Var] = set()
            for index, extent in zip(read.indices, read.tensor.shape, strict=True):
                form = linear_of(simplify(index))
                axes = [t.factors[0] for t in form.terms.values() if t.coefficient == 1 and len(t.factors) == 1]
                own = [a for a in axes if isinstance(a, Var) and a in extent_of and a not in seen]
                seen.update(own)
                whole = 1 + sum(extent_of[a] - 1 for a in own) == const_int(extent)
                if len(own) != len(form.terms) or form.constant or not whole:
                    raise ScheduleError(
                        f"intrinsic {name}: it reads {read}, expected sums of axes, each axis in one index, that run "
                        f"over the whole of {read.tensor!r}"
                    )


def _view(name: str, tensor: Tensor, compact: int) -> Buffer:
    strides: list[Expr] = []
    step = 1
    for k in reversed(range(tensor.ndim)):
        inner = tensor.ndim - k <= compact
        strides.insert(0, const(step, INDEX) if inner else index_var(f"{name}_stride{k}"))
        step *= const_int(tensor.shape[k]) or 1
    return make_buffer(name, tensor.shape, tensor.dtype, strides=strides, elem_offset=index_var(f"{name}_offset"))


def _declared(output: Tensor, buffers: dict[Tensor, Buffer]) -> tuple[Store, Store | None]:
    """The statement of the naive nest of the compute, on the views, for the values of its axes; and of its identity."""
    state = initial_state((output,))
    known = infer(state)
    stage = state.stage_of(output)
    loops = known.loops[stage.name]
    values = {loop: axis.var for loop, axis in stage.axis_of.items()}
    known = replace(known, loops={stage.name: replace(loops, values=values)})
    code = StageCode(state, known, buffers)
    update = simplify(code.update(stage))
    reduction = known.reduction(stage)
    identity = None if reduction is None else code.init(stage, reduction.combiner.identity, {})
    assert isinstance(update, Store)
    assert identity is None or isinstance(identity, Store)
    return update, identity


def _statement(name: str, role: str, body: Body, views: Sequence[Buffer], output: Buffer) -> Stmt:
    """What a function makes of the views, checked to be legal: it stores to the output only."""
    if not callable(body):
        raise ScheduleError(f"intrinsic {name}: {role} is a function from buffers to a statement, found {body!r}")
    try:
        stmt = body(*views)
    except LoopwrightError as error:
        raise ScheduleError(f"intrinsic {name}: {role} fails: {error}") from error
    if not isinstance(stmt, StmtNode):
        raise ScheduleError(f"intrinsic {name}: {role} gave {stmt!r}, expected a statement of the loop IR")
    try:
        verify(PrimFunc(f"{name}_{role}", tuple(views), stmt, (output,)))
    except VerificationError as error:
        raise ScheduleError(f"intrinsic {name}: {role} is not legal: {error.problem}") from error
    if any(isinstance(node, Launch) or (isinstance(node, For) and node.kind == "parallel") for node in walk(stmt)):
        raise ScheduleError(f"intrinsic {name}: {role} has a parallel loop; it runs inside the loops of a schedule")
    if any(b.data is view.data and b is not view for b in buffers_accessed(stmt) for view in views):
        raise ScheduleError(f"intrinsic {name}: {role} accesses memory through the buffers that it was given only")
    return stmt
