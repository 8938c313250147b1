"""The examples in docstrings run, and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import loopwright

# A walk of the installed package: `--doctest-modules` derives wrong names where the repository root is the package.
MODULES = ["loopwright", *sorted(module.name for module in pkgutil.walk_packages(loopwright.__path__, "loopwright."))]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0, "see the report above"
