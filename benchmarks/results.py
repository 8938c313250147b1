"""What a run of ``kernels.py`` or ``models.py`` found, and whether it meets its bar; stored as JSON, in parts."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cases.case import Bar

from loopwright.base.quantities import rate_text

OURS, DIRECT, STRICT, INVARIANT, OPENED = "loopwright", "direct", "strict", "invariant", "opened"
BESIDE = {
    DIRECT: "with direct arithmetic",
    STRICT: "with strict precision",
    INVARIANT: "with choices blind to the batch",
    OPENED: "with batch, height, width and sequence open",
}
"""Ours compiled otherwise, which is no peer."""


@dataclass(frozen=True)
class Result:
    """Seconds by contender, each the median over the rounds, of a case with so many threads.

    ``refused``: why a peer is left out. ``errors``: how far a peer's outputs are from ours. ``roof_seconds``: the least
    time that the machine allows, ``roof``: what bounds it, fma or the place of the data. ``operations`` and ``bytes``
    of a call. ``gain``: how much faster we are than in the case that ``bar.gain`` is about.
    """

    group: str
    name: str
    threads: int
    seconds: Mapping[str, float]
    refused: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    operations: int = 0
    bytes: int = 0
    roof: str = ""
    roof_seconds: float = 0.0
    bar: Bar = field(default_factory=Bar)
    gain: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.group, self.name, self.threads

    @property
    def best_peer(self) -> str | None:
        peers = {name: s for name, s in self.seconds.items() if name not in (OURS, *BESIDE) and self.right(name)}
        return min(peers, key=peers.__getitem__, default=None)

    def right(self, peer: str) -> bool:
        return self.errors.get(peer, 0.0) <= self.bar.apart

    @property
    def ratio(self) -> float | None:
        """The best peer's time over ours."""
        return self._ratio(OURS)

    @property
    def direct_ratio(self) -> float | None:
        """The best peer's time over ours with direct arithmetic, if that was measured."""
        return self._ratio(DIRECT)

    def _ratio(self, ours: str) -> float | None:
        if self.best_peer is None or ours not in self.seconds:
            return None
        return self.seconds[self.best_peer] / self.seconds[ours]

    @property
    def share(self) -> float | None:
        """Of the roofline; more than 1 for an algorithm that does less than the definition says."""
        return self.roof_seconds / self.seconds[OURS] if self.roof_seconds and OURS in self.seconds else None

    @property
    def met(self) -> bool:
        """Whether the bar is reached; without a peer or a roofline that part counts for nothing."""
        if OURS not in self.seconds or not all(map(self.right, self.errors)):
            return False
        fast = self.ratio is not None and self.ratio >= self.bar.ratio
        near = self.bar.share is not None and self.share is not None and self.share >= self.bar.share
        if self.bar.either:
            return fast or (near and self.roof == "memory")
        gained = self.bar.gain is None or self.gain is None or self.gain >= self.bar.gain
        return gained and (fast or self.ratio is None) and (near or self.bar.share is None)

    @property
    def rate(self) -> str:
        """GFLOP/s where there is arithmetic to speak of, else GB/s."""
        if OURS not in self.seconds:
            return ""
        if self.operations:
            return rate_text(self.operations / self.seconds[OURS], "FLOP/s")
        return rate_text(self.bytes / self.seconds[OURS], "B/s")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Of those that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """The processor's name, and how many of its cores we are granted, whatever the environment asks for."""
    import loopwright as lw
    from loopwright.base.granted_cpus import granted_cpus

    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    return f"{named} ({lw.resolve_target('native').cpu}), {granted_cpus()} cores, {platform.system()}"


def commit() -> str:
    """Of the sources that are measured, if they are a checkout: its short name, and whether files were changed."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


class Record:
    """The results of one or several runs, in a file if it has a path. Mutable: ``add`` replaces what it had of a case,
    and writes the file."""

    def __init__(self, path: Path | None, packages: Iterable[str] = ()) -> None:
        self.path = path
        stored = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
        own = {
            "machine": machine(),
            "python": platform.python_version(),
            "versions": versions(packages),
            "commit": commit(),
        }
        for key, value in own.items():
            if packages and stored.get(key, value) != value:
                raise SystemExit(f"{path} is of another {key}: {stored[key]}, here {value}; name another file")
        self.about = {**own, **{k: v for k, v in stored.items() if k not in ("results", "costs")}}
        self.costs: dict[str, dict[str, dict[str, float]]] = stored.get("costs", {})
        self.results: dict[tuple[str, str, int], Result] = {}
        for entry in stored.get("results", []):
            result = Result(**{**entry, "bar": Bar(**entry["bar"])})
            self.results[result.key] = result

    def add(self, result: Result) -> None:
        self.results[result.key] = result
        self.about["date"] = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
        self._write()

    def note_rates(self, threads: int, rates: Mapping[str, float]) -> None:
        self.about.setdefault("rates", {})[str(threads)] = dict(rates)
        self._write()

    def note_costs(self, model: str, costs: dict[str, dict[str, float]]) -> None:
        """By kind, what ``costs.py`` measures."""
        self.costs[model] = costs
        self._write()

    def _write(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            entries = [asdict(result) for result in self.results.values()]
            text = json.dumps({**self.about, "results": entries, "costs": self.costs}, indent=1, ensure_ascii=False)
            self.path.write_text(text + "\n", encoding="utf-8")
