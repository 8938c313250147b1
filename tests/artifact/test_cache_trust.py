"""Who could have written what the cache holds: owners and rights of folders, links, the seal, caches that are named."""

import logging
import os
import stat
import subprocess
import sys

import pytest

import loopwright as lw
from loopwright.artifact import cache_secret
from loopwright.artifact.cache import DiskCache, disk_cache
from loopwright.artifact.cache_entry import About
from loopwright.cli import main

KEY = "ab" * 32
ABOUT = About("object", "twice", "llvm -mcpu=x86-64", "LLVM 0")
CONTENT = b"machine code"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a cache with one entry, two folders below one that is this user's alone."""
    made = tmp_path / "outer" / "cache"
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(made))
    DiskCache(made).put(KEY, ABOUT, CONTENT)
    assert DiskCache(made).get(KEY) == CONTENT
    return made


@pytest.fixture
def give_away(monkeypatch):
    """Makes a folder that of another user: by changing its owner, or, where that is not allowed, who we are."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, 54321, -1)
        else:
            uid = os.geteuid()
            monkeypatch.setattr(os, "geteuid", lambda: uid + 1)

    return give


def refused(folder, caplog, *why):
    """Whether a cache gives and takes nothing, and says so once, with the reasons."""
    cache = DiskCache(folder)
    before = sorted(folder.rglob("*"))
    with caplog.at_level(logging.WARNING, "loopwright.cache"):
        for _ in range(2):
            assert cache.get(KEY) is None
            cache.put("cd" * 32, ABOUT, CONTENT)
    assert sorted(folder.rglob("*")) == before
    assert caplog.text.count("going on without it") == 1
    for text in (*why, "LOOPWRIGHT_CACHE_DIR", "LOOPWRIGHT_CACHE_TRUST="):
        assert text in caplog.text
    return True


def test_new_folders_and_files_are_for_this_user_alone(folder):
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_not_used(folder, give_away, caplog):
    give_away(folder)
    assert refused(folder, caplog, f"{folder} belongs to")


def test_nor_is_one_below_a_folder_of_another_user(folder, give_away, caplog):
    give_away(folder.parent)
    assert refused(folder, caplog, "belongs to")


def test_nor_is_one_that_holds_a_folder_of_another_user(folder, give_away, caplog):
    give_away(folder / "objects" / KEY[:2])
    assert DiskCache(folder).get(KEY) is None
    assert "belongs to" in caplog.text


@pytest.mark.parametrize("where", [".", "..", "objects", "objects/ab"])
@pytest.mark.parametrize("mode", [0o777, 0o707])
def test_a_folder_that_all_may_write_to_is_not_used(folder, where, mode, caplog):
    (folder / where).chmod(mode)
    assert DiskCache(folder).get(KEY) is None
    assert "can be written by all users" in caplog.text
    (folder / where).chmod(0o755)
    assert DiskCache(folder).get(KEY) == CONTENT


def test_rights_that_change_while_a_process_runs_are_seen(folder):
    cache = DiskCache(folder)
    assert cache.get(KEY) == CONTENT
    folder.chmod(0o777)
    assert cache.get(KEY) is None
    folder.chmod(0o700)
    assert cache.get(KEY) == CONTENT


def test_a_sticky_folder_that_all_may_write_to_is_fine_above_but_not_as_the_cache(folder):
    folder.parent.chmod(0o1777)
    assert DiskCache(folder).get(KEY) == CONTENT
    folder.chmod(0o1777)
    assert DiskCache(folder).get(KEY) is None


@pytest.mark.parametrize(("members", "used"), [([], True), (["mallory"], False)])
def test_a_group_may_write_if_it_is_the_users_own(folder, monkeypatch, members, used):
    from loopwright.artifact import trusted_files

    name = trusted_files.pwd.getpwuid(os.geteuid()).pw_name
    user = trusted_files.pwd.struct_passwd((name, "x", os.geteuid(), 54321, "", "", ""))
    group = trusted_files.grp.struct_group((name, "x", 54321, members))
    monkeypatch.setattr(trusted_files.grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(trusted_files.pwd, "getpwall", lambda: [user])
    monkeypatch.setattr(trusted_files, "_SUPERGROUP", -1)
    folder.chmod(0o770)
    assert (DiskCache(folder).get(KEY) == CONTENT) is used
    monkeypatch.setattr(trusted_files, "_has_list", lambda _: True)
    assert DiskCache(folder).get(KEY) is None


def test_links_are_followed_where_only_trusted_users_could_have_made_them(folder, tmp_path, give_away):
    chain = tmp_path / "first"
    chain.symlink_to("second/../outer")
    (tmp_path / "second").mkdir()
    assert DiskCache(chain / "cache").get(KEY) == CONTENT
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert DiskCache(loop).get(KEY) is None
    dangling = tmp_path / "dangling"
    dangling.symlink_to("missing/cache")
    assert DiskCache(dangling).get(KEY) is None
    (tmp_path / "second").chmod(0o777)  # others could have put something else there
    assert DiskCache(chain / "cache").get(KEY) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives links away")
def test_a_link_of_another_user_is_not_followed(folder, tmp_path, caplog):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to(folder)
    assert DiskCache(shared / "link").get(KEY) == CONTENT
    os.lchown(shared / "link", 54321, -1)
    assert DiskCache(shared / "link").get(KEY) is None
    assert "the symbolic link" in caplog.text


def test_a_link_inside_the_cache_is_not_followed(folder):
    (folder / "objects").rename(folder / "elsewhere")
    (folder / "objects").symlink_to("elsewhere")
    assert DiskCache(folder).get(KEY) is None
    with pytest.raises(lw.CacheError, match="cannot be read: Not a directory"):
        DiskCache(folder).entries()


def test_an_entry_needs_the_seal_of_this_user(folder, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    (entry,) = DiskCache(folder).entries()
    assert entry.problem() == "it was not written by this user here"
    assert DiskCache(folder).get(KEY) is None
    assert "it was not written by this user here" in caplog.text
    assert DiskCache(folder).entries() == []


def test_a_named_cache_needs_no_seal_and_may_be_another_users(folder, monkeypatch, tmp_path, give_away):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    give_away(folder)
    assert disk_cache().get(KEY) is None
    monkeypatch.setenv("LOOPWRIGHT_CACHE_TRUST", f"{tmp_path}/nothing:{folder}")
    assert disk_cache().get(KEY) == CONTENT
    assert not (tmp_path / "other").exists()
    folder.chmod(0o777)
    assert disk_cache().get(KEY) is None
    folder.chmod(0o700)
    monkeypatch.setenv("LOOPWRIGHT_CACHE_TRUST", str(folder / "objects"))
    assert disk_cache().get(KEY) is None


def test_a_secret_that_others_could_know_is_refused(folder, monkeypatch, tmp_path, caplog):
    for damage, why in (
        (lambda path: path.chmod(0o644), "other users can read it: remove it"),
        (lambda path: path.write_bytes(b"short"), "it is damaged: remove it"),
        (lambda path: path.parent.chmod(0o777), "can be written by all users"),
    ):
        home = tmp_path / why[:8].replace(" ", "")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
        assert DiskCache(folder).distrust() is None  # which makes a secret
        secret = home / "loopwright" / cache_secret.NAME
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        damage(secret)
        cache_secret._secret_in.cache_clear()
        assert refused(folder, caplog, str(secret), why)
        caplog.clear()


_MAKES_SECRET = """
import sys
from loopwright.artifact.cache_secret import user_secret
sys.stdin.read()
print(user_secret().hex())
"""


def test_processes_that_race_to_make_the_secret_have_one(tmp_path):
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    racers = [subprocess.Popen([sys.executable, "-c", _MAKES_SECRET], env=environment, **pipes) for _ in range(4)]
    for racer in racers:
        racer.stdin.close()
        racer.stdin = None
    assert len({racer.communicate(timeout=600)[0] for racer in racers}) == 1
    assert [path.name for path in (tmp_path / "loopwright").iterdir()] == [cache_secret.NAME]


def test_the_command_tells_of_trust(folder, capsys):
    for mode, code, said in ((0o700, 0, "it is trusted"), (0o777, 1, "it is not trusted, and not used: ")):
        folder.chmod(mode)
        assert main(["cache", "ls"]) == 0
        assert said in capsys.readouterr().out
        assert main(["cache", "verify"]) == code
        assert said in capsys.readouterr().out
    assert main(["cache", "ls", "--json"]) == 0
    assert "can be written by all users" in capsys.readouterr().out
    assert main(["cache", "prune", "--all"]) == 0
    assert "removed 1 entry" in capsys.readouterr().out
