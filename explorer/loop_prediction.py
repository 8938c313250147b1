"""What ``machine_model.py`` predicts of a loop, as plain data of which documents consist."""

from __future__ import annotations

from ..base.dataclass import dataclass
from .llvm_mca import McaOpinion, Silence


@dataclass(frozen=True, slots=True)
class Bound:
    """The cycles that an iteration takes at least, by a part ``of`` the core, and ``why``: ``"fma"``, ``"load"``,
    ``"store"``, ``"latency"`` or ``"front end"``."""

    of: str
    cycles: float
    why: str


@dataclass(frozen=True, slots=True)
class LoopPrediction:
    """The prediction for a loop of the machine code, which comes from the loop of the nest with this ``origin``.
    ``cycles`` are those of an iteration, the most of all ``bounds``. ``beyond`` names what the model leaves out;
    ``mca`` is llvm-mca's opinion, or why there is none."""

    origin: int
    name: str
    instructions: int
    bounds: tuple[Bound, ...]
    beyond: tuple[str, ...]
    mca: McaOpinion | Silence

    @property
    def bottleneck(self) -> str:
        """What bounds it, as in ``"fma"``; several as in ``"load, store"``."""
        return ", ".join(bound.of for bound in self.bounds if bound.cycles == self.cycles)

    @property
    def cycles(self) -> float:
        """Cycles of an iteration: those of the tightest bound."""
        return max(bound.cycles for bound in self.bounds)
