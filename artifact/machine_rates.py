"""What a machine gives at best, as plain data: ``runtime/measure/measure_rates.py`` measures it."""

from __future__ import annotations

from ..base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MachineRates:
    """``operations`` a second (float32, a multiplication with addition counts 2), and ``bandwidths``: bytes read a
    second by how many bytes are read again and again, ascending."""

    operations: float
    bandwidths: tuple[tuple[int, float], ...]

    def least_seconds(self, operations: int, traffic: int) -> float:
        """The roofline: no kernel that does as many operations on as many bytes can be faster."""
        bandwidth = next((rate for footprint, rate in self.bandwidths if traffic <= footprint), self.bandwidths[-1][1])
        return max(operations / self.operations, traffic / bandwidth)

    def bound(self, operations: int, traffic: int) -> str:
        """``"compute"`` or ``"memory"``: which of the two takes longer."""
        return "compute" if self.least_seconds(operations, 0) >= self.least_seconds(0, traffic) else "memory"
