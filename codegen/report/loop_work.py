"""What the instructions of an innermost loop of x86-64 ask of a core in one iteration: what a machine model goes by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...base.dataclass import dataclass
from .assembly import Instruction
from .x86 import reads_memory, stores_memory

_VECTOR = re.compile(r"%([xyz])mm(\d+)")
_BITS = {"x": 128, "y": 256, "z": 512}
_ARITHMETIC = re.compile(
    r"v?(?:mul|add|sub|max|min|addsub)[ps][sdh]|vfn?m(?:add|sub|addsub|subadd)\d+[ps][sdh]|vpdp\w+|vdpbf16ps|vpmadd\w+"
)
_ADDS_TO_ITS_TARGET = re.compile(r"vfn?m\w+|vpdp\w+|vdpbf16ps")
_WRITES_NO_VECTOR = re.compile(r"v?u?comis[sdh]|vp?test\w*|vpcmp\w+|(?:v?p?mov|vp)msk\w*|cmp\w*|test\w*")
_UNPIPELINED = re.compile(r"v?(?:div|sqrt)[ps][sdh]")
_INTEGER_DIVISION = re.compile(r"i?div[bwlq]")
_GATHERS = re.compile(r"vp?(?:gather|scatter)\w+")
_ADDRESS_REGISTER = re.compile(r"%([a-z][a-z0-9]+)")


@dataclass(frozen=True, slots=True)
class LoopWork:
    """An iteration of a loop. ``arithmetic`` are the instructions that multiply or add floats, or multiply integers in
    vectors; ``widest`` are those of them on vectors of ``bits`` bits, the widest that there are. ``chain`` is how many
    of them wait for each other from one iteration to the next. ``beyond`` names what a model by counts leaves out."""

    instructions: int
    arithmetic: int
    widest: int
    bits: int
    loads: int
    stores: int
    chain: int
    beyond: tuple[str, ...]


def loop_work(instructions: Sequence[Instruction]) -> LoopWork:
    """Read the instructions of a loop, in order."""
    widths = [_width(i) for i in instructions if _ARITHMETIC.fullmatch(i.name)]
    bits = max(widths, default=0)
    return LoopWork(
        len(instructions),
        len(widths),
        widths.count(bits),
        bits,
        sum(map(reads_memory, instructions)),
        sum(map(stores_memory, instructions)),
        _longest_chain(instructions),
        tuple(dict.fromkeys(_beyond(instructions))),
    )


def _width(instruction: Instruction) -> int:
    return max((_BITS[letter] for op in instruction.operands for letter, _ in _VECTOR.findall(op)), default=0)


def _longest_chain(instructions: Sequence[Instruction]) -> int:
    """The most arithmetic that leads from a register at the begin of an iteration to the same one at its end."""
    steps = [(_sources(i), _destination(i), bool(_ARITHMETIC.fullmatch(i.name))) for i in instructions]
    longest = 0
    for register in {written for _, written, _ in steps if written}:
        depths = {register: 0}
        for sources, written, is_arithmetic in steps:
            if written is None:
                continue
            behind = [depths[source] for source in sources if source in depths]
            if behind:
                depths[written] = max(behind) + is_arithmetic
            else:
                depths.pop(written, None)
        longest = max(longest, depths.get(register, 0))
    return longest


def _destination(instruction: Instruction) -> str | None:
    """The vector register that an instruction writes."""
    if not instruction.operands or _WRITES_NO_VECTOR.fullmatch(instruction.name):
        return None
    found = _VECTOR.match(instruction.operands[-1])
    return found[2] if found else None


def _sources(instruction: Instruction) -> set[str]:
    """The vector registers that what an instruction writes depends on."""
    *given, last = instruction.operands or ("",)
    read = [number for operand in given for _, number in _VECTOR.findall(operand)]
    if "xor" in instruction.name and len(given) == 2 and given[0] == given[1]:
        return set()  # makes a zero, of whatever is in them
    is_merged = "{%k" in last and "{z}" not in last
    two_operands = not instruction.name.startswith("v") and "mov" not in instruction.name
    if _ADDS_TO_ITS_TARGET.fullmatch(instruction.name) or is_merged or two_operands:
        read += [number for _, number in _VECTOR.findall(last)]
    return set(read)


def _beyond(instructions: Sequence[Instruction]) -> Iterator[str]:
    for instruction in instructions:
        if instruction.name.startswith("call"):
            yield f"the call of {instruction.operands[-1].removesuffix('@PLT')}"
        elif _UNPIPELINED.fullmatch(instruction.name) or _INTEGER_DIVISION.fullmatch(instruction.name):
            yield "divisions and roots, which take many cycles each"
        elif _GATHERS.fullmatch(instruction.name):
            yield "gathers and scatters, which take a load or store for each lane"
    if _goes_through_memory(instructions):
        yield "a value that one iteration stores and the next one loads"


def _goes_through_memory(instructions: Sequence[Instruction]) -> bool:
    """Whether an address that stays the same is stored to and loaded from."""
    written = {_whole(i.operands[-1]) for i in instructions if i.operands and i.operands[-1].startswith("%")}
    stored = {i.operands[-1] for i in instructions if stores_memory(i)}
    loaded = {operand for i in instructions if reads_memory(i) for operand in i.operands if "(" in operand}
    fixed = (a for a in stored & loaded if not written.intersection(map(_whole, _ADDRESS_REGISTER.findall(a))))
    return next(fixed, None) is not None


def _whole(register: str) -> str:
    """The register of 64 bits that one of fewer is a part of: ``eax``, ``rax``; ``r8d``, ``r8``."""
    name = register.removeprefix("%")
    if name[:1] == "r":
        return name.rstrip("dwb") if name[1:2].isdigit() else name
    return f"r{name[1:]}" if name[:1] == "e" else name
