"""The machines that `make test-hosts` describes to the package."""

from dataclasses import dataclass

from loopwright.codegen.features import FEATURES, implied_features
from loopwright.codegen.host import host_target


@dataclass(frozen=True)
class Machine:
    """A processor by LLVM's name, with the caches of a core in KiB, the width of its units in bits where it tells, as
    AMD's do, and so many cpus granted."""

    cpu: str
    l1: int
    l2: int
    path_bits: int | None
    cpus: int

    def description(self):
        """For ``described_host``: of the features that this cpu has those that the machine at hand has, too."""
        host = host_target()
        features = implied_features(host.triple, self.cpu) & host.features
        processor = {
            "cpu": self.cpu,
            "attributes": [f"{'+' if name in features else '-'}{name}" for name in FEATURES[host.arch]],
            "l1_bytes": self.l1 * 1024,
            "l2_bytes": self.l2 * 1024,
            "path_bits": self.path_bits,
        }
        return {"processor": processor, "cpus": self.cpus}


MACHINES = (
    Machine("znver5", l1=48, l2=1024, path_bits=512, cpus=64),
    Machine("znver4", l1=32, l2=1024, path_bits=256, cpus=2),
    Machine("znver3", l1=32, l2=512, path_bits=256, cpus=1),
    Machine("cascadelake", l1=32, l2=1024, path_bits=None, cpus=2),
    Machine("sapphirerapids", l1=48, l2=2048, path_bits=None, cpus=64),
    Machine("alderlake", l1=48, l2=1280, path_bits=None, cpus=2),
    Machine("haswell", l1=32, l2=256, path_bits=None, cpus=1),
    Machine("x86-64-v2", l1=32, l2=256, path_bits=None, cpus=2),
)
