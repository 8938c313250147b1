"""loopwright: a tensor compiler for CPUs.

This module is the facade: what users type as ``lw.name`` is gathered here from the folders.
"""

__version__ = "0.1.0"
