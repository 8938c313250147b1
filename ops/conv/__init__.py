"""Convolutions: ``attrs.py`` and ``conv.py``, or ``transpose.py``, have the steps of the operators, the other files an
implementation each.
"""

from . import conv, transpose, winograd

__all__ = ["conv", "transpose", "winograd"]
