"""Tensor expressions run by numpy, a whole tensor at a time: no code is made, and each operation is a few calls.

It is the plain code that serves a model while its compilation goes on. The loop IR's interpreter is the reference; this
is some thousand times as fast, sums in numpy's order, and leaves scans and externs out.

- ``grid.py``: a box of the values of axes, an axis of numpy for each
- ``values.py``: expressions on a grid, reads being views wherever their indices are affine
- ``reductions.py``: reductions; ``products.py``: sums of products, as numpy's products of matrices
- ``run.py``: the operations that outputs are made of
"""

from .run import VectorizedProgram
from .unvectorized import UnvectorizedError

__all__ = ["UnvectorizedError", "VectorizedProgram"]
