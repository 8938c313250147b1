"""Layouts: the order in which the axes of a tensor stand in memory, and which of them are cut into blocks.

    layout ::= part…            "NCHW", "NHWC", "NCHW16c", "OIHW4i16o"
    part   ::= LETTER           an axis, named by a capital letter
             | number letter    a block of so many neighbours on the axis of that letter

An axis with blocks is written as digits: element c of C in ``NCHW16c`` is at ``c // 16`` on C and ``c % 16`` on c. Of
several blocks of one axis the first has the higher digit. Blocks divide extents: where they do not, a tensor has more
elements (``Layout.filled``).
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.aligned import aligned
from ..base.dataclass import dataclass
from ..base.errors import TypeInferenceError
from ..base.intern import Interned
from ..ir.constants import const_int
from ..ir.expr import Expr, ExprLike
from ..ir.makers import as_index
from ..ir.simplify import simplify

MOST_AXES = len(string.ascii_uppercase)
"""A layout has no letters for more."""
_OF_IMAGES = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
_PART = re.compile(r"([A-Z])|(\d+)([a-z])")


@dataclass(frozen=True, slots=True)
class LayoutAxis:
    """One axis of a tensor in memory: of an axis ``name`` (a capital letter) all, or what blocks leave of it; or a
    ``block`` of so many of its elements."""

    name: str
    block: int | None = None

    def __str__(self) -> str:
        return self.name if self.block is None else f"{self.block}{self.name.lower()}"


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Layout(metaclass=Interned):
    """A layout, from its text. Equal layouts are one object. Raises ``TypeInferenceError`` for a malformed text."""

    text: str
    axes: tuple[LayoutAxis, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", _parse(self.text))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Layout({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.text,)

    @classmethod
    def of_rank(cls, rank: int) -> Layout:
        """The layout of a tensor of at most ``MOST_AXES`` axes, named as an image's where it has as many."""
        return cls(_OF_IMAGES.get(rank, string.ascii_uppercase[:rank]))

    def renamed(self, names: Mapping[str, str]) -> Layout:
        """The layout whose axes have other names, which ``names`` gives for each, blocks being named as they are."""
        return Layout("".join(str(LayoutAxis(names[axis.name], axis.block)) for axis in self.axes))

    @property
    def ndim(self) -> int:
        """The number of axes in memory, blocks counted apart."""
        return len(self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The axes by name, without blocks, in order."""
        return tuple(axis.name for axis in self.axes if axis.block is None)

    @property
    def primal(self) -> Layout:
        """The layout without its blocks."""
        return Layout("".join(self.names))

    def without(self, names: Collection[str]) -> Layout:
        """The layout that is left when axes go, with their blocks; some axis must stay."""
        return Layout("".join(str(axis) for axis in self.axes if axis.name not in names))

    @property
    def is_blocked(self) -> bool:
        """Whether an axis is cut into blocks."""
        return any(axis.block is not None for axis in self.axes)

    def factor(self, name: str) -> int:
        """The product of the blocks of an axis; 1 if it has none."""
        self.position(name)
        return math.prod(self.blocks(name))

    def blocks(self, name: str) -> tuple[int, ...]:
        """The blocks of an axis, the highest digit first."""
        return tuple(axis.block for axis in self.axes if axis.name == name and axis.block is not None)

    def position(self, name: str) -> int:
        """Where an axis (not its blocks) stands. Raises ``TypeInferenceError`` if there is none of that name."""
        for number, axis in enumerate(self.axes):
            if axis.name == name and axis.block is None:
                return number
        raise TypeInferenceError(f"the layout {self} has no axis {name}")

    def digits(self, name: str) -> tuple[int, ...]:
        """Where an axis and its blocks stand, the highest digit first."""
        own = self.position(name)
        return (own, *(n for n, axis in enumerate(self.axes) if axis.name == name and axis.block is not None))

    def extents(self, shape: Sequence[ExprLike]) -> dict[str, Expr]:
        """How many elements each axis of a tensor of this shape has, by name, blocks included.

        Raises ``TypeInferenceError`` for a shape of another rank, or whose blocks are not those of the layout.
        """
        if len(shape) != self.ndim:
            raise TypeInferenceError(f"the layout {self} has {self.ndim} axes, the shape {_shown(shape)} {len(shape)}")
        for axis, extent in zip(self.axes, shape, strict=True):
            if axis.block is not None and const_int(as_index(extent)) != axis.block:
                raise TypeInferenceError(
                    f"the layout {self} has blocks of {axis}, the shape {_shown(shape)} has {extent}"
                )
        return {name: _times(as_index(shape[self.position(name)]), self.factor(name)) for name in self.names}

    def shape(self, extents: Mapping[str, ExprLike]) -> tuple[Expr, ...]:
        """The shape of a tensor whose axes have these extents.

        Raises ``TypeInferenceError`` where a block does not divide its extent, for certain.
        """
        return tuple(
            as_index(axis.block) if axis.block is not None else self._counted(axis.name, as_index(extents[axis.name]))
            for axis in self.axes
        )

    def _counted(self, name: str, extent: Expr) -> Expr:
        factor = self.factor(name)
        if not _is_multiple(extent, factor):
            raise TypeInferenceError(f"the layout {self} needs {name} in blocks of {factor}, which {extent} is not")
        number = const_int(extent)
        return simplify(extent // factor) if number is None else as_index(number // factor)

    def filled(self, extents: Mapping[str, ExprLike]) -> dict[str, Expr]:
        """The extents, where known ones that blocks do not divide go on to whole blocks."""
        whole: dict[str, Expr] = {}
        for name, extent in extents.items():
            number, factor = const_int(as_index(extent)), self.factor(name)
            whole[name] = as_index(extent if number is None else -(-number // factor) * factor)
        return whole

    def divides(self, extents: Mapping[str, ExprLike]) -> bool:
        """Whether the blocks certainly divide these extents."""
        return all(_is_multiple(as_index(extents[name]), self.factor(name)) for name in self.names)


def _times(extent: Expr, factor: int) -> Expr:
    number = const_int(extent)
    return simplify(extent * factor) if number is None else as_index(number * factor)


def _is_multiple(extent: Expr, factor: int) -> bool:
    number = const_int(extent)
    return const_int(simplify(extent % factor)) == 0 if number is None else number % factor == 0


def transform(shape: Sequence[ExprLike], source: Layout, destination: Layout) -> tuple[Expr, ...]:
    """The shape that a tensor of layout ``source`` has in ``destination``.

    Raises ``TypeInferenceError`` for a shape that is not of the source, layouts of different axes, and blocks that do
    not divide extents.
    """
    if sorted(source.names) != sorted(destination.names):
        raise TypeInferenceError(f"the layouts {source} and {destination} have different axes")
    return destination.shape(source.extents(shape))


def source_index(index: Sequence[Expr], source: Layout, destination: Layout) -> tuple[Expr, ...]:
    """Where the element at ``index`` of a tensor in layout ``destination`` is in ``source``."""
    found: dict[int, Expr] = {}
    for name in source.names:
        digits = [index[place] for place in destination.digits(name)]
        blocks = source.blocks(name)
        if blocks != destination.blocks(name):
            number = _number(digits, destination.blocks(name))
            digits = _written(number, blocks)
        found.update(zip(source.digits(name), digits, strict=True))
    return tuple(found[place] for place in range(source.ndim))


def rearranged(array: npt.NDArray[Any], source: Layout, destination: Layout) -> npt.NDArray[Any]:
    """An array of layout ``source`` in ``destination``. Raises like ``transform``."""
    transform(array.shape, source, destination)
    whole = array.transpose([place for name in source.names for place in source.digits(name)])
    whole = whole.reshape([array.shape[source.position(name)] * source.factor(name) for name in source.names])
    digits: list[int] = []
    positions: list[int] = []
    for name, extent in zip(source.names, whole.shape, strict=True):
        digits += (extent // destination.factor(name), *destination.blocks(name))
        positions += destination.digits(name)
    return aligned(whole.reshape(digits).transpose(np.argsort(positions)))


def _number(digits: Sequence[Expr], blocks: Sequence[int]) -> Expr:
    """The number that digits of these radices write, the highest first."""
    number = digits[0]
    for digit, block in zip(digits[1:], blocks, strict=True):
        number = number * block + digit
    return number


def _written(number: Expr, blocks: Sequence[int]) -> list[Expr]:
    """A number in digits of these radices, the highest first."""
    digits: list[Expr] = []
    for block in reversed(blocks):
        digits.insert(0, number % block)
        number = number // block
    return [number, *digits]


def _parse(text: object) -> tuple[LayoutAxis, ...]:
    if not isinstance(text, str):
        raise TypeInferenceError(f"a layout is written as text, as in 'NCHW16c', found {text!r}")
    axes, end = [], 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        end = part.end()
        capital, number, small = part.groups()
        axes.append(LayoutAxis(capital) if capital else LayoutAxis(small.upper(), int(number)))
    if end != len(text) or not text:
        raise TypeInferenceError(f"the layout {text!r} is malformed at {text[end:]!r}: write axes as N, blocks as 16c")
    names = [axis.name for axis in axes if axis.block is None]
    if len(set(names)) < len(names):
        raise TypeInferenceError(f"the layout {text!r} has an axis twice")
    for axis in axes:
        if axis.name not in names:
            raise TypeInferenceError(f"the layout {text!r} has a block {axis}, but no axis {axis.name}")
        if axis.block == 0:
            raise TypeInferenceError(f"the layout {text!r} has a block of no elements, {axis}")
    return tuple(axes)


def _shown(shape: Sequence[ExprLike]) -> str:
    return f"({', '.join(map(str, shape))})"


NCW, NWC, NCHW, NHWC, HWCN, NCDHW, NDHWC = map(Layout, ("NCW", "NWC", "NCHW", "NHWC", "HWCN", "NCDHW", "NDHWC"))
OIW, OIHW, HWIO, OIDHW = map(Layout, ("OIW", "OIHW", "HWIO", "OIDHW"))
