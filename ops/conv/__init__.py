"""Convolutions: ``attrs.py`` and ``conv.py``, ``strassen.py``, ``transpose.py`` and ``winograd.py`` have the steps of
the operators, the other files an implementation each.
"""

from . import conv, strassen, transpose, winograd

__all__ = ["conv", "strassen", "transpose", "winograd"]
