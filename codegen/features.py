"""What a cpu name means: the features it implies, and which names LLVM knows.

LLVM does not hand out either through llvmlite, so it is asked indirectly. *Implied features*: a function compiled for
the cpu plus feature ``f`` may be inlined into one compiled for the cpu alone exactly if the cpu has ``f``; one small
module probes all features at once. *Known names*: LLVM prints them on stderr for the cpu ``help``, in a child process.
The levels of x86-64 are written down here, so that their targets are had without LLVM.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache

from ..artifact.remembered import remembered
from ..base.child_python import python_command
from ..base.dataclass import dataclass
from ..base.errors import CacheError, TargetError
from .llvm_memory import require_for_compiling

_X86 = (
    "sse3 ssse3 sse4.1 sse4.2 popcnt crc32 avx f16c fma fma4 xop avx2 bmi bmi2 lzcnt movbe adx aes pclmul sha gfni "
    "vaes vpclmulqdq avxvnni avxvnniint8 avxvnniint16 avxifma avxneconvert avx512f avx512cd avx512bw avx512dq avx512vl "
    "avx512vnni avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq avx512ifma avx512bf16 avx512fp16 "
    "avx512vp2intersect avx10.1 avx10.2 amx-tile amx-int8 amx-bf16 amx-fp16 "
    "sse4a tbm prfchw cmpccxadd raoint egpr push2pop2 ppx ndd ccmp nf cf zu"
)
_ARM = "neon fp-armv8 fullfp16 fp16fml bf16 dotprod i8mm lse aes sha2 crc sve sve2 sme"
_RISCV = "m a f d c v zfh zvfh zba zbb zbs zicond zfa zvfbfmin zvfbfwma"
_WASM = "simd128 relaxed-simd bulk-memory"

FEATURES: dict[str, tuple[str, ...]] = {
    "x86_64": tuple(_X86.split()),
    "aarch64": tuple(_ARM.split()),
    "arm64": tuple(_ARM.split()),
    "riscv64": tuple(_RISCV.split()),
    "wasm32": tuple(_WASM.split()),
}
"""For each architecture, the features that a Target lists: those that code generation or strategies may ask for, and
those whose instructions LLVM takes unasked. A virtual machine may lack some that the name of its cpu implies."""

_NAMES = re.compile(r"[\w.+-]*( [\w.+-]+)*")

_V2 = frozenset(["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "crc32"])
_V3 = _V2.union(["avx", "f16c", "fma", "avx2", "bmi", "bmi2", "lzcnt", "movbe"])
_V4 = _V3.union(["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"])
LEVELS = {"x86-64": frozenset[str](), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""The features, of those in ``FEATURES``, that the levels of x86-64 have; the psABI of the System V defines them."""


def is_level(triple: str, cpu: str) -> bool:
    """Whether a cpu name is that of a level of x86-64."""
    return triple.startswith("x86_64-") and cpu in LEVELS


def _probe_module(triple: str, cpu: str, attributes: str, names: tuple[str, ...]) -> str:
    lines = [f'target triple = "{triple}"']
    for i, _ in enumerate(names):
        lines.append(f"define internal i32 @f{i}(i32 %x) #{i} {{\n  %y = mul i32 %x, {i + 3}\n  ret i32 %y\n}}")
    calls = "".join(f"  %x{i + 1} = call i32 @f{i}(i32 %x{i})\n" for i, _ in enumerate(names))
    lines.append(f"define i32 @probe(i32 %x0) #{len(names)} {{\n{calls}  ret i32 %x{len(names)}\n}}")
    for i, extra in enumerate((*names, None)):
        words = ",".join(w for w in (attributes, f"+{extra}" if extra else "") if w)
        hint = "inlinehint " if extra else ""
        lines.append(f'attributes #{i} = {{ {hint}"target-cpu"="{cpu}" "target-features"="{words}" }}')
    return "\n".join(lines)


