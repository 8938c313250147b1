"""gdb shows the loop nest as the source of the machine code, of a kernel in memory and of an exported library."""

import subprocess
import sys

import needed_tools
import pytest

import loopwright as lw
from loopwright import te

PROGRAM = """
import sys
import numpy as np
import loopwright as lw
from loopwright import te

A = te.placeholder((8, 16), name="A")
B = te.compute((8, 16), lambda i, j: te.exp(A[i, j]), name="B")
s = lw.create_schedule(B)
s[B].vectorize(B.op.axis[1])
kernel = lw.build(s, [A, B], name="exponential", line_tables=True)
kernel(np.ones((8, 16), np.float32), np.empty((8, 16), np.float32))
print("done")
"""

CALLER = """
#include "exponential.h"
static float a[128], b[128];
int main(void) { return exponential(a, b, 1); }
"""


@pytest.fixture(scope="module")
def gdb(tmp_path_factory):
    """Runs a program under gdb with commands, and gives what gdb says."""
    program = needed_tools.program("gdb", package="gdb")
    folder = tmp_path_factory.mktemp("gdb")

    def run(commands, *command):
        script = folder / "commands"
        # Whoever stops the test for a while means gdb's child no less.
        setup = ("set pagination off", "set debuginfod enabled off", "set breakpoint pending on")
        script.write_text("\n".join([*setup, "handle SIGSTOP SIGCONT nostop noprint pass", *commands]) + "\n")
        done = subprocess.run(
            [program, "-q", "-nx", "-batch", "-x", str(script), "--args", *map(str, command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.stdout

    if "exited normally" not in run(["run"], sys.executable, "-c", ""):
        pytest.skip("gdb may not trace processes here")
    return run


def test_gdb_steps_through_the_loop_nest_of_a_kernel_in_memory(gdb, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    steps = ["step", "step", "step", "step"]
    said = gdb(["break exponential", "run", "delete", *steps, "info source", "continue"], sys.executable, program)
    head = "1\tdef exponential(A: float32[8, 16], B: float32[8, 16]):"
    loop = "2\t    for i in range(8):"
    body = "3\t        B[ramp(i * 16, 1, 16)] = exp(A[ramp(i * 16, 1, 16)])"
    assert head in said
    assert loop in said.partition(head)[2]
    assert body in said.partition(head)[2]
    assert "exponential-" in said.partition(loop)[2]
    assert "done" in said


def test_gdb_stops_at_a_line_of_the_nest_in_an_exported_library(gdb, tmp_path):
    compiler = needed_tools.program("cc", package="gcc")
    A = te.placeholder((8, 16), name="A")
    B = te.compute((8, 16), lambda i, j: te.exp(A[i, j]), name="B")
    s = lw.create_schedule(B)
    s[B].vectorize(B.op.axis[1])
    kernel = lw.build(s, [A, B], name="exponential", line_tables=True)
    exported = kernel.export(tmp_path / "lib", kind="shared")
    assert exported.sources[0].read_text() == f"{kernel.loop_ir}\n"
    (tmp_path / "caller.c").write_text(CALLER)
    folder = str(exported.code.parent)
    command = [compiler, f"-I{folder}", str(tmp_path / "caller.c"), "-o", str(tmp_path / "caller")]
    subprocess.run([*command, str(exported.code), f"-Wl,-rpath,{folder}"], check=True)
    said = gdb(["break exponential.loops:3", "run", "backtrace", "next"], tmp_path / "caller")
    assert "3\t        B[ramp(i * 16, 1, 16)] = exp(A[ramp(i * 16, 1, 16)])" in said
    assert "exponential.loops:3" in said
    assert "main ()" in said
