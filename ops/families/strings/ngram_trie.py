"""N-grams as a trie in constant tables: edges from a node by a token, found by hashing.

Node 0 is the root, and edge k leads to node k + 1. So a walk along a row of tokens looks at each n-gram once, however
many there are that begin alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass

PARENT_FACTOR, MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
"""Odd numbers of 64 bits whose bits look random: those of the golden ratio, and of the mixer splitmix64."""
NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class NgramTrie:
    """``slots`` are numbers of edges by hash, as int32, -1 where there is none. Of each edge: the node that it comes
    from, the token, and the column of the n-gram that ends there, -1 if none does."""

    slots: npt.NDArray[np.int32]
    parents: npt.NDArray[np.int32]
    tokens: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]


def ngram_trie(ngrams: Iterable[tuple[Sequence[int], int]]) -> NgramTrie:
    """The trie of n-grams, each with its column. Of equal ones the first counts."""
    edges: dict[tuple[int, int], int] = {}
    columns: list[int] = []
    for tokens, column in ngrams:
        node = 0
        for token in tokens:
            if (node, token) not in edges:
                edges[node, token] = len(columns)
                columns.append(NONE)
            node = edges[node, token] + 1
        if node and columns[node - 1] == NONE:
            columns[node - 1] = column
    count = 2
    while count < 2 * len(edges):
        count *= 2
    slots = [NONE] * count
    for (parent, token), edge in edges.items():
        slot = _hash(parent, token) % count
        while slots[slot] != NONE:
            slot = (slot + 1) % count
        slots[slot] = edge
    parents, all_tokens = zip(*edges, strict=True) if edges else ((0,), (0,))
    return NgramTrie(
        np.array(slots, np.int32),
        np.array(parents, np.int32),
        np.array(all_tokens, np.int64),
        np.array(columns or [NONE], np.int32),
    )


def _hash(parent: int, token: int) -> int:
    mixed = ((token ^ parent * PARENT_FACTOR) * MIX) % (1 << 64)
    return mixed >> 32
