"""What the machine model and llvm-mca say of innermost loops, and that nothing fails where llvm-mca does."""

from dataclasses import replace
from pathlib import Path

import needed_tools
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.report.assembly import Instruction
from loopwright.explorer import llvm_mca
from loopwright.explorer.explore import document
from loopwright.explorer.llvm_mca import McaOpinion, Silence, ask_llvm_mca, read_opinion
from loopwright.explorer.stages import provenance
from loopwright.explorer.summary import summary
from loopwright.schedules.register_tile import step_cycles

ADD = (Instruction("vaddps", ("%ymm1", "%ymm0", "%ymm0"), 0),)
PRINTED = """Iterations:        100
Instructions:      800
Total Cycles:      412
Total uOps:        1000

Cycles with backend pressure increase [ 24.27% ]
Throughput Bottlenecks: 
  Resource Pressure       [ 6.55% ]
  - Zn4FP1  [ 6.55% ]
  Data Dependencies:      [ 17.72% ]
  - Register Dependencies [ 17.72% ]
  - Memory Dependencies   [ 0.00% ]

Resources:
[0]   - Zn4AGU0
[8]   - Zn4FP0
[9]   - Zn4FP1
[12.0] - Zn4FP45
[12.1] - Zn4FP45


Resource pressure per iteration:
[0]    [8]    [9]    [12.0] [12.1] 
 -     2.00   3.00   1.00   1.25   

Resource pressure by instruction:
"""  # noqa: W291


