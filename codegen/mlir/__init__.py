"""MLIR as text: ``loops.py`` is the level of lowered functions, ``compiler/linalg.py`` that of tensor expressions."""
