"""Targets: what code is generated for, as plain data. ``codegen/host.py`` finds out what the machine at hand is.

A target is written ``"native"``, an LLVM cpu name such as ``"x86-64-v3"``, or a line such as
``"llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -mattr=+sve -threads=4 -libs=cblas"``. In place of ``llvm`` may
stand a kind that another distribution adds (``target_kind.py``).
"""

from __future__ import annotations

import re
from dataclasses import replace

from .brief import listed, one_line
from .dataclass import dataclass
from .dtype import DType
from .errors import TargetError
from .quantities import count_text

LLVM = "llvm"
"""The kind of the targets that are ours."""

_SYSTEMS = {"linux": "linux", "darwin": "macos", "macos": "macos", "windows": "windows", "mingw": "windows"}


def system_of(triple: str) -> str:
    """The operating system that a triple names: see ``Target.system``."""
    return next((system for word, system in _SYSTEMS.items() if word in triple), "other")


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A CPU, described.

    ``features`` are LLVM feature names that are on (``"avx2"``, ``"fma"``; without sign), ``threads`` 0 means "as the
    environment says". Sizes are bytes. ``fma_per_cycle`` is how many of the widest vectors a core multiplies and adds
    in a cycle, on which depends what implementations cost. ``keys`` order strategy look-up, the most specific first. A
    ``kind`` other than ``"llvm"`` is what the distribution ``provider`` (name and version) adds.
    """

    triple: str
    cpu: str
    features: frozenset[str] = frozenset()
    threads: int = 0
    libs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ("cpu", "generic")
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    fma_per_cycle: int = 2
    kind: str = LLVM
    provider: str = ""

    @property
    def arch(self) -> str:
        """``"x86_64"``, ``"aarch64"``, …: the first part of the triple."""
        return self.triple.split("-", 1)[0]

    @property
    def system(self) -> str:
        """The operating system: ``"linux"``, ``"macos"``, ``"windows"`` or ``"other"``."""
        return system_of(self.triple)

    def has(self, *features: str) -> bool:
        """Whether all these LLVM features are on."""
        return self.features.issuperset(features)

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector register to use."""
        if self.arch == "x86_64":
            return 512 if self.has("avx512f") else 256 if self.has("avx") else 128
        return 128

    @property
    def vector_registers(self) -> int:
        """Number of architectural vector registers."""
        return 16 if self.arch == "x86_64" and not self.has("avx512f") else 32

    @property
    def has_fma(self) -> bool:
        """Whether it multiplies and adds in one instruction."""
        return self.has("fma") if self.arch in ("x86_64", "i686") else self.arch in ("aarch64", "arm64", "riscv64")

    @property
    def multiplies_bytes(self) -> bool:
        """Whether one instruction adds four products of bytes in each lane of the widest vectors."""
        return self.multiplies_bytes_in(self.lanes("int32"))

    def multiplies_bytes_in(self, lanes: int) -> bool:
        """Whether one instruction adds four products of bytes in each of so many lanes of int32."""
        if self.arch != "x86_64":
            return False
        if lanes == 16:
            return self.has("avx512vnni")
        return lanes in (4, 8) and (self.has("avx512vnni", "avx512vl") or self.has("avxvnni"))

    @property
    def has_tiles(self) -> bool:
        """Whether registers that hold small matrices multiply bytes, and Linux is there to give leave to use them."""
        return self.arch == "x86_64" and self.system == "linux" and self.has("amx-tile", "amx-int8")

    def lanes(self, kind: DType | str) -> int:
        """How many values of a dtype fill a vector register."""
        from .dtype import dtype

        return max(1, self.vector_bits // dtype(kind).storage_bits)

    def with_threads(self, threads: int) -> Target:
        """The target with another number of ``threads``."""
        return replace(self, threads=threads)

    def __repr__(self) -> str:
        kind = "" if self.kind == LLVM else f"{self.kind}, "
        threads = f", {count_text(self.threads, 'thread')}" if self.threads else ""
        libs = f", {listed(self.libs, 60)}" if self.libs else ""
        return one_line(f"<Target {kind}{self.cpu}, {self.triple}, vectors of {self.vector_bits} bits{threads}{libs}>")

    def __str__(self) -> str:
        """The canonical spelling, which parses back to this target; cache keys use it."""
        parts = [self.kind, f"-mtriple={self.triple}", f"-mcpu={self.cpu}"]
        if self.features:
            parts.append("-mattr=" + ",".join(f"+{f}" for f in sorted(self.features)))
        if self.threads:
            parts.append(f"-threads={self.threads}")
        if self.libs:
            parts.append("-libs=" + ",".join(self.libs))
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The words of a target line, before anything is known about the cpu. ``attributes`` keep their + or -."""

    triple: str | None = None
    cpu: str | None = None
    attributes: tuple[str, ...] = ()
    threads: int = 0
    libs: tuple[str, ...] = ()
    kind: str = LLVM


def brief_target(text: str) -> str:
    """The processor and the system of a target's text, without its features, which fill lines."""
    found = [re.search(rf"-{option}=(\S+)", text) for option in ("mcpu", "mtriple")]
    return ", ".join(match[1] for match in found if match) or text


def parse_target_line(line: str) -> TargetOptions:
    """Split a target line into its options; a word by itself is taken for a cpu. Raises ``TargetError`` for a word that
    is no option."""
    words = line.split()
    if not words:
        raise TargetError('the target is empty; write "native", a cpu name, or "llvm -mcpu=… -mattr=…"')
    if words == [words[0]] and words[0] != LLVM:
        return TargetOptions(cpu=words[0])
    options: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or name not in ("-mtriple", "-mcpu", "-mattr", "-threads", "-libs"):
            raise TargetError(
                f"target {line!r}: {word!r} is no option; there are -mtriple=, -mcpu=, -mattr=, -threads=, -libs="
            )
        options[name] = value
    threads = options.get("-threads", "0")
    if not threads.isdigit():
        raise TargetError(f"target {line!r}: -threads takes a number, not {threads!r}")
    attributes = tuple(a for a in options.get("-mattr", "").split(",") if a)
    for attribute in attributes:
        if attribute[0] not in "+-":
            raise TargetError(f"target {line!r}: write +{attribute} or -{attribute} in -mattr")
    return TargetOptions(
        triple=options.get("-mtriple"),
        cpu=options.get("-mcpu"),
        attributes=attributes,
        threads=int(threads),
        libs=tuple(dict.fromkeys(lib for lib in options.get("-libs", "").split(",") if lib)),
        kind=words[0],
    )
