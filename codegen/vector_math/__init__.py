"""The intrinsics of ``ir/intrinsics.py`` as LLVM IR: polynomials that vectorise on every target, no library calls.

One file per family of functions, on top of ``codegen/lanes.py``; ``emit.py`` is the entry.
"""

from .emit import emit_intrinsic

__all__ = ["emit_intrinsic"]
