"""``loopwright cache``: what the cache on disk holds, whether it is whole, and making it smaller."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict

from ..artifact.cache import CacheEntry, DiskCache, disk_cache
from ..base.quantities import bytes_text, count_text
from ..base.table import Name, number_table, print_table
from ..base.target import brief_target
from .report import make_console

DAY = 86400.0
LEFT_BEHIND = 3600.0
"""Seconds after which a file that a writer has not finished is taken for one that it left behind."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``cache``."""
    parser.description = (
        "List, check or clear the cache of compiled code on disk. Other processes may compile meanwhile."
    )
    parser.epilog = "example: loopwright cache prune --max-size 500M"
    actions = parser.add_subparsers(title="actions", metavar="action", required=True)
    listing = actions.add_parser("ls", help="list the entries, the last used ones first")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)
    verify = actions.add_parser(
        "verify", help="check all entries, and who could have written them; the exit code is 1 if damaged ones remain"
    )
    verify.add_argument("--drop", action="store_true", help="remove the damaged entries")
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.set_defaults(run=_verify)
    prune = actions.add_parser("prune", help="remove entries")
    which = prune.add_argument_group("what to remove; at least one is needed")
    which.add_argument("--older-than", type=_days, metavar="DAYS", help="entries not used for so many days")
    which.add_argument("--max-size", type=_bytes, metavar="SIZE", help="least recently used ones beyond it: 500M, 2G")
    which.add_argument("--all", action="store_true", help="all entries")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    prune.add_argument("--json", action="store_true", help="print JSON")
    prune.set_defaults(run=_prune, usage=prune)


def _list(arguments: argparse.Namespace) -> int:
    cache, now = disk_cache(), time.time()
    entries = sorted(cache.entries(), key=lambda entry: (-entry.used, entry.key))
    if arguments.json:
        print(json.dumps(_folder_json(cache) | {"entries": [_entry_json(e) for e in entries]}, indent=2))
        return 0
    table = number_table(["name"], ["size", "last used"])
    table.add_column("target")
    for entry in entries:
        about = entry.about()
        name, target = (about.name, brief_target(about.target)) if about is not None else (f"damaged: {entry.key}", "")
        table.add_row(Name(name), bytes_text(entry.size), _age(now - entry.used), Name(target))
    console = make_console()
    if entries:
        print_table(console, table)
    console.print(f"{_total(entries)} in {cache.folder}", markup=False, soft_wrap=True)
    _tell_of_distrust(cache)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    cache = disk_cache()
    entries = cache.entries()
    damaged = {entry: problem for entry in entries if (problem := entry.problem()) is not None}
    problems = [_entry_json(entry) | {"problem": problem} for entry, problem in damaged.items()]
    if arguments.drop:
        for entry in damaged:
            entry.drop()
    if arguments.json:
        facts = _folder_json(cache) | {"entries": len(entries), "dropped": arguments.drop}
        print(json.dumps(facts | {"damaged": problems}, indent=2))
    else:
        for entry, problem in damaged.items():
            print(f"{'dropping ' if arguments.drop else ''}{entry.path}: {problem}")
        print(f"{_total(entries)} in {cache.folder}: {len(damaged)} damaged")
        _tell_of_distrust(cache)
    return 1 if (damaged and not arguments.drop) or cache.distrust() is not None else 0


def _prune(arguments: argparse.Namespace) -> int:
    if not arguments.all and arguments.older_than is None and arguments.max_size is None:
        arguments.usage.error("say what to remove: --older-than DAYS, --max-size SIZE or --all")
    cache = disk_cache()
    chosen = _chosen(cache.entries(), arguments, time.time())
    removed = [_entry_json(entry) for entry in chosen]
    if not arguments.dry_run:
        for entry in chosen:
            entry.drop()
        _remove_leftovers(cache, arguments)
    if arguments.json:
        facts = _folder_json(cache) | {"dry_run": arguments.dry_run}
        print(json.dumps(facts | {"removed": removed}, indent=2))
    else:
        print(f"{'would remove' if arguments.dry_run else 'removed'} {_total(chosen)} in {cache.folder}")
        _tell_of_distrust(cache)
    return 0


def _folder_json(cache: DiskCache) -> dict[str, object]:
    """Which cache it is; ``distrust`` is why nothing in it is used, null if it is trusted."""
    return {"folder": str(cache.folder), "distrust": cache.distrust()}


def _tell_of_distrust(cache: DiskCache) -> None:
    why = cache.distrust()
    print("it is trusted" if why is None else f"it is not trusted, and not used: {why}")


def _entry_json(entry: CacheEntry) -> dict[str, object]:
    """What is known of an entry while it is there; ``used`` are seconds since 1970."""
    about = entry.about()
    words = asdict(about) if about is not None else {}
    return {"key": entry.key, "path": str(entry.path), "bytes": entry.size, "used": entry.used} | words


def _chosen(entries: Sequence[CacheEntry], arguments: argparse.Namespace, now: float) -> list[CacheEntry]:
    """The entries to remove: unused ones, then the least recently used ones beyond the size allowed."""
    if arguments.all:
        return list(entries)
    old = arguments.older_than
    chosen = [e for e in entries if old is not None and now - e.used > old * DAY]
    if arguments.max_size is not None:
        taken, total = set(chosen), 0
        for entry in sorted(entries, key=lambda entry: (-entry.used, entry.key)):
            total += 0 if entry in taken else entry.size
            if total > arguments.max_size and entry not in taken:
                chosen.append(entry)
    return chosen


def _remove_leftovers(cache: DiskCache, arguments: argparse.Namespace) -> None:
    """Remove what is no entry: files of writers that died, and loop nests as old as the entries to remove."""
    for path in cache.leftovers(LEFT_BEHIND):
        cache.remove(path)
    days = 0.0 if arguments.all else arguments.older_than
    for path in [] if days is None else cache.nests(days * DAY):
        cache.remove(path)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not days >= 0:
        raise argparse.ArgumentTypeError(f"a number of days, 0 or more, is expected, found {text!r}")
    return days


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"a size such as 500M or 2G is expected, found {text!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


def _total(entries: Sequence[CacheEntry]) -> str:
    return f"{count_text(len(entries), 'entry', 'entries')}, {bytes_text(sum(e.size for e in entries))}"


def _age(seconds: float) -> str:
    for length, name in ((DAY, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {name} ago"
    return "now"
