"""What a model takes or gives, for people and programs: name, dtype and shape of each tensor, in order, or by name."""

from __future__ import annotations

from typing import SupportsIndex, overload

from ..artifact.function import TensorSpec
from ..base.brief import listed
from ..base.errors import RuntimeArgumentError


class TensorSpecs(tuple[TensorSpec, ...]):
    """A tuple that answers names, too: ``specs[0]``, ``specs["x"]``. Printed, it has a line for each tensor.

    An unknown name is a ``RuntimeArgumentError``.

    >>> import loopwright as lw
    >>> from loopwright import te
    >>> x, mask = lw.var("x", (te.var("batch"), 64)), lw.var("mask", (64,), "bool")
    >>> engine = lw.Engine(lw.compile(lw.Function([x, mask], lw.nn.where(mask, x, x)), target="x86-64-v3"))
    >>> print(engine.inputs)
    x:    float32[batch, 64]
    mask: bool[64]
    >>> engine.inputs["x"].shape, engine.outputs.names
    (('batch', 64), ('output0',))
    """

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(spec.name for spec in self)

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> TensorSpec: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[TensorSpec, ...]: ...
    def __getitem__(self, key: str | SupportsIndex | slice) -> TensorSpec | tuple[TensorSpec, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for spec in self:
            if spec.name == key:
                return spec
        raise RuntimeArgumentError(f"there is no tensor {key!r}; there are {', '.join(self.names) or 'none'}")

    def __repr__(self) -> str:
        return f"({listed(self)})"

    def __str__(self) -> str:
        width = max((len(name) for name in self.names), default=0) + 1
        return "\n".join(f"{spec.name + ':':{width}} {spec.type_text}{spec.bounds_text}" for spec in self) or "none"
