"""Attention: ``attention.py`` has the steps of the operator, ``blocks.py`` the implementation that keeps a block of
queries in cache.
"""

from ...definition.op_group import OpGroup
from . import attention

GROUP = OpGroup.PRODUCTS

__all__ = ["attention"]
