"""Attention: ``attention.py`` has the steps of the operator, ``blocks.py`` the implementation that keeps a block of
queries in cache.
"""

from . import attention

__all__ = ["attention"]
