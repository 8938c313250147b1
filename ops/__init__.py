"""Operators: what they are made with is in ``definition/``, they themselves in ``families/``. ``numpy_api/`` makes
calls of them from Python's operators and numpy's functions on nodes, ``nn.py`` is ``lw.nn``, and ``op.py`` is
``lw.op``, with which operators are made outside.

Importing this package registers them all.
"""

from . import families, numpy_api

__all__ = ["families", "numpy_api"]
