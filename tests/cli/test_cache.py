"""``loopwright cache``: entries listed, damage found, what is removed and what is left alone."""

import json
import os
import time

import pytest

import loopwright as lw
from loopwright.artifact.cache import DiskCache
from loopwright.artifact.cache_entry import About
from loopwright.base.quantities import bytes_text
from loopwright.cli import main

KEYS = {"conv": "0a" * 32, "relu": "1b" * 32, "sum": "1c" * 32}
DAYS = {"conv": 40, "relu": 8, "sum": 0}
SIZES = {"conv": 1000, "relu": 2000, "sum": 3000}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Three entries, and files in their folder that are not ours."""
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    made = DiskCache(tmp_path)
    for name, key in KEYS.items():
        made.put(key, About("function", f"fused_{name}", "llvm -mcpu=x86-64", "LLVM 0"), bytes(SIZES[name]))
        then = time.time() - DAYS[name] * 86400
        os.utime(made._path(key), (then, then))
    for foreign in ("readme.txt", "objects/notes", "objects/0a/thesis.tex", "objects/zz/" + "ab" * 31):
        path = tmp_path / foreign
        path.parent.mkdir(exist_ok=True)
        path.write_text("not ours")
    yield made
    assert len([p for p in tmp_path.rglob("*") if p.is_file() and p.read_bytes() == b"not ours"]) == 4


def names(cache):
    return [entry.about().name.removeprefix("fused_") for entry in cache.entries()]


def damage(cache, name):
    path = cache._path(KEYS[name])
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")


def test_entries_are_listed_the_last_used_first(cache, capsys):
    assert main(["cache", "ls"]) == 0
    *rows, total = [line for line in capsys.readouterr().out.splitlines() if "fused" in line or "entries" in line]
    ages = {"sum": "now", "relu": "8 d ago", "conv": "40 d ago"}
    sizes = {name: cache._path(key).stat().st_size for name, key in KEYS.items()}
    expected = [f"fused_{name} {bytes_text(sizes[name])} {age} x86-64" for name, age in ages.items()]
    assert [" ".join(row.split()) for row in rows] == expected
    assert total.startswith(f"3 entries, {bytes_text(sum(sizes.values()))} in ")


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_each_entry_takes_one_line_that_fits(cache, capsys, monkeypatch, columns):
    target = f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -mattr={'+avx512vpopcntdq,' * 9}"
    cache.put("2d" * 32, About("function", "fused_" + "nn_conv2d_add_" * 9 + "relu", target, "LLVM 0"), bytes(7))
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["cache", "ls"]) == 0
    heading, rule, *rows = capsys.readouterr().out.splitlines()[:6]
    assert all(len(line) <= int(columns) for line in (heading, rule, *rows))
    (row,) = [row for row in rows if row.startswith("fused_nn")]
    assert row.index("…") < row.index("relu") < row.index("B ") < row.index("now") < row.index("skyl")
    assert {row.index("ago") for row in rows if "ago" in row} == {heading.index("last used") + 6}


def test_each_action_tells_in_json(cache, capsys):
    def told(*arguments):
        assert main(["cache", *arguments, "--json"]) in (0, 1)
        return json.loads(capsys.readouterr().out)

    damage(cache, "relu")
    assert {e["key"] for e in told("ls")["entries"]} == set(KEYS.values())
    assert [e["key"] for e in told("verify")["damaged"]] == [KEYS["relu"]]
    removed = told("prune", "--older-than", "30")["removed"]
    assert [e["name"] for e in removed] == ["fused_conv"]
    assert len(told("ls")["entries"]) == 2


def test_an_empty_cache_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "none"))
    for command in (["ls"], ["verify"], ["prune", "--all"]):
        assert main(["cache", *command]) == 0
        assert "0 entries, 0 B" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_damaged_entries_are_found_and_dropped_when_asked_for(cache, capsys):
    assert main(["cache", "verify"]) == 0
    assert "0 damaged" in capsys.readouterr().out
    damage(cache, "relu")
    assert main(["cache", "verify"]) == 1
    told = capsys.readouterr().out
    assert f"{cache._path(KEYS['relu'])}: its checksum is not that of its content" in told
    assert "1 damaged" in told
    assert main(["cache", "verify", "--drop"]) == 0
    assert names(cache) == ["conv", "sum"]


def test_a_damaged_entry_is_listed_as_such(cache, capsys):
    cache._path(KEYS["sum"]).write_bytes(b"\x7fELF")
    assert main(["cache", "ls"]) == 0
    assert "damaged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--older-than", "30"], ["relu", "sum"]),
        (["--older-than", "7"], ["sum"]),
        (["--max-size", "6K"], ["relu", "sum"]),
        (["--max-size", "3500"], ["sum"]),
        (["--max-size", "0"], []),
        (["--max-size", "1G"], ["conv", "relu", "sum"]),
        (["--older-than", "30", "--max-size", "5.5KiB"], ["relu", "sum"]),
        (["--all"], []),
    ],
)
def test_pruning_removes_what_was_not_used_for_longest(cache, capsys, options, kept):
    assert main(["cache", "prune", "--dry-run", *options]) == 0
    assert f"would remove {3 - len(kept)} entr" in capsys.readouterr().out
    assert names(cache) == ["conv", "relu", "sum"]
    assert main(["cache", "prune", *options]) == 0
    assert f"removed {3 - len(kept)} entr" in capsys.readouterr().out
    assert names(cache) == kept


def test_pruning_removes_what_dead_writers_left_behind(cache):
    folder = cache._path(KEYS["conv"]).parent
    old, new = folder / ".new-old", folder / ".new-new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    assert main(["cache", "prune", "--older-than", "1000"]) == 0
    assert (old.exists(), new.exists()) == (False, True)


def test_pruning_removes_loop_nests_of_line_tables(cache):
    folder = cache.folder / "nests"
    folder.mkdir()
    old, new, foreign = folder / "f-0123456789ab.loops", folder / "g-ba9876543210.loops", folder / "poem.loops"
    for path in (old, new, foreign):
        path.write_text("def f():")
    for path in (old, foreign):
        os.utime(path, (1, 1))
    for options, left in (["--max-size", "0"], 3), (["--older-than", "7"], 2), (["--all"], 1):
        assert main(["cache", "prune", *options]) == 0
        assert len(list(folder.iterdir())) == left
    assert foreign.exists()
    foreign.unlink()


def test_an_entry_that_is_used_is_not_old(cache):
    assert cache.get(KEYS["conv"]) == bytes(SIZES["conv"])
    main(["cache", "prune", "--older-than", "7"])
    assert names(cache) == ["conv", "sum"]


@pytest.mark.parametrize("options", [[], ["--older-than", "-1"], ["--older-than", "nan"], ["--max-size", "big"]])
def test_usage_errors_end_with_2(cache, capsys, options):
    with pytest.raises(SystemExit) as ended:
        main(["cache", "prune", *options])
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
    assert len(cache.entries()) == 3


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "objects").write_text("a file")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    assert main(["cache", "ls"]) == 1
    assert f"the cache folder {tmp_path} cannot be read: Not a directory" in capsys.readouterr().err


def test_an_entry_that_cannot_be_removed_is_an_error(cache):
    path = cache._path(KEYS["conv"])
    path.unlink()
    path.mkdir()
    with pytest.raises(lw.CacheError, match=rf"{path} cannot be removed: "):
        cache.remove(path)
