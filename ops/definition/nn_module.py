"""``lw.nn`` in the interpreter: a module that prints its operators in groups, and functions that tell of theirs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from .op_group import OpGroup, group_of
from .registry import Op, OpPattern, all_ops

F = TypeVar("F", bound=Callable[..., Any])

_WIDTH = 79
_RESULTS = {
    OpPattern.ELEMENTWISE: "The result has the shape of the arguments.",
    OpPattern.BROADCAST: "The result has the shape to which the arguments broadcast.",
    OpPattern.COMM_REDUCE: "The result lacks the axes that are reduced, or has them with extent 1, by ``keepdims``.",
}


class OperatorModule(ModuleType):
    """A module whose public names are functions that make calls of operators."""

    __all__: list[str]

    def __dir__(self) -> list[str]:
        return sorted(self.__all__)

    def __repr__(self) -> str:
        """A paragraph for each group, with the names of its functions."""
        groups: dict[OpGroup, list[str]] = {group: [] for group in OpGroup}
        for name in dir(self):
            groups[group_of(getattr(self, name))].append(name)
        indent = " " * (max(map(len, groups)) + 2)
        lines = ["<lw.nn, the operators of graphs; help(lw.nn.conv2d) tells of one>"]
        for group, names in groups.items():
            if names:
                text = f"{group:{len(indent)}}{', '.join(names)}"
                lines.append(textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False))
        return "\n".join(lines)


def tell_of_parameters(module: ModuleType) -> None:
    """Add to the docstrings what the registry says of arguments, attributes and results."""
    ops = {op.name.removeprefix("nn."): op for op in all_ops()}
    for name in dir(module):
        if (op := ops.get(name)) is not None:
            function = getattr(module, name)
            function.__doc__ = f"{inspect.getdoc(function)}\n\n{_parameters(function, op)}".rstrip()


def with_options_of(general: Callable[..., Any]) -> Callable[[F], F]:
    """Have ``help`` show the options of a function as those of the general one, which gets them."""

    def show(function: F) -> F:
        function.__signature__ = inspect.signature(general)  # type: ignore[attr-defined]
        return function

    return show


def _parameters(function: Callable[..., Any], op: Op) -> str:
    """What there is to say of each parameter, in order, and of the result's shape."""
    about = {argument.name: argument.description for argument in op.arguments}
    about |= {a.name: a.description for a in (op.attrs.describe() if op.attrs is not None else ())}
    parameters = inspect.signature(function).parameters
    lines = [
        textwrap.fill(f"{name}: {about[name]}", _WIDTH - 8, initial_indent="    ", subsequent_indent=" " * 8)
        for name in parameters
        if name in about
    ]
    notes = []
    if op.attrs is not None and {"axis", "axes"} & parameters.keys():
        notes.append("Axes may be negative, and then count from the end.")
    if op.arguments and op.pattern in _RESULTS:
        notes.append(_RESULTS[op.pattern])
    return "\n\n".join([*(["\n".join(["Parameters:", *lines])] if lines else []), *notes])
