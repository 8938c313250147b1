"""Panes of schedules: each line leads to those of the pane above it, whatever the schedule has done to the stages."""

import re
from dataclasses import replace

import loopwright as lw
from loopwright import te
from loopwright.codegen.report.report import LoopReport
from loopwright.explorer.explore import document
from loopwright.explorer.panes import _brief

LOOP = LoopReport("Y#1", "j", "vectorized", "8", 0, "", (), None)


def chain():
    X = te.placeholder((8, 32), name="X")
    Y = te.compute((8, 32), lambda i, j: X[i, j] + 1.0, name="Y")
    Z = te.compute((8, 32), lambda i, j: Y[i, j] * 2.0, name="Z")
    return Y, Z


def panes_of(*schedules):
    shown = document({f"s{k}": s for k, s in enumerate(schedules)}, lw.resolve_target("x86-64-v3"), "f", measure=False)
    return shown, {pane.id: pane for pane in shown.panes}


def origins_of(pane, panes, text):
    """The lines of the pane above that the lines with this text come from."""
    (found,) = {pane.origins[k] for k, line in enumerate(pane.lines) if text in line}
    return [panes[pane.parent].lines[line - 1].strip() for line in found]


def test_every_line_comes_from_lines_that_there_are():
    Y, Z = chain()
    inlined, cached = lw.create_schedule(Z), lw.create_schedule(Z)
    inlined[Y].compute_inline()
    inlined[Z].vectorize(inlined[Z].split(Z.op.axis[1], 8)[1])
    inlined[Z].parallel(Z.op.axis[0])
    copy = cached.cache_write(Z, "local")
    cached[copy].compute_at(cached[Z], cached[Z].loops[0])
    cached[Y].compute_at(cached[Z], cached[Z].loops[0])
    shown, panes = panes_of(inlined, cached)
    assert len(panes) == len(shown.panes)
    for pane in shown.panes:
        assert len(pane.origins) in (0, len(pane.lines))
        assert all(1 <= line <= len(panes[pane.parent].lines) for lines in pane.origins for line in lines)
        assert not pane.previous or pane.previous in panes
    for entry in shown.schedules:
        assert len(entry.step_of) == len(panes[entry.steps].lines)
        assert {name for p in entry.passes if (name := p.pane)} <= panes.keys()


def test_loops_come_from_axes_and_stores_from_the_stores_of_their_stage():
    _, Z = chain()
    s = lw.create_schedule(Z)
    fused = s[Z].fuse(*Z.op.axis)
    _, inner = s[Z].split(fused, 16)
    s[Z].unroll(inner)
    shown, panes = panes_of(s)
    nest = panes[shown.schedules[0].nests[-1]]
    assert origins_of(nest, panes, "_outer in") == ["for i_1 in range(8):", "for j_1 in range(32):"]
    assert origins_of(nest, panes, "Z[") == ["Z[i_1, j_1] = Y[i_1, j_1] * 2.0"]
    steps = panes[shown.schedules[0].steps]
    assert origins_of(steps, panes, ".unroll(") == [line.strip() for line in nest.lines if "unrolled" in line]
    assert len(origins_of(steps, panes, ".fuse(")) == 2
    start = panes["0/start"]
    assert origins_of(start, panes, "for j_1") == ["Z = compute((8, 32), lambda i, j: Y[i, j] * 2.0)"]


def test_only_loops_over_a_reduction_axis_come_from_its_line():
    A, B = te.placeholder((8, 6, 4), name="A"), te.placeholder((4, 6), name="B")
    r, q = te.reduce_axis((0, 4), name="r"), te.reduce_axis((0, 6), name="q")
    C = te.compute((8,), lambda i: te.sum(A[i, q, r] * B[r, q], axis=(r, q)), name="C")
    _, panes = panes_of(lw.create_schedule(C))
    start = panes["0/start"]
    compute = "C = compute((8,), lambda i: sum(A[i, q, r] * B[r, q], axis=[r, q]))"
    assert origins_of(start, panes, "for i ") == [compute]
    assert origins_of(start, panes, "for r ") == ["r = reduce_axis((0, 4))", compute]
    assert origins_of(start, panes, "for q ") == ["q = reduce_axis((0, 6))", compute]
    assert origins_of(start, panes, "C[i] = ") == [compute]


def sum_in_lanes():
    X = te.placeholder((8, 64), name="X")
    r = te.reduce_axis((0, 64), name="r")
    S = te.compute((8,), lambda i: te.sum(X[i, r], axis=r), name="S")
    Z = te.compute((8,), lambda i: S[i] * 2.0, name="Z")
    s = lw.create_schedule(Z)
    _, lane = s[S].split(r, factor=8)
    partial = s.rfactor(S, lane, factor_axis=-1)
    s[partial].vectorize(partial.op.axis[1])
    copy = s.cache_write(Z, "local")
    s[copy].compute_at(s[Z], s[Z].loops[0])
    return s


def test_lines_of_stages_that_a_step_made_come_from_the_stage_that_it_took_apart():
    shown, panes = panes_of(sum_in_lanes())
    nest = panes[shown.schedules[0].nests[-1]]
    for line, origins in zip(nest.lines, nest.origins, strict=True):
        assert origins or "allocate(" in line or not ("for " in line or " = " in line), line
    assert origins_of(nest, panes, "S.rf[i, r_inner] = S.rf[") == ["S[i] = 0.0", "S[i] = S[i] + X[i, r]"]
    assert origins_of(nest, panes, "for r_outer") == ["for r in range(64):"]
    assert origins_of(nest, panes, "Z.local[0] =") == ["Z[i_1] = S[i_1] * 2.0"]


