"""loopwright: a tensor compiler for CPUs.

What users type as ``lw.name`` stands in `facade`. That imports the whole compiler, so it waits until a name of it is
asked for: ``loopwright --help`` answers without.
"""

from typing import TYPE_CHECKING

from .base.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from .facade import *  # noqa: F403
    from .facade import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        """A folder of the package, such as ``te``, which needs no facade; or a name of the facade."""
        from importlib import import_module
        from importlib.util import find_spec

        if not name.startswith("__"):
            found = find_spec(f".{name}", __name__)
            if found is not None and found.has_location:  # folders such as build/ of a clone are no modules
                return import_module(f".{name}", __name__)
        if name == "__all__" or not name.startswith("__"):  # other such names Python asks of any module
            facade = import_module(".facade", __name__)
            if name == "__all__" or name in facade.__all__:
                globals()[name] = getattr(facade, name)
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__getattr__("__all__"), *(name for name in globals() if name.startswith("__"))})
