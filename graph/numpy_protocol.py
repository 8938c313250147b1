"""Functions of numpy on graph nodes: ``np.exp(x)`` is a call of an operator.

The table is filled by ``ops/``, which has the operators and is imported when a node is first asked for one; nodes look
up here what numpy asks of them. Mutable: entries are added when ``ops`` is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import getitem
from typing import Any, TypeAlias, TypeVar

from ..base.errors import TypeInferenceError

Implementation: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Implementation)

_OPERATORS = f"{__name__.partition('.graph.')[0]}.ops"
"""The folder that has the operators, which is above this one."""
_implementations: dict[Callable[..., Any], Implementation] = {}


def implements(*functions: Callable[..., Any]) -> Callable[[F], F]:
    """Enter a function for functions of numpy, whose parameters it has, as far as graphs have them."""

    def enter(implementation: F) -> F:
        for function in functions:
            _implementations[function] = implementation
        return implementation

    return enter


def implemented() -> tuple[Callable[..., Any], ...]:
    """The functions of numpy that take graph nodes."""
    return tuple(_table())


def _table() -> Mapping[Callable[..., Any], Implementation]:
    import_module(_OPERATORS)
    return _implementations


def apply(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a function of numpy gives, of which some argument is a node: a node, or several.

    Raises ``TypeInferenceError``, which is a ``TypeError``, for a function without an operator, or arguments that it
    does not take of nodes.
    """
    name = numpy_name(function)
    implementation = _table().get(function)
    if implementation is None:
        raise TypeInferenceError(f"{name} is computed by no operator: print(lw.nn) lists those that there are")
    signature = inspect.signature(implementation)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        shown = signature.replace(parameters=plain, return_annotation=signature.empty)
        raise TypeInferenceError(f"{name} takes here {shown}: {error}") from None
    try:
        return implementation(*args, **options)
    except TypeInferenceError as error:
        raise TypeInferenceError(f"{name}: {error}") from error.__cause__


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply a universal function, as numpy asks by ``__array_ufunc__``."""
    if method != "__call__":
        raise TypeInferenceError(
            f"{numpy_name(ufunc)}.{method} does not apply to graph nodes: np.sum, np.prod, np.max, … reduce them"
        )
    if "out" in options:
        raise TypeInferenceError(f"{numpy_name(ufunc)}: a graph node is not written to: out= is for arrays")
    return apply(ufunc, *inputs, **options)


def numpy_name(function: Any) -> str:
    """What users call a function of numpy, and indexing, which is none."""
    if function is getitem:
        return "x[…]"
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{getattr(function, '__name__', function)}"
