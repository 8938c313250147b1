"""loopwright: a tensor compiler for CPUs.

``__init__.pyi`` lists what users type as ``lw.name``. A name imports what it needs when it is asked for, so that
``loopwright --help`` answers without numpy, and schedules are made without LLVM.
"""

from .base.lazy_names import attach_stub
from .base.version import VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = attach_stub(__name__)
