"""What LLVM said once is taken from the cache on disk by later processes, unless it cannot be what it said."""

import logging

import pytest

from loopwright.artifact.cache import disk_cache
from loopwright.artifact.remembered import remembered
from loopwright.base.errors import CacheError
from loopwright.codegen import features
from loopwright.runtime.threads import resident

TRIPLE = "x86_64-unknown-linux-gnu"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    return tmp_path


def never(*_):
    pytest.fail("it was asked once more")


def number(data):
    if not data.isdigit():
        raise CacheError("it is no number")
    return int(data)


def ask(make, kind="numbers", question="6 * 7"):
    return remembered(kind, ("six times seven", "any"), question, make, lambda n: str(n).encode(), number)


def test_what_was_made_is_taken_from_disk(folder):
    assert ask(lambda: 42) == 42
    assert ask(never) == 42
    (entry,) = disk_cache().entries()
    assert (entry.about().kind, entry.about().name, entry.problem()) == ("numbers", "six times seven", None)


@pytest.mark.parametrize("other", [{"kind": "others"}, {"question": "6 * 8"}])
def test_another_question_is_another_entry(folder, other):
    ask(lambda: 42)
    assert ask(lambda: 48, **other) == 48
    assert ask(never) == 42


def test_what_cannot_be_is_dropped_and_made_anew(folder, caplog):
    ask(lambda: 42)
    (entry,) = disk_cache().entries()
    disk_cache().put(entry.key, entry.about(), b"forty-two")
    with caplog.at_level(logging.WARNING, "loopwright.cache"):
        assert ask(lambda: 43) == 43
    assert "it is no number" in caplog.text
    assert ask(never) == 43


def test_a_damaged_entry_is_made_anew(folder):
    ask(lambda: 42)
    (entry,) = disk_cache().entries()
    entry.path.write_bytes(entry.path.read_bytes()[:-1])
    assert ask(lambda: 43) == 43


def test_the_features_of_a_cpu_are_probed_once(folder, monkeypatch):
    found = features.implied_features.__wrapped__(TRIPLE, "haswell")
    assert "avx2" in found
    assert "avx512f" not in found
    monkeypatch.setattr(features, "probed_features", never)
    assert features.implied_features.__wrapped__(TRIPLE, "haswell") == found


def test_a_cpu_without_features_has_none_from_disk_too(folder, monkeypatch):
    assert features.implied_features.__wrapped__("wasm32-unknown-unknown", "mvp") == frozenset()
    monkeypatch.setattr(features, "probed_features", never)
    assert features.implied_features.__wrapped__("wasm32-unknown-unknown", "mvp") == frozenset()


def test_the_names_that_llvm_knows_are_listed_once(folder, monkeypatch):
    found = features.known_names.__wrapped__(TRIPLE)
    assert "haswell" in found.cpus
    assert "avx2" in found.features
    monkeypatch.setattr(features, "_in_a_child", never)
    assert features.known_names.__wrapped__(TRIPLE) == found


@pytest.mark.parametrize("content", [b"", b"one line", b"a b\nc d\ne", b"a\x00\nb", b"\xff\nb", b"a;b\nc"])
def test_names_that_cannot_be_are_listed_anew(folder, content):
    found = features.known_names.__wrapped__(TRIPLE)
    (entry,) = disk_cache().entries()
    disk_cache().put(entry.key, entry.about(), content)
    assert features.known_names.__wrapped__(TRIPLE) == found


ANSWER = """
define i32 @answer() {
  ret i32 42
}
"""


def test_resident_code_is_compiled_once(folder, monkeypatch):
    code = resident._object.__wrapped__(ANSWER, "answer", 2)
    with monkeypatch.context() as patch:
        patch.setattr(resident, "_compiled", never)
        assert resident._object.__wrapped__(ANSWER, "answer", 2) == code
    (entry,) = disk_cache().entries()
    disk_cache().put(entry.key, entry.about(), code[:64])
    assert resident._object.__wrapped__(ANSWER, "answer", 2) == code
