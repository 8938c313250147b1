"""Programs and Python packages that some tests use, and that a machine need not have: without them, tests are skipped.

Where one comes from something that `.ci/run` has installed, and has named in ``LOOPWRIGHT_REQUIRED_TOOLS``, that a test
would be skipped is a failure. A test's need is a mark, `needs.mark(…)`, or the value of `program` or `module`.
"""

import importlib
import importlib.util
import os
import shutil

import pytest

REQUIRED = "LOOPWRIGHT_REQUIRED_TOOLS"
EXTRAS = "dev"
"""What brings the Python packages that tests use, if nothing else is said."""


def program(*names, package):
    """The path of the first of these programs that there is; ``package`` is the system's that brings it."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found or missing(" or ".join(names), package)


def module(name, package=EXTRAS):
    """A module of a Python package, by its dotted name; ``package`` is the extra that brings it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return missing(name, package)


def missing(what, package):
    """Skip the test, or the module that is imported; or fail."""
    if package in os.environ.get(REQUIRED, "").split():
        pytest.fail(f"{what} is not there, though {package} was installed", pytrace=False)
    pytest.skip(f"needs {what} ({package})", allow_module_level=True)


def needs(*names, package):
    """A mark: the test needs one of these programs, or Python modules if ``package`` is an extra of ours."""
    return pytest.mark.needs_tool(*names, package=package)


def check(item):
    """Skip a test whose marks name what is not there, or fail."""
    for mark in item.iter_markers("needs_tool"):
        find = module if mark.kwargs["package"] == EXTRAS else program
        find(*mark.args, **mark.kwargs)