def product(rows, columns, lanes, terms=256):
    """A product in register tiles of ``rows`` × ``columns`` vectors."""
    A, B = te.placeholder((32 * rows, terms), name="A"), te.placeholder((terms, 8 * columns * lanes), name="B")
    r = te.reduce_axis((0, terms), name="r")
    C = te.compute((32 * rows, 8 * columns * lanes), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    io, jo, ii, ji = s[C].tile(*C.op.axis, rows, columns * lanes)
    few, lane = s[C].split(ji, lanes)
    s[C].reorder(io, jo, r, ii, few, lane)
    s[C].unroll(ii)
    s[C].unroll(few)
    s[C].vectorize(lane)
    return s, [A, B, C]


def predicted(schedule, args, target):
    stages = provenance(schedule, args, target)
    return stages, stages.predictions


@pytest.mark.parametrize(("rows", "columns", "bound"), [(4, 3, "fma"), (1, 2, "latency"), (2, 1, "latency")])
def test_a_register_tile_takes_what_the_model_that_chose_it_says(rows, columns, bound):
    target = lw.resolve_target("x86-64-v3")
    _, (found,) = predicted(*product(rows, columns, 8), target)
    by_name = {bound.of: bound.cycles for bound in found.bounds}
    assert by_name["fma"] == rows * columns / target.fma_per_cycle
    assert by_name["load"] >= (rows + columns) / 2 - 0.5, "a factor may be an operand of a product"
    assert by_name["latency"] == 4
    assert found.bottleneck == bound
    assert found.cycles == max(rows * columns / 2, 4.0) <= step_cycles(rows, columns)
    assert found.beyond == ()


def test_a_copy_is_bound_by_its_stores_and_a_division_is_left_out():
    X = te.placeholder((1024,), name="X")
    Y = te.compute((1024,), lambda i: X[i] / (X[i] + 2.0), name="Y")
    s = lw.create_schedule(Y)
    s[Y].vectorize(s[Y].split(Y.op.axis[0], 8)[1])
    _, (found,) = predicted(s, [X, Y], "x86-64-v3")
    assert any("divisions" in text for text in found.beyond)
    Z = te.compute((1024,), lambda i: X[i], name="Z")
    copy = lw.create_schedule(Z)
    few, lane = copy[Z].split(copy[Z].split(Z.op.axis[0], 32)[1], 8)
    copy[Z].unroll(few)
    copy[Z].vectorize(lane)
    _, (moved,) = predicted(copy, [X, Z], "x86-64-v3")
    assert (moved.bottleneck, moved.cycles) == ("store", 4.0)


def test_the_loop_that_takes_the_most_cycles_comes_first():
    X = te.placeholder((64, 256), name="X")
    Y = te.compute((64, 256), lambda i, j: X[i, j] + 1.0, name="Y")
    r = te.reduce_axis((0, 256), name="r")
    Z = te.compute((64, 64), lambda i, k: te.sum(Y[i, r] * X[k, r], axis=r), name="Z")
    _, found = predicted(lw.create_schedule(Z), [X, Z], "x86-64-v3")
    assert [prediction.name for prediction in found] == ["r", "j"]
    assert found[0].bottleneck == "latency"


def test_half_as_wide_units_take_twice_as_long():
    schedule, args = product(4, 3, 16)
    _, (found,) = predicted(schedule, args, lw.resolve_target("x86-64-v4"))
    slow = replace(lw.resolve_target("x86-64-v4"), fma_per_cycle=1)
    _, (halved,) = predicted(schedule, args, slow)
    assert (found.cycles, halved.cycles) == (6.0, 12.0)


def test_the_pane_of_the_model_is_linked_with_the_loops_that_it_is_about():
    schedule, _ = product(4, 3, 8)
    shown = document({"tile": schedule}, lw.resolve_target("x86-64-v3"), "f", measure=False)
    panes = {pane.id: pane for pane in shown.panes}
    model = panes[shown.schedules[0].model]
    assert model.lines[0] == "loop r: fma, 6.0 cycles an iteration"
    (line,) = model.origins[0]
    assert panes[model.parent].lines[line - 1].strip() == "for r in range(256):"
    (told,) = summary(shown)["schedules"][0]["innermost"]
    assert (told["loop"], told["bottleneck"], told["cycles"]) == ("r", "fma", 6.0)
    assert set(told["bounds"]) == {"fma", "load", "store", "latency", "front end"}


def test_code_that_is_not_read_has_no_model():
    schedule, _ = product(2, 1, 4)
    target = lw.resolve_target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    shown = document({"tile": schedule}, target, "f", measure=False)
    assert shown.schedules[0].model == ""
    assert not any(pane.role == "model" for pane in shown.panes)


def test_what_llvm_mca_prints_is_read():
    assert read_opinion(PRINTED, "llvm-mca 19.1.7", "znver4") == McaOpinion(
        "llvm-mca 19.1.7",
        "znver4",
        4.12,
        (("register dependencies", 0.1772), ("resource pressure", 0.0655)),
        (("Zn4FP1", 3.0), ("Zn4FP0", 2.0), ("Zn4FP45", 1.25)),
    )
    assert read_opinion("", "llvm-mca", "znver4") is None


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder that is all that programs are looked for in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    llvm_mca.find_tool.cache_clear()
    yield tmp_path
    llvm_mca.find_tool.cache_clear()


def install(folder, name, script):
    (folder / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "  LLVM version 7.8.9" && exit\n{script}\n')
    (folder / name).chmod(0o755)


def test_without_llvm_mca_the_model_stands_alone(tools):
    assert ask_llvm_mca(ADD, lw.resolve_target("x86-64-v3")) == Silence(
        "llvm-mca is not installed: it comes with LLVM's tools"
    )


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'error: no such thing' >&2; exit 1", "llvm-mca 7.8.9 fails: error: no such thing"),
        ("echo nothing", "llvm-mca 7.8.9 fails: it prints no summary"),
        (
            "echo \"'x86-64-v3' is not a recognized processor for this target\" >&2; echo 'Total Cycles: 100'",
            "llvm-mca 7.8.9 does not know the processor x86-64-v3",
        ),
    ],
)
def test_an_llvm_mca_that_fails_is_told(tools, script, why):
    install(tools, "llvm-mca", script)
    assert ask_llvm_mca(ADD, lw.resolve_target("x86-64-v3")) == Silence(why)


def test_an_llvm_mca_that_cannot_be_started_is_told(tools):
    (tools / "llvm-mca-19").write_bytes(b"\x7fELF no program")
    (tools / "llvm-mca-19").chmod(0o755)
    assert isinstance(ask_llvm_mca(ADD, lw.resolve_target("x86-64-v3")), Silence)


def test_the_newest_llvm_mca_is_asked(tools):
    for name in ("llvm-mca", "llvm-mca-15", "llvm-mca-19"):
        install(tools, name, "exit 1")
    assert Path(llvm_mca.find_tool().path).name == "llvm-mca-19"


def test_the_llvm_mca_that_is_installed_knows_that_a_sum_waits_for_itself():
    needed_tools.program("llvm-mca-19", "llvm-mca", package="llvm-19")
    llvm_mca.find_tool.cache_clear()
    found = ask_llvm_mca(ADD, lw.resolve_target("llvm -mcpu=skylake"))
    assert isinstance(found, McaOpinion), found
    assert 3.9 < found.cycles < 4.2, "an addition takes four cycles on a Skylake"
    assert found.waits[0][0] == "register dependencies"
    assert found.cpu == "skylake"
