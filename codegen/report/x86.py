"""What instructions of x86-64 do, as far as a report on vector code asks: read from their names and operands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import fields

from ...base.dataclass import dataclass
from .assembly import Instruction

_REGISTER = re.compile(r"%([xyz])mm\d+")
_BITS = {"x": 128, "y": 256, "z": 512}
_SCALAR = re.compile(
    r"v?(add|sub|mul|div|min|max|sqrt|mov|u?comi|cmp\w*|rsqrt(14)?|rcp(14)?|round|rndscale|fn?m(add|sub)\d+)s[sdh]"
    r"|v?cvtt?(usi|si|ss|sd|sh)2\w+"
)
_FUSED = re.compile(r"v?fn?m(add|sub)")
_PRODUCT, _SUM = re.compile(r"v?mulp[sdh]"), re.compile(r"v?(add|sub)p[sdh]")
_ONE_LANE = re.compile(r"v?p?(insert(ps|[bwdq])|extr(act(ps)|[bwdq]))|v?mov[hl]p[sd]")
_MEMORY = re.compile(r"\(%|\(,|\(%rip")
_MASK = re.compile(r"\{%k[1-7]\}")
_READS_LAST = re.compile(r"cmp|test|v?u?comis|vp?test|kortest|bt")
_NO_ACCESS = re.compile(r"lea[lq]|nop\w*|prefetch\w*|call\w*|j\w+")
_WRITES_ONLY = re.compile(
    r"k?mov\w*|v?p?mov\w*|vp?extr\w+|p?extr\w+|vextract\w+|vcvtps2ph|vp?compress\w+|vp?scatter\w+|set\w+"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many instructions of which kind there are. ``xmm``, ``ymm``, ``zmm``: vector instructions by register;
    ``scalar``: those on one float of a register. ``stored`` and ``reloaded`` use the stack. ``one_lane`` move single
    lanes in and out of vectors."""

    instructions: int = 0
    scalar: int = 0
    xmm: int = 0
    ymm: int = 0
    zmm: int = 0
    fused: int = 0
    products: int = 0
    sums: int = 0
    masked: int = 0
    gathers: int = 0
    scatters: int = 0
    one_lane: int = 0
    divisions: int = 0
    stored: int = 0
    reloaded: int = 0
    branches: int = 0
    calls: tuple[str, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def vectors(self) -> int:
        """How many instructions work on vectors, of any width."""
        return self.xmm + self.ymm + self.zmm

    @property
    def registers(self) -> str:
        """The widest vector registers in use: "zmm", "ymm", "xmm" or ""."""
        return next((name for name in ("zmm", "ymm", "xmm") if getattr(self, name)), "")

    @property
    def stack(self) -> int:
        """How many instructions spill registers to the stack, or load them from there again."""
        return self.stored + self.reloaded


def count(instructions: Iterable[Instruction], frame_pointer: bool, stack_lines: Collection[int] = ()) -> Counts:
    """The numbers of instructions by kind. ``frame_pointer``: %rbp points into the stack; ``stack_lines`` are the
    source lines whose accesses to the stack are meant, and not spills."""
    totals: dict[str, int] = {}
    calls: list[str] = []
    for instruction in instructions:
        for kind in _kinds(instruction, frame_pointer):
            if kind in ("stored", "reloaded") and instruction.line in stack_lines:
                continue
            totals[kind] = totals.get(kind, 0) + 1
        if _is_call(instruction):
            calls.append(instruction.operands[-1].removesuffix("@PLT"))
    return Counts(**totals, calls=tuple(calls))


def _is_call(instruction: Instruction) -> bool:
    """Calls, and jumps to another function, which are calls at the end of a function."""
    target = instruction.operands[-1] if instruction.operands else ""
    return instruction.name.startswith("call") or (instruction.name == "jmp" and not target.startswith((".L", "*")))


def uses_frame_pointer(instructions: Iterable[Instruction]) -> bool:
    """Whether a function sets %rbp to the stack pointer, so that accesses by %rbp are to the stack as well."""
    return any(i.name == "movq" and i.operands == ("%rsp", "%rbp") for i in instructions)


def reads_memory(instruction: Instruction) -> bool:
    """Whether an instruction loads something; those that change what is in memory load it, too."""
    if _NO_ACCESS.fullmatch(instruction.name) or not instruction.operands:
        return False
    *given, last = instruction.operands
    changes_last = _MEMORY.search(last) is not None and not (given and _WRITES_ONLY.fullmatch(instruction.name))
    return changes_last or any(_MEMORY.search(operand) for operand in given)


def stores_memory(instruction: Instruction) -> bool:
    """Whether an instruction writes to memory: its last operand is an address, and it is neither a comparison nor one
    that only computes or passes on the address."""
    if _NO_ACCESS.fullmatch(instruction.name) or _READS_LAST.match(instruction.name) or not instruction.operands:
        return False
    return _MEMORY.search(instruction.operands[-1]) is not None


def _kinds(instruction: Instruction, frame_pointer: bool) -> Iterable[str]:
    name, operands = instruction.name, instruction.operands
    yield "instructions"
    widths = [_BITS[letter] for operand in operands for letter in _REGISTER.findall(operand)]
    in_memory = any(_MEMORY.search(operand) for operand in operands)
    if _SCALAR.fullmatch(name):
        yield "scalar"
    elif widths:
        yield {128: "xmm", 256: "ymm", 512: "zmm"}[max(widths)]
        if _FUSED.match(name):
            yield "fused"
        elif _PRODUCT.fullmatch(name):
            yield "products"
        elif _SUM.fullmatch(name):
            yield "sums"
    if in_memory and ("maskmov" in name or any(_MASK.search(operand) for operand in operands)):
        yield "masked"
    if re.match(r"vp?gather", name):
        yield "gathers"
    if re.match(r"vp?scatter", name):
        yield "scatters"
    if _ONE_LANE.fullmatch(name):
        yield "one_lane"
    if re.fullmatch(r"i?div[bwlq]", name):
        yield "divisions"
    if name[0] == "j" and not name.startswith("jmp"):
        yield "branches"
    bases = ("(%rsp", "(%rbp") if frame_pointer else ("(%rsp",)
    on_stack = [base in operand for operand in operands for base in bases]
    if any(on_stack) and name != "leaq":
        last = any(base in operands[-1] for base in bases)
        yield "stored" if last and not _READS_LAST.match(name) else "reloaded"
