"""The contenders of ``stencils.py``.

Each module's ``prepare(stencil, border, image, result, threads, kind)`` gives what to call, which fills ``result``; it
raises ``LookupError`` for what is not written.
"""
