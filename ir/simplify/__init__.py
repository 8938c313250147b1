"""Algebraic simplification of expressions and statements: ``simplify`` and ``simplify_func``.

One file holds the rules of one operator; each rule is a ``case`` on one line, ``pattern if condition: return result``.
To add a rule, add a line: the tests read these files and have each line proved (tests/ir/test_simplify_proofs.py).
``driver.py`` says how rules are applied, ``table.py`` which apply where.
"""

from .driver import FunctionSimplifier, simplify, simplify_func

__all__ = ["FunctionSimplifier", "simplify", "simplify_func"]
