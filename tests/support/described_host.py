"""Describes to the package another machine than the one at hand, and notes who asks what the machine is.

The package asks two functions: ``codegen.processor.this_processor`` and ``base.granted_cpus.granted_cpus``. Both are
replaced as their modules are imported, in the tests' process and in its children: the environment variable
``LOOPWRIGHT_TEST_HOST`` holds the description, as JSON, and ``LOOPWRIGHT_TEST_ASKED`` names a file that grows whenever
somebody asks. The package reads neither.
"""

import json
import os
import sys
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

HOST, ASKED = "LOOPWRIGHT_TEST_HOST", "LOOPWRIGHT_TEST_ASKED"


def _processor(module):
    wanted = _description().get("processor")
    return module.Processor(**{**wanted, "attributes": tuple(wanted["attributes"])}) if wanted else None


def _cpus(_):
    return _description().get("cpus")


_REPLACED = {
    "loopwright.codegen.processor": ("this_processor", _processor),
    "loopwright.base.granted_cpus": ("granted_cpus", _cpus),
}


def _description():
    return json.loads(os.environ.get(HOST, "{}"))


def _question(function):
    """What a caller of one of the functions wants to know of the machine."""
    if function == "granted_cpus":
        return "cpus"
    asks = sys._getframe(3).f_code.co_name  # through `host_target`
    return "instructions" if asks == "why_not_here" else "processor"


class _Loader(SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        name, described = _REPLACED[module.__name__]
        real = getattr(module, name)

        @wraps(real)
        def answer():
            if path := os.environ.get(ASKED):
                with Path(path).open("a") as file:
                    file.write(f"{_question(name)}\n")
            found = described(module)
            return real() if found is None else found

        setattr(module, name, answer)


class _Finder:
    def find_spec(self, name, path=None, target=None) -> ModuleSpec | None:
        if name not in _REPLACED or (spec := PathFinder.find_spec(name, path, target)) is None:
            return None
        spec.loader = _Loader(name, spec.origin)
        return spec


def install():
    """To be called before the package is imported; calls after the first do nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        assert not _REPLACED.keys() & sys.modules.keys()
        sys.meta_path.insert(0, _Finder())
