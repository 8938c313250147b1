"""Which functions of C a module calls: code that is emitted, for LLVM or MLIR, declares them."""

from __future__ import annotations

from ..base.errors import ExpressionError
from ..ir.contents import statements_of
from ..ir.extern import ExternFunction
from ..ir.stmt import CallExtern, IRModule
from .abi import EXTERNAL_SYMBOLS


def extern_functions(module: IRModule) -> tuple[ExternFunction, ...]:
    """The functions of C that a module calls, in order of first use, each symbol once; none that is instructions.

    Raises ``ExpressionError`` where one symbol is declared in two ways, or is one that our own code uses.
    """
    found: dict[str, ExternFunction] = {}
    for func in module.functions:
        for stmt in statements_of(func.body):
            if not isinstance(stmt, CallExtern) or stmt.function.tiles is not None:
                continue
            first = found.setdefault(stmt.function.symbol, stmt.function)
            if first.prototype != stmt.function.prototype:
                raise ExpressionError(
                    f"{func.name}: one function of C is declared in two ways: `{first.prototype}` and "
                    f"`{stmt.function.prototype}`"
                )
    for symbol in found:
        if symbol in EXTERNAL_SYMBOLS:
            raise ExpressionError(f"{symbol} is a function that compiled code uses itself: give yours another name")
    return tuple(found.values())
