"""Pairs of an output and an input that exporters name alike: ``present.0.key`` and ``past_key_values.0.key``.

A name is words. Those that say whether it is a value before a run or behind it are left out, and what is left has to
be the same, and to be so for one input and one output only. ``present`` and ``past`` say so of anything; where words
are as common as ``in`` and ``out``, one of the others has to say that it is a state: ``new_cached_key_0`` and
``cached_key_0``, ``stateN`` and ``state``, ``hn`` and ``h0``, but not ``output_ids`` and ``input_ids``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..base.dataclass import dataclass

_BEFORE = frozenset({"in", "input", "inputs", "prev", "previous", "old", "init", "initial"})
_BEHIND = frozenset({"out", "output", "outputs", "next", "new", "updated", "n"})
_STATES = frozenset(
    {"state", "states", "cache", "caches", "cached", "memory", "memories", "hidden", "cell", "lstm", "gru", "rnn", "h"}
    | {"c", "hx", "cx", "hs", "cs", "attn", "conv", "ssm", "kv"}
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_STEP = re.compile(r"([hc])(n|0)")
"""The states of an LSTM as papers write them: hₙ behind the run, h₀ before."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What two names have to have in common; ``kind`` is how they say that they belong together."""

    kind: str
    words: tuple[str, ...]


def paired_names(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, str]:
    """The outputs, each with the input that it is in the next run; without those that could be several."""
    before = [(name, key) for name in inputs if (key := _key(name, "past", _BEFORE)) is not None]
    behind = [(name, key) for name in outputs if (key := _key(name, "present", _BEHIND)) is not None]
    counts = Counter(key for _, key in before), Counter(key for _, key in behind)
    of_key = {key: name for name, key in before}
    return {
        name: of_key[key]
        for name, key in behind
        if counts[0][key] == counts[1][key] == 1 and (key.kind == "cache" or _says(name, _BEHIND))
    }


def _key(name: str, cache: str, common: frozenset[str]) -> _Key | None:
    """The key of a name; None for one that no state has. ``cache`` is the word of a cache, ``common`` other words, that
    say whether it is a value before a run or behind it."""
    words = _words(name)
    if cache in words:
        at = words.index(cache)
        rest = words[at + 1 :]
        if rest[:2] == ["key", "values"]:  # of all layers; `past_key_0` is the key of one
            rest = rest[2:]
        return _Key("cache", (*words[:at], *rest))
    dropped = common | {"0"} if words[:1] in (["h"], ["c"]) else common
    left = tuple(word for word in words if word not in dropped)
    return _Key("state", left) if _STATES.intersection(left) else None


def _says(name: str, common: frozenset[str]) -> bool:
    return not common.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    if (step := _STEP.fullmatch(name)) is not None:
        return list(step.groups())
    return [word.lower() for word in _WORD.findall(name)]
