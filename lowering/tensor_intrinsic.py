"""Tensor intrinsics: a small computation with code for it by hand, which ``tensorize`` puts in the place of loops.

``declare_intrinsic.py`` makes them; ``nest/match_intrinsic.py`` finds their compute in the loops of a schedule.
"""

from __future__ import annotations

import threading

from ..base.brief import listed, one_line
from ..base.dataclass import dataclass
from ..base.errors import ScheduleError
from ..ir.buffer import Buffer
from ..ir.constants import ZERO
from ..ir.expr import Axis
from ..ir.stmt import For, Stmt, Store
from ..ir.visit import walk


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorIntrinsic:
    """``views`` are the buffers that the statements are about, the output last: strides and offset are variables.

    ``declared`` is the statement for one term of the compute, for values of ``axes``; ``update`` does what the loops
    over all axes around it do, ``reset`` stores a reduction's identity.
    """

    name: str
    axes: tuple[Axis, ...]
    views: tuple[Buffer, ...]
    declared: Store
    identity: Store | None
    update: Stmt
    reset: Stmt | None

    def __repr__(self) -> str:
        views = (f"{view.name}: {view.dtype}[{', '.join(map(str, view.shape))}]" for view in self.views)
        return f"<TensorIntrinsic {one_line(self.name, 60)}({listed(views)})>"

    def nest(self, stmt: Stmt) -> Stmt:
        """The statement in loops over all axes that it mentions."""
        used = set(walk(stmt))
        for axis in reversed(self.axes):
            if axis.var in used:
                stmt = For(axis.var, ZERO, axis.extent, "serial", stmt)
        return stmt


_REGISTRY: dict[str, TensorIntrinsic] = {}
"""The intrinsics by name. Mutable, guarded by ``_LOCK``."""
_LOCK = threading.Lock()


def register_intrinsic(made: TensorIntrinsic, override: bool) -> None:
    """Keep an intrinsic under its name. Raises ``ScheduleError`` for a name that is taken, unless ``override``."""
    with _LOCK:
        if made.name in _REGISTRY and not override:
            raise ScheduleError(
                f"there is an intrinsic {made.name} already: choose another name, or pass override=True"
            )
        _REGISTRY[made.name] = made


def intrinsic_named(name: str) -> TensorIntrinsic:
    """The intrinsic that was declared under this name."""
    with _LOCK:
        known = dict(_REGISTRY)
    if name not in known:
        there_are = f"there are {', '.join(sorted(known))}" if known else "none has been declared"
        raise ScheduleError(f"there is no intrinsic {name!r}; {there_are}; lw.declare_intrinsic makes one")
    return known[name]
