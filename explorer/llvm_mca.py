"""What ``llvm-mca`` says of a loop, where it is installed: LLVM's simulator of a processor's units.

https://llvm.org/docs/CommandGuide/llvm-mca.html. It takes all that is loaded to be in the first cache, and no load to
wait for a store.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

from ..base.dataclass import dataclass
from ..base.target import Target
from ..codegen.report.assembly import Instruction

NEWEST, OLDEST = 40, 15
"""The versions that are looked for, as ``llvm-mca-19``: the newest knows most processors."""
ITERATIONS = 100
MOST_SECONDS = 20.0
SHOWN_UNITS = 4
"""The busiest units of the processor, of which an opinion tells."""

_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.MULTILINE)
_BOTTLENECK = re.compile(r"^  (?:- )?(Resource Pressure|\w+ Dependencies)\s+\[ ([\d.]+)% \]", re.MULTILINE)
_UNIT = re.compile(r"^\[([\d.]+)\]\s+- (\S+)", re.MULTILINE)
_PRESSURE = re.compile(r"^Resource pressure per iteration:\n(.*)\n(.*)", re.MULTILINE)
_UNKNOWN = "is not a recognized processor"


@dataclass(frozen=True, slots=True)
class McaOpinion:
    """What the simulation of ``cpu`` says: cycles an iteration; the share of cycles in which more and more instructions
    wait, by what they wait for; and for how many cycles of an iteration the busiest units of the processor work."""

    tool: str
    cpu: str
    cycles: float
    waits: tuple[tuple[str, float], ...]
    units: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """Why there is no opinion."""

    why: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, and what it calls itself, as in ``llvm-mca 19.1.7``."""

    path: str
    name: str


def ask_llvm_mca(instructions: Sequence[Instruction], target: Target) -> McaOpinion | Silence:
    """The opinion on a loop of these instructions, or why there is none; raises nothing."""
    from ..codegen.machine import feature_string

    tool = find_tool()
    if tool is None:
        return Silence("llvm-mca is not installed: it comes with LLVM's tools")
    line = [tool.path, f"-mtriple={target.triple}", f"-mcpu={target.cpu}", f"-mattr={feature_string(target)}"]
    line += [f"-iterations={ITERATIONS}", "-bottleneck-analysis", "-instruction-info=0", "-"]
    text = "".join(f"\t{instruction}\n" for instruction in instructions)
    try:
        done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Silence(f"{tool.name} fails: {error}")
    if _UNKNOWN in done.stderr:
        return Silence(f"{tool.name} does not know the processor {target.cpu}")
    opinion = read_opinion(done.stdout, tool.name, target.cpu)
    if done.returncode or opinion is None:
        said = next(iter(done.stderr.splitlines()), "it prints no summary")
        return Silence(f"{tool.name} fails: {said}")
    return opinion


@cache
def find_tool() -> Tool | None:
    """The llvm-mca to ask."""
    names = [*(f"llvm-mca-{version}" for version in range(NEWEST, OLDEST - 1, -1)), "llvm-mca"]
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"LLVM version (\S+)", said.stdout)
    return Tool(path, f"llvm-mca {version[1]}" if version else "llvm-mca")


def read_opinion(text: str, tool: str, cpu: str) -> McaOpinion | None:
    """Read what llvm-mca prints; None where it has no summary."""
    cycles = _CYCLES.search(text)
    if cycles is None:
        return None
    waits = sorted(((what.lower(), float(share) / 100) for what, share in _BOTTLENECK.findall(text)), key=_by_number)
    return McaOpinion(
        tool, cpu, int(cycles[1]) / ITERATIONS, tuple((what, share) for what, share in waits if share), _units(text)
    )


def _units(text: str) -> tuple[tuple[str, float], ...]:
    """The busiest units, with the cycles that they work in an iteration. Alike ones, as ``12.0`` and ``12.1``, have one
    name; of them the busiest counts."""
    names = dict(_UNIT.findall(text))
    table = _PRESSURE.search(text)
    if table is None:
        return ()
    busy: dict[str, float] = {}
    for number, cycles in zip(re.findall(r"\[([\d.]+)\]", table[1]), table[2].split(), strict=False):
        if cycles != "-" and number in names:
            busy[names[number]] = max(busy.get(names[number], 0.0), float(cycles))
    return tuple(sorted(busy.items(), key=_by_number)[:SHOWN_UNITS])


def _by_number(item: tuple[str, float]) -> tuple[float, str]:
    return -item[1], item[0]