@cache
def implied_features(triple: str, cpu: str, attributes: str = "") -> frozenset[str]:
    """The features, of those in ``FEATURES``, that a cpu with the given LLVM attributes has.

    Only for cpu and feature names that LLVM knows: it warns on stderr about others.
    """
    if is_level(triple, cpu) and not attributes:
        return LEVELS[cpu]
    names = " ".join(FEATURES.get(triple.split("-", 1)[0], ()))
    question = f"{triple} {cpu} {attributes} of {names}"
    return remembered(
        "features",
        (cpu, triple),
        question,
        lambda: probed_features(triple, cpu, attributes),
        lambda found: _lines(tuple(sorted(found))),
        lambda data: frozenset(_names_in(data, 1)[0]),
    )


def probed_features(triple: str, cpu: str, attributes: str) -> frozenset[str]:
    """The implied features, by asking LLVM, which takes 26 MiB of memory."""
    import llvmlite.binding as llvm

    from .pipeline import run_pipeline

    require_for_compiling()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    names = FEATURES.get(triple.split("-", 1)[0], ())
    module = llvm.parse_assembly(_probe_module(triple, cpu, attributes, names), llvm.create_context())
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=attributes)
    run_pipeline(module, machine, llvm.create_pipeline_tuning_options(speed_level=2))
    probe = str(module.get_function("probe"))
    left = set(re.findall(r"@f(\d+)\(", probe))
    return frozenset(name for i, name in enumerate(names) if str(i) not in left)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The cpu and feature names that LLVM accepts for an architecture."""

    cpus: tuple[str, ...]
    features: tuple[str, ...]


_LIST_NAMES = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""


@cache
def known_names(triple: str) -> KnownNames:
    """All names that LLVM knows for a triple. Raises ``TargetError`` for a triple that LLVM does not know."""
    return remembered(
        "names",
        ("cpus and features", triple),
        triple,
        lambda: _listed_names(triple),
        lambda found: _lines(found.cpus, found.features),
        lambda data: KnownNames(*_names_in(data, 2)),
    )


def _listed_names(triple: str) -> KnownNames:
    """The same, of a child process, which takes about 0.15 s."""
    code, printed = _in_a_child(_LIST_NAMES, triple)
    if code != 0:
        raise TargetError(f"LLVM knows no target of triple {triple!r}: {_reason(printed)}")
    cpus, _, features = printed.partition("Available features for this target:")
    pattern = re.compile(r"^  (\S+) +- ", re.MULTILINE)
    return KnownNames(tuple(pattern.findall(cpus)), tuple(pattern.findall(features)))


def _lines(*tuples: tuple[str, ...]) -> bytes:
    """Names as text, a line for each tuple."""
    return "\n".join(" ".join(names) for names in tuples).encode()


def _names_in(data: bytes, count: int) -> list[tuple[str, ...]]:
    """The names in so many lines. Raises ``CacheError`` for anything else."""
    lines = data.decode(errors="replace").split("\n")
    if len(lines) != count or not all(_NAMES.fullmatch(line) for line in lines):
        raise CacheError("it is no list of names")
    return [tuple(line.split()) for line in lines]


_TRY_OUT = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
triple, cpu, features = sys.argv[1:]
machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
module = llvm.parse_assembly(f'target triple = "{triple}"\\ndefine i64 @f(i64 %x) {{ ret i64 %x }}')
machine.emit_object(module)
"""


@cache
def check_together(triple: str, cpu: str, attributes: str) -> None:
    """Raise ``TargetError`` for attributes that LLVM knows each by itself, but does not compile for together: it would
    end the process, so that a child is asked."""
    code, printed = _in_a_child(_TRY_OUT, triple, cpu, attributes)
    if code != 0:
        raise TargetError(f"LLVM cannot compile for {cpu} with -mattr={attributes}: {_reason(printed)}")


def _in_a_child(program: str, *arguments: str) -> tuple[int, str]:
    """How a Python program ends, and what it prints on stderr."""
    command = python_command(program, *arguments)
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    return run.returncode, run.stderr


def _reason(printed: str) -> str:
    return (printed.strip().splitlines() or ["no reason given"])[-1].removeprefix("LLVM ERROR: ")
