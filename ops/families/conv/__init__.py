"""Convolutions: ``attrs.py`` and ``conv.py``, ``strassen.py``, ``transpose.py`` and ``winograd.py`` have the steps of
the operators, the other files an implementation each.
"""

from ...definition.op_group import OpGroup
from . import conv, strassen, transpose, winograd

GROUP = OpGroup.CONVOLUTIONS

__all__ = ["conv", "strassen", "transpose", "winograd"]
