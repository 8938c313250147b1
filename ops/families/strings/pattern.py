"""Regular expressions in RE2's syntax, read into a tree: what of that is regular, over code points.

    Pattern = Chars(ranges) | Concatenation(parts) | Alternation(parts) | Repeat(part, least, most) | Anchor(kind)

Groups are not remembered, and lazy repeats are as greedy ones, since only the language counts. Not read: flags that
depend on lines. Source: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal, TypeAlias

from ....base.dataclass import dataclass
from ....base.errors import ExpressionError

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points from the first to the last of each pair."""
AnchorKind: TypeAlias = Literal["begin", "end", "boundary", "no boundary"]
LAST = sys.maxunicode
MOST_REPEATS = 1000
"""RE2's limit, too."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One code point out of some ranges; of no range, nothing matches."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Anchor:
    """What holds between two characters: the begin or end of the text, that one of them is of a word and the other not,
    or that this is not so."""

    kind: AnchorKind


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The parts one after the other; of no parts, the empty text."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the parts."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times, from ``least`` to ``most`` times; None: any number."""

    part: Pattern
    least: int
    most: int | None


Pattern: TypeAlias = Chars | Anchor | Concatenation | Alternation | Repeat

_DIGITS: Ranges = ((48, 57),)
_WORDS: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_BLANKS: Ranges = ((9, 10), (12, 13), (32, 32))
_PERL = {"d": _DIGITS, "w": _WORDS, "s": _BLANKS}
_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LETTERS: Ranges = ((65, 90), (97, 122))
_POSIX: dict[str, Ranges] = {
    "alnum": (*_DIGITS, *_LETTERS),
    "alpha": _LETTERS,
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORDS,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


def read_pattern(text: str) -> Pattern:
    """The tree of a regular expression. Raises ``ExpressionError`` for what is none, or is not supported."""
    reader = _Reader(text)
    found = reader.choice(_Flags())
    if reader.at < len(text):
        raise reader.error("a ) without its (")
    return found


def union(parts: Iterable[Ranges]) -> Ranges:
    """The code points of any of some sets, in order and apart."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(pair for ranges in parts for pair in ranges):
        if made and low <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(high, made[-1][1]))
        else:
            made.append((low, high))
    return tuple(made)


def without(ranges: Ranges) -> Ranges:
    """All other code points."""
    made, begin = [], 0
    for low, high in union([ranges]):
        if begin < low:
            made.append((begin, low - 1))
        begin = high + 1
    return (*made, (begin, LAST)) if begin <= LAST else tuple(made)


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    dot_newline: bool = False


@dataclass(slots=True)
class _Reader:
    """Mutable: how far it has read."""

    text: str
    at: int = 0

    def error(self, problem: str) -> ExpressionError:
        return ExpressionError(f"the regular expression {self.text!r} has {problem} at character {self.at}")

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def take(self, what: str) -> bool:
        found = self.text.startswith(what, self.at)
        self.at += len(what) * found
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.error("no end")
        self.at += 1
        return self.text[self.at - 1]

    def choice(self, flags: _Flags) -> Pattern:
        parts = []
        while True:
            made, flags = self._sequence(flags)
            parts.append(made)
            if not self.take("|"):
                return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def _sequence(self, flags: _Flags) -> tuple[Pattern, _Flags]:
        parts: list[Pattern] = []
        while self.peek() not in ("", "|", ")"):
            if self.peek(2) == "(?" and (inner := self._flags_alone(flags)) is not None:
                flags = inner
                continue
            parts.append(self._repeated(self._atom(flags)))
        return (parts[0] if len(parts) == 1 else Concatenation(tuple(parts))), flags

    def _flags_alone(self, flags: _Flags) -> _Flags | None:
        """The flags of ``(?i)`` from here on; None, and nothing read, for a group."""
        end = self.text.find(")", self.at)
        letters = self.text[self.at + 2 : end] if end >= 0 else ""
        if not letters or not set(letters) <= set("imsU-"):
            return None
        self.at = end + 1
        return self._changed(flags, letters)

    def _changed(self, flags: _Flags, letters: str) -> _Flags:
        given, _, taken = letters.partition("-")
        if "m" in given:
            raise self.error("the flag m, which is not supported,")
        ignore = (flags.ignore_case or "i" in given) and "i" not in taken
        return _Flags(ignore, (flags.dot_newline or "s" in given) and "s" not in taken)

    def _repeated(self, part: Pattern) -> Pattern:
        while True:
            if self.take("*"):
                least, most = 0, None
            elif self.take("+"):
                least, most = 1, None
            elif self.take("?"):
                least, most = 0, 1
            elif (bounds := self._bounds()) is not None:
                least, most = bounds
            else:
                return part
            self.take("?")
            part = Repeat(part, least, most)

    def _bounds(self) -> tuple[int, int | None] | None:
        """``{2}``, ``{2,}`` and ``{2,5}``; another brace is a character."""
        end = self.text.find("}", self.at)
        if self.peek() != "{" or end < 0:
            return None
        first, comma, last = self.text[self.at + 1 : end].partition(",")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return None
        least = int(first)
        most = (int(last) if last else None) if comma else least
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise self.error("bounds of a repeat that are no bounds")
        self.at = end + 1
        return least, most

    def _atom(self, flags: _Flags) -> Pattern:
        match self.next():
            case "(":
                return self._group(flags)
            case "[":
                return Chars(_folded(self._class(), flags))
            case ".":
                return Chars(((0, LAST),) if flags.dot_newline else ((0, 9), (11, LAST)))
            case "^":
                return Anchor("begin")
            case "$":
                return Anchor("end")
            case "\\":
                return self._escape(flags)
            case "*" | "+" | "?" as sign:
                raise self.error(f"nothing before {sign}")
            case char:
                return Chars(_folded(((ord(char), ord(char)),), flags))

    def _group(self, flags: _Flags) -> Pattern:
        if self.take("?"):
            if self.take("P<") or (self.peek(2) not in ("<=", "<!") and self.take("<")):
                self.at = self.text.find(">", self.at) + 1
            else:
                end = self.text.find(":", self.at)
                letters = self.text[self.at : end] if end >= 0 else "?"
                if not set(letters) <= set("imsU-"):
                    raise self.error(f"a group (?{self.peek()}, which is not regular,")
                self.at = end + 1
                flags = self._changed(flags, letters)
        found = self.choice(flags)
        if not self.take(")"):
            raise self.error("a ( without its )")
        return found

    def _escape(self, flags: _Flags) -> Pattern:
        match self.next():
            case "A":
                return Anchor("begin")
            case "z" | "Z":
                return Anchor("end")
            case "b":
                return Anchor("boundary")
            case "B":
                return Anchor("no boundary")
            case "Q":
                end = self.text.find("\\E", self.at)
                quoted = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at += len(quoted) + 2 * (end >= 0)
                return Concatenation(tuple(Chars(_folded(((ord(c), ord(c)),), flags)) for c in quoted))
            case letter:
                return Chars(_folded(self._escaped(letter), flags))

    def _escaped(self, letter: str) -> Ranges:
        """The code points of an escape, inside a class or not."""
        if letter.lower() in _PERL:
            ranges = _PERL[letter.lower()]
            return ranges if letter.islower() else without(ranges)
        if letter in _ESCAPES:
            return ((_ESCAPES[letter],) * 2,)
        if letter in "pP":
            found = self._category()
            return found if letter == "p" else without(found)
        if letter == "x":
            digits = self._until("}") if self.take("{") else self.next() + self.next()
            return (self._code_point(digits, 16),)
        if letter == "0":
            digits = "0"
            while len(digits) < 3 and self.peek() and self.peek() in "01234567":
                digits += self.next()
            return (self._code_point(digits, 8),)
        if letter.isalnum():
            raise self.error(f"\\{letter}, which is not supported,")
        return ((ord(letter), ord(letter)),)

    def _code_point(self, digits: str, base: int) -> tuple[int, int]:
        try:
            number = int(digits, base)
        except ValueError:
            raise self.error(f"the code point {digits!r}, which is none,") from None
        if number > LAST:
            raise self.error(f"the code point {digits!r}, which is none,")
        return number, number

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise self.error(f"no {end}")
        found = self.text[self.at : stop]
        self.at = stop + 1
        return found

    def _category(self) -> Ranges:
        name = self._until("}") if self.take("{") else self.next()
        negated = name.startswith("^")
        found = _of_category(name.removeprefix("^"))
        if not found:
            raise self.error(f"\\p{{{name}}}, which is no general category of Unicode,")
        return without(found) if negated else found

    def _class(self) -> Ranges:
        negated = self.take("^")
        parts: list[Ranges] = []
        first = True
        while first or self.peek() != "]":
            first = False
            if self.take("[:"):
                parts.append(self._posix())
                continue
            ranges = self._class_item()
            if self.peek() == "-" and self.peek(2) not in ("-]", "-") and len(ranges) == 1:
                self.at += 1
                last = self._class_item()
                if len(last) != 1 or last[0][1] < ranges[0][0]:
                    raise self.error("a range that ends before it begins,")
                ranges = ((ranges[0][0], last[0][1]),)
            parts.append(ranges)
        self.at += 1
        found = union(parts)
        return without(found) if negated else found

    def _class_item(self) -> Ranges:
        char = self.next()
        return self._escaped(self.next()) if char == "\\" else ((ord(char), ord(char)),)

    def _posix(self) -> Ranges:
        name = self._until(":")
        self.take("]")
        found = _POSIX.get(name.removeprefix("^"))
        if found is None:
            raise self.error(f"[:{name}:], which is no class,")
        return without(found) if name.startswith("^") else found


def _folded(ranges: Ranges, flags: _Flags) -> Ranges:
    """Ranges with the letters that differ in case only, too, where ``(?i)`` holds."""
    if not flags.ignore_case:
        return ranges
    others = {
        ord(other)
        for low, high in ranges
        for code in range(low, min(high, 0x1E943) + 1)
        for other in (chr(code).lower(), chr(code).upper())
        if len(other) == 1
    }
    return union([ranges, tuple((code, code) for code in others)])


@cache
def _of_category(name: str) -> Ranges:
    """The code points of a general category, as ``Lu``, or of all that begin so."""
    return union([tuple((c, c) for c in range(LAST + 1) if unicodedata.category(chr(c)).startswith(name))])
