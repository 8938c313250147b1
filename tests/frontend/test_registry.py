"""The table of converters: every entry is a version of ONNX's, and has a case in the tests of this folder."""

import importlib.util
from pathlib import Path

import pytest
from onnx import defs

from loopwright import LoopwrightError
from loopwright.frontend.registry import OWN_DOMAIN, converted_versions, foreign_form, register

HERE = Path(__file__).parent


def cases():
    for path in HERE.glob("test_*.py"):
        if "CASES" in path.read_text():
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            yield from getattr(module, "CASES", ())


def test_every_converter_has_a_case_in_every_version():
    tested = {(c.domain, c.op, version) for c in cases() for version in c.versions}
    assert {entry for entry in converted_versions() if entry[0] != OWN_DOMAIN} == tested


def test_every_entry_is_a_version_that_onnx_defines():
    defined = {(s.domain, s.name, s.since_version) for s in defs.get_all_schemas_with_history()}
    newest = {domain: max(version for d, _, version in defined if d == domain) for domain, _, _ in defined}
    ours = [entry for entry in converted_versions() if entry[0] != OWN_DOMAIN]
    standard = [entry for entry in ours if foreign_form(*entry[:2]) is None]
    assert all(entry in defined or entry[2] > newest[entry[0]] for entry in standard)


def test_operators_are_converted_in_all_their_versions():
    converted = set(converted_versions())
    names = {(domain, name) for domain, name, _ in converted}
    missing = [
        (s.domain, s.name, s.since_version)
        for s in defs.get_all_schemas_with_history()
        if (s.domain, s.name) in names and not s.deprecated and (s.domain, s.name, s.since_version) not in converted
    ]
    assert missing == []


def test_a_version_has_one_converter():
    with pytest.raises(LoopwrightError, match="there is a converter for version 6 of ONNX Relu already"):
        register("Relu", (6,), lambda node: node[0])
