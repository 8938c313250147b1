"""Other processors are detected for what they are, and run what is compiled for them: qemu emulates them for Python."""

import json
import os
import subprocess
import sys

import described_host
import needed_tools
import pytest

PROGRAM = """
import json
import numpy as np
import loopwright as lw
from loopwright import te
from loopwright.runtime.foreign import why_not_here

A, B = te.placeholder((9, 33), name="A"), te.placeholder((33, 21), name="B")
r = te.reduce_axis((0, 33), name="r")
C = te.compute((9, 21), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
D = te.compute((9, 21), lambda i, j: te.exp(C[i, j]), name="D")
kernel = lw.build(lw.default_schedule(D), [A, B, D])
rng = np.random.default_rng(0)
a, b, d = rng.normal(size=(9, 33)), rng.normal(size=(33, 21)) / 9, np.empty((9, 21), np.float32)
kernel(a.astype(np.float32), b.astype(np.float32), d)
host = kernel.target
print(json.dumps({
    "cpu": host.cpu,
    "features": sorted(host.features),
    "vectors": [host.vector_bits, host.vector_registers, host.fma_per_cycle],
    "error": float(abs(d / np.exp(a @ b) - 1).max()),
    "fused": "vfmadd" in kernel.assembly,
    "wide": "zmm" in kernel.assembly,
    "refused": why_not_here(lw.resolve_target("x86-64-v4")) or "",
}))
"""

pytestmark = needed_tools.needs("qemu-x86_64", "qemu-x86_64-static", package="qemu-user")


@pytest.mark.parametrize(
    ("machine", "cpu", "has", "lacks", "vectors"),
    [
        ("Haswell", "haswell", {"avx2", "fma", "f16c", "bmi2", "movbe"}, {"avx512f", "sse4a", "adx"}, [256, 16, 2]),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in (
                ("EPYC-v1", "znver1", {"avx2", "fma", "f16c", "sse4a", "adx"}, {"avx512f", "avxvnni"}, [256, 16, 2]),
                ("Nehalem", "nehalem", {"sse4.2", "popcnt"}, {"avx", "fma"}, [128, 16, 2]),
            )
        ),
    ],
)
def test_a_processor_is_detected_and_runs_its_own_code(machine, cpu, has, lacks, vectors):
    qemu = needed_tools.program("qemu-x86_64", "qemu-x86_64-static", package="qemu-user")
    environment = {name: value for name, value in os.environ.items() if name != described_host.HOST}

    def run(program):
        command = [qemu, "-cpu", machine, sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)

    done = run(PROGRAM)
    if done.returncode and run("import numpy").returncode:
        pytest.skip(f"the numpy that is installed does not run on {machine}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["cpu"] == cpu
    assert set(found["features"]) >= has
    assert not lacks.intersection(found["features"])
    assert found["vectors"] == vectors
    assert found["error"] < 1e-5
    assert (found["fused"], found["wide"]) == ("fma" in has, False)
    assert "which this cpu lacks" in found["refused"]
