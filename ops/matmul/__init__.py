"""Matrix products: ``matmul.py`` and ``batch_matmul.py`` have the steps of the operators, the other files an
implementation each.
"""

from . import batch_matmul, matmul

__all__ = ["batch_matmul", "matmul"]