def test_a_copy_over_other_axes_has_loops_of_its_own():
    Y, Z = chain()
    s = lw.create_schedule(Z)
    s.cache_read(Y, "local", [Z], axes=lambda i, j: (i, j // 4, j % 4))
    shown, panes = panes_of(s)
    nest = panes[shown.schedules[0].nests[-1]]
    assert origins_of(nest, panes, "] = Y[ax0, ax1_1 + ax1 * 4]") == ["Y[i, j] = X[i, j] + 1.0"]
    assert origins_of(nest, panes, "for ax1 in") == ["Y[i, j] = X[i, j] + 1.0"]


def test_lines_of_copies_come_from_what_they_copy_and_those_of_inputs_from_their_readers():
    Y, Z = chain()
    s = lw.create_schedule(Z)
    s[Y].split(Y.op.axis[1], 8)
    (X,) = Y.op.inputs
    of_input, of_stage = s.cache_read(X, "local", [Y]), s.cache_read(Y, "local", [Z])
    s[of_input].compute_at(s[Y], s[Y].loops[0])
    s[of_stage].compute_at(s[Z], s[Z].loops[0])
    _, inner = s[of_stage].split(s[of_stage].loops[1], 16)
    s[of_stage].vectorize(inner)
    shown, panes = panes_of(s)
    nest = panes[shown.schedules[0].nests[-1]]
    assert origins_of(nest, panes, "X.local[0, ax1] =") == ["Y[i, j] = X[i, j] + 1.0"]
    assert origins_of(nest, panes, "for ax1 in") == ["Y[i, j] = X[i, j] + 1.0"]
    assert origins_of(nest, panes, "Y.local[0, ax1_outer") == ["Y[i, j] = X[i, j] + 1.0"]
    assert origins_of(nest, panes, "for ax1_outer in") == ["for j in range(32):"]
    steps = panes[shown.schedules[0].steps]
    assert "X.local[0, ax1] = X[i, ax1]" in origins_of(steps, panes, '.cache_read("X"')
    assert not any("Y[" in line for line in origins_of(steps, panes, ".split(j, factor=8)")), "it made no stage"
    of_copies = origins_of(steps, panes, ".split(ax1, factor=16)")
    assert len(of_copies) == 2
    assert all("ax1_" in line for line in of_copies)
    assert not any("ax" in line for line in origins_of(steps, panes, ".split(j, factor=8)")), "it split another loop"


def test_lines_of_copies_for_a_scan_come_from_the_loops_of_what_reads_them():
    X = te.placeholder((8, 4), name="X")
    state = te.scan_state((8, 4), name="state")
    first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
    step = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    s = lw.create_schedule(te.scan(first, step, state, name="sums"))
    s.cache_read(X, "local", [step])
    shown, panes = panes_of(s)
    nest = panes[shown.schedules[0].nests[-1]]
    assert origins_of(nest, panes, "X.local[ax0, ax1] =") == ["for i_1 in range(4):"]
    assert origins_of(nest, panes, "for ax0 in") == ["for i_1 in range(4):"]


def test_notes_count_one_thing_in_the_singular_and_leave_out_what_says_nothing():
    shown, panes = panes_of(lw.create_schedule(chain()[1]))
    texts = [note.code for note in panes[shown.schedules[0].nests[-1]].notes]
    assert any(text.endswith("1 branch") for text in texts), texts
    assert not any(re.search(r"\b1 (instructions|branches|stores|loads|sums|products|moves)\b", t) for t in texts)
    idle = replace(LOOP, became="8 lanes of float32, no instructions of their own")
    assert _brief(idle) == ""
    assert _brief(replace(LOOP, became="8 lanes of float32 in ymm, fma")) == "ymm, fma"
    assert (
        _brief(replace(LOOP, became="a loop, register tile of 1 vector kept in registers")) == "a vector in registers"
    )
    assert _brief(replace(LOOP, became="a loop, register tile of 12 vectors spilled")) == "tile of 12 vectors spilled"


def test_loops_that_are_none_of_the_schedule_have_verdicts_too():
    X = te.placeholder((8, 64), name="X")
    r = te.reduce_axis((0, 64), name="r")
    S = te.compute((8,), lambda i: te.sum(X[i, r], axis=r), name="S")
    s = lw.create_schedule(S)
    s[S].prefetch(X, S.op.axis[0], 2)
    shown, panes = panes_of(s)
    nest = panes[shown.schedules[0].nests[-1]]
    ahead = next(k for k, line in enumerate(nest.lines, start=1) if "X_ahead in" in line)
    assert ahead in {note.line for note in nest.notes}
    assert {
        line for note in nest.notes for line in [nest.lines[note.line - 1]] if not line.strip().startswith("for")
    } == set()


def test_schedules_of_one_compute_share_its_panes_and_others_have_their_own():
    _, Z = chain()
    _, other = chain()
    W = te.compute((8, 32), lambda i, j: other[i, j] - 1.0, name="W")
    shown, panes = panes_of(lw.create_schedule(Z), lw.create_schedule(Z), lw.create_schedule(W))
    assert [entry.compute for entry in shown.schedules] == ["0/compute", "0/compute", "2/compute"]
    assert [panes[entry.nests[0]].parent for entry in shown.schedules] == ["0/start", "0/start", "2/start"]
    assert "1/start" not in panes
