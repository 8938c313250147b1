"""Operators: one file a family, with all steps of each operator; and what they share.

Importing this package registers them all.
"""

from . import unary

__all__ = ["unary"]
