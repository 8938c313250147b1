"""Matrix products: ``matmul.py``, ``batch_matmul.py`` and ``packed.py`` have the steps of the operators, the other
files an implementation each, or what these share.
"""

from . import batch_matmul, matmul, packed

__all__ = ["batch_matmul", "matmul", "packed"]
