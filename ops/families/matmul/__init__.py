"""Matrix products: ``matmul.py``, ``batch_matmul.py``, ``blockwise.py``, ``packed.py``, ``packed_blockwise.py``,
``packed_bytes.py``, ``packed_pairs.py`` and ``strassen.py`` have the steps of the operators, the other files an
implementation each, or what these share.
"""

from ...definition.op_group import OpGroup
from . import batch_matmul, blockwise, matmul, packed, packed_blockwise, packed_bytes, packed_pairs, strassen

GROUP = OpGroup.PRODUCTS

__all__ = [
    "batch_matmul",
    "blockwise",
    "matmul",
    "packed",
    "packed_blockwise",
    "packed_bytes",
    "packed_pairs",
    "strassen",
]
