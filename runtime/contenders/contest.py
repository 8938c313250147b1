"""Our compiled model beside other libraries on the same inputs: who takes part, and the rounds in which they do."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import RuntimeArgumentError
from ..arrays import Array
from ..library import Library
from ..measure.closeness import allowed_distance, distance
from .contender import INPUTS, command
from .latency import Latency
from .peers import LIBRARY, OURS
from .rounds import Contender, Refused, alternate, ended, load_all
from .stored_arrays import read_arrays, write_arrays

ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Rounds:
    """How contenders take turns: each has calls of ``warmup`` seconds that do not count, then ``ROUNDS`` rounds that
    last ``seconds`` together; one call at least of both."""

    warmup: float
    seconds: float


def require_packages(peers: Sequence[str]) -> None:
    """Raise ``RuntimeArgumentError`` for peers whose package is not installed."""
    missing = [name for name in peers if find_spec(name) is None]
    if missing:
        named = " and ".join(missing)
        raise RuntimeArgumentError(
            f"{named} cannot be measured, as {'it is' if len(missing) == 1 else 'they are'} not installed: "
            f"pip install {' '.join(missing)}"
        )


class Contest:
    """A library of ours and its peers on the same inputs. ``model`` is the file that the peers read.

    Mutable: the folder with what the contenders read, which goes when this is closed.
    """

    def __init__(self, library: Library, inputs: Mapping[str, Array], model: Path, peers: Sequence[str]) -> None:
        require_packages(peers)
        self._names = [OURS, *peers]
        self._model = model.resolve()
        self._held = tempfile.TemporaryDirectory(prefix="loopwright-bench-")
        self._folder = Path(self._held.name)
        try:
            library.save(self._folder / LIBRARY)
            write_arrays(self._folder / INPUTS, inputs)
        except BaseException:
            self._held.cleanup()
            raise

    def __enter__(self) -> Contest:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.cleanup()

    def measure(self, threads: int, rounds: Rounds) -> list[Latency]:
        """All of them with so many threads, ours first. A peer that does not get through has its ``problem``.

        Raises ``RuntimeArgumentError`` where ours does not.
        """
        contenders = {n: Contender(command(n, self._model, threads), threads) for n in self._names}
        with ended(contenders.values()):
            ready, refused = load_all(contenders, str(self._folder))
            for name, contender in list(ready.items()):
                try:
                    contender.warm_up(rounds.warmup)
                except Refused as reason:
                    refused[name] = str(reason)
                    del ready[name]
            refused |= alternate(ready, ROUNDS, measure=lambda each: each.measure_each(rounds.seconds / ROUNDS))
        if OURS in refused:
            raise RuntimeArgumentError(f"{self._model.name} cannot be measured: {self._said(refused[OURS])}")
        return [
            Latency(name, threads, problem=self._said(refused[name]))
            if name in refused
            else self._latency(name, threads, contenders[name])
            for name in self._names
        ]

    def _said(self, problem: str) -> str:
        """The reason without the path of a folder that is gone."""
        return problem.replace(f"{self._folder}/", "")

    def _latency(self, name: str, threads: int, contender: Contender) -> Latency:
        found = tuple(contender.seconds), tuple(contender.samples)
        if name == OURS:
            return Latency(name, threads, *found)
        return Latency(name, threads, *found, *output_difference(self._folder, name))


def output_difference(folder: Path, name: str) -> tuple[float, float]:
    """How far the outputs of a contender are from ours, and how far they may be: those of the output that is the
    furthest, of some beyond their tolerance one of these. Both left their outputs in the folder."""
    ours, theirs = (read_arrays(folder / f"{who}.npz") for who in (OURS, name))
    if ours.keys() != theirs.keys():
        return np.inf, 0.0
    pairs = [(distance(theirs[key], ours[key]), allowed_distance(ours[key])) for key in ours]
    return max(pairs, key=lambda pair: (pair[0] > pair[1], pair[0]), default=(0.0, 0.0))
