"""Convolutions: ``attrs.py`` and ``conv.py``, ``strassen.py``, ``transpose.py`` and ``winograd.py`` have the steps of
the operators, the other files an implementation each.
"""

from ..op_group import OpGroup
from . import conv, strassen, transpose, winograd

GROUP = OpGroup.CONVOLUTIONS

GROUP = OpGroup.CONVOLUTIONS

GROUP = OpGroup.CONVOLUTIONS

__all__ = ["conv", "strassen", "transpose", "winograd"]
