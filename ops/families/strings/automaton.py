"""Automata of regular expressions over the bytes of UTF-8: a table of the next state by state and byte, as a constant.

The tree of a pattern becomes a nondeterministic automaton (Thompson 1968), whose sets of states are the states of the
deterministic one. A range of code points is some sequences of ranges of bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ....base.errors import ExpressionError
from .pattern import Alternation, Anchor, AnchorKind, Chars, Concatenation, Pattern, Repeat, read_pattern

DEAD = -1
MOST_STATES = 1 << 14
States: TypeAlias = frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """``steps[state, byte]`` is the next state, as int32, ``DEAD`` where nothing can match any more; it begins in state
    0. ``accepts`` says of each state whether a match ends there, where text ends, if the pattern asks for that."""

    steps: npt.NDArray[np.int32]
    accepts: npt.NDArray[np.bool_]


def automaton_of(text: str) -> Automaton:
    """The automaton of a regular expression in RE2's syntax, for whole texts. Raises ``ExpressionError`` for what is no
    regular expression, or is not supported."""
    return _deterministic(read_pattern(text), text)


def searching_automaton_of(texts: Sequence[str]) -> Automaton:
    """The automaton of what any of some regular expressions matches somewhere in a text. Raises ``ExpressionError`` for
    anchors, too."""
    parts = [read_pattern(text) for text in texts]
    for text, part in zip(texts, parts, strict=True):
        if any(isinstance(node, Anchor) for node in _nodes(part)):
            raise ExpressionError(f"the regular expression {text!r} has an anchor, which is not supported in a search")
    return _deterministic(Alternation(tuple(parts)), " or ".join(texts))


def literal_automaton(text: bytes) -> Automaton:
    """The automaton of one sequence of bytes."""
    steps = np.full((len(text) + 1, 256), DEAD, np.int32)
    steps[np.arange(len(text)), np.frombuffer(text, np.uint8)] = np.arange(1, len(text) + 1)
    return Automaton(steps, np.arange(len(text) + 1) == len(text))


def _nodes(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    match pattern:
        case Concatenation(parts) | Alternation(parts):
            for part in parts:
                yield from _nodes(part)
        case Repeat(part):
            yield from _nodes(part)
        case Chars() | Anchor():
            pass
        case _:
            assert_never(pattern)


@dataclass(slots=True)
class _Nondeterministic:
    """Mutable: grows state by state. ``moves`` are ranges of bytes with the state that they lead to, ``free`` states
    that are reached without a byte, ``anchored`` those that are so only where an anchor holds."""

    moves: list[list[tuple[int, int, int]]] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    anchored: list[list[tuple[AnchorKind, int]]] = field(default_factory=list)

    def state(self) -> int:
        self.moves.append([])
        self.free.append([])
        self.anchored.append([])
        if len(self.moves) > 64 * MOST_STATES:
            raise ExpressionError("a regular expression is too large")
        return len(self.moves) - 1

    def add(self, pattern: Pattern, begin: int) -> int:
        """States for a pattern from a state on; gives the one that it ends in."""
        match pattern:
            case Chars(ranges):
                end = self.state()
                for low, high in ranges:
                    for sequence in utf8_sequences(low, high):
                        self._add_bytes(sequence, begin, end)
                return end
            case Anchor(kind):
                end = self.state()
                self.anchored[begin].append((kind, end))
                return end
            case Concatenation(parts):
                for part in parts:
                    begin = self.add(part, begin)
                return begin
            case Alternation(parts):
                ends = [self.add(part, self._free(begin)) for part in parts]
                end = self.state()
                for each in ends:
                    self.free[each].append(end)
                return end
            case Repeat(part, least, most):
                return self._repeat(part, least, most, begin)
            case _:
                assert_never(pattern)

    def _add_bytes(self, sequence: Sequence[tuple[int, int]], begin: int, end: int) -> None:
        for low, high in sequence[:-1]:
            following = self.state()
            self.moves[begin].append((low, high, following))
            begin = following
        self.moves[begin].append((*sequence[-1], end))

    def _free(self, begin: int) -> int:
        """A new state that is reached without a byte."""
        made = self.state()
        self.free[begin].append(made)
        return made

    def _repeat(self, part: Pattern, least: int, most: int | None, begin: int) -> int:
        for _ in range(least):
            begin = self.add(part, begin)
        if most is None:
            loop = self._free(begin)
            self.free[self.add(part, loop)].append(loop)
            return self._free(loop)
        leaving = [begin]
        for _ in range(most - least):
            begin = self.add(part, self._free(begin))
            leaving.append(begin)
        end = self.state()
        for each in leaving:
            self.free[each].append(end)
        return end

    def reached(self, states: Iterable[int], anchors: Collection[AnchorKind]) -> States:
        """All states that some lead to without a byte, where these anchors hold."""
        found, waiting = set(states), list(states)
        while waiting:
            state = waiting.pop()
            following = [*self.free[state], *(to for kind, to in self.anchored[state] if kind in anchors)]
            waiting += [each for each in following if each not in found]
            found.update(following)
        return frozenset(found)

    def after_byte(self, states: States) -> Iterator[tuple[int, int, States]]:
        """The bytes, in ranges, that lead on from some states, and where to."""
        moves = [move for state in states for move in self.moves[state]]
        cuts = sorted({low for low, _, _ in moves} | {high + 1 for _, high, _ in moves} | _WORD_CUTS)
        for low, following in pairwise(cuts):
            targets = frozenset(to for first, last, to in moves if first <= low <= last)
            if targets:
                yield low, following, targets


_WORD_CUTS = {48, 58, 65, 91, 95, 96, 97, 123}
_WORD_BYTES = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class _State:
    """A state of the deterministic automaton: states before anchors were looked at, and what came before them."""

    states: States
    begins: bool = False
    behind_word: bool = False

    def anchors(self, before_word: bool, ends: bool = False) -> set[AnchorKind]:
        """The anchors that hold between what came before and what follows."""
        found: set[AnchorKind] = {"boundary" if before_word != self.behind_word else "no boundary"}
        if self.begins:
            found.add("begin")
        if ends:
            found.add("end")
        return found


def _deterministic(pattern: Pattern, text: str) -> Automaton:
    machine = _Nondeterministic()
    begin = machine.state()
    end = machine.add(pattern, begin)
    asks_for_words = any(isinstance(n, Anchor) and "boundary" in n.kind for n in _nodes(pattern))
    first = _State(frozenset([begin]), begins=True)
    numbers, order, rows = {first: 0}, [first], []
    for state in order:
        row = np.full(256, DEAD, np.int32)
        for is_word in (False, True):
            for low, following, targets in machine.after_byte(machine.reached(state.states, state.anchors(is_word))):
                if (low in _WORD_BYTES) != is_word:
                    continue
                made = _State(targets, behind_word=is_word and asks_for_words)
                if made not in numbers:
                    numbers[made] = len(order)
                    order.append(made)
                row[low:following] = numbers[made]
        rows.append(row)
        if len(order) > MOST_STATES:
            raise ExpressionError(f"the regular expression {text!r} needs more than {MOST_STATES} states")
    accepts = [end in machine.reached(each.states, each.anchors(False, ends=True)) for each in order]
    return Automaton(np.stack(rows), np.array(accepts))


def utf8_sequences(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """A range of code points as sequences of ranges of bytes; surrogates, which have no UTF-8, are left out."""
    if low <= 0xDFFF and high >= 0xD800:
        if low < 0xD800:
            yield from utf8_sequences(low, 0xD7FF)
        if high > 0xDFFF:
            yield from utf8_sequences(0xE000, high)
        return
    for last in (0x7F, 0x7FF, 0xFFFF):
        if low <= last < high:
            yield from utf8_sequences(low, last)
            yield from utf8_sequences(last + 1, high)
            return
    for bits in (6, 12, 18):
        mask = (1 << bits) - 1
        if low <= 0x7F or low & ~mask == high & ~mask:
            continue
        if low & mask:
            yield from utf8_sequences(low, low | mask)
            yield from utf8_sequences((low | mask) + 1, high)
            return
        if high & mask != mask:
            yield from utf8_sequences(low, (high & ~mask) - 1)
            yield from utf8_sequences(high & ~mask, high)
            return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
