"""Random schedules, from plans: JSON values that tests draw and a child process can read."""

import itertools
from typing import get_args

import numpy as np
from random_intrinsics import declare_for, declare_intrinsics

import loopwright as lw
from loopwright.lowering.primitives import primitives
from loopwright.lowering.relations import Tail
from loopwright.lowering.stage import After

TARGETS = ("native", "x86-64", "x86-64-v3")
NUMBERS = (4, 1, 2, 3, 5, 8, 16, 0, -1, 11, 13)
"""Factors; 11 also names loops that stand no more, 13 also inputs."""
PRIMITIVES = (*(name for name in primitives() if name != "split"), *(f"split/{tail}" for tail in get_args(Tail)))
"""What ``apply_step`` knows. The kinds of tails count as primitives of their own."""


def apply_step(s, step):
    """One primitive with arguments that may be illegal. Raises what the primitive raises."""
    primitive, which, x, y, number = step
    stages = s.state.stages
    computed = [stage for stage in stages if not stage.is_input]
    stage = (stages if number == 13 else computed)[which % len(stages if number == 13 else computed)]
    named = (list(stage.loops) if number == 11 else list(stage.leaves)) or ["none#0"]
    loop = named[x % len(named)]
    view, others = s[stage.name], computed[y % len(computed)]
    match primitive:
        case "compute_inline" | "compute_root":
            getattr(view, primitive)()
        case "vectorize" | "unroll" | "parallel":
            getattr(view, primitive)(loop)
        case "accumulate":
            ragged = [c for c in computed if c.is_compute and c.compute.ragged_axes]
            chosen = ragged[which % len(ragged)] if ragged and number % 4 else stage
            loops = list(chosen.leaves) or ["none#0"]
            s[chosen.name].accumulate(loops[x % len(loops)])
        case "round_up" | "split/round_up" if y % 4 and stage.is_compute:
            with s.all_or_nothing():
                round_up_copies(s, stage.name, which, x, y, number)
        case "round_up":
            view.round_up(loop, **{("factor", "to")[y % 2]: number})
        case _ if primitive.startswith("split/") and y == 7:
            view.tile(loop, named[(x + 1) % len(named)], number, 4, tail=primitive.removeprefix("split/"))
        case _ if primitive.startswith("split/"):
            parts = "nparts" if y % 4 == 3 else "factor"
            view.split(loop, tail=primitive.removeprefix("split/"), **{parts: number})
        case "fuse":
            view.fuse(loop, named[(x % len(named) + 1 if y % 4 else y) % len(named)])
        case "reorder":
            shuffled = np.random.default_rng([x, y]).permutation(len(named))
            view.reorder(*(named[k] for k in shuffled[: 2 + number]))
        case "compute_at":
            consumers = s.state.consumers(stage)
            target = consumers[y % len(consumers)] if consumers and number % 4 else others
            loops = list(target.leaves) or ["none#0"]
            view.compute_at(s[target.name], loops[x % len(loops)])
        case "reverse_compute_at":
            producers = [p for p in computed if stage in s.state.consumers(p)]
            target = producers[y % len(producers)] if producers and number % 4 else others
            while number % 8 > 3 and isinstance(target.place, After):  # into a nest that others are in already
                target = s.state.stage(target.place.stage)
            loops = list(target.leaves) or ["none#0"]
            view.reverse_compute_at(s[target.name], loops[x % len(loops)])
        case "cache_write":
            s.cache_write(stage.name, ("local", "global")[number % 2], axes=axes_for(stage, x, y))
        case "cache_read":
            source = stages[which % len(stages)]
            readers = [r.name for r in s.state.consumers(source)][: 1 + y % 2] or [others.name]
            pad, axes = (None, None, *PADS)[(x + y) % (2 + len(PADS))], axes_for(source, x, y)
            s.cache_read(source.name, ("local", "global")[number % 2], readers, pad=pad, axes=axes)
        case "rfactor":
            reductions = [c for c in computed if any(loop.reduce for loop in c.loops.values())]
            chosen = reductions[which % len(reductions)] if reductions and number % 4 else stage
            loops = [leaf for leaf in chosen.leaves if chosen.loops[leaf].reduce or y % 4 == 3] or ["none#0"]
            s.rfactor(chosen.name, loops[x % len(loops)], factor_axis=(0, -1, 1, 0)[y % 4])
        case "set_scope" | "storage_align" | "transform_layout":
            inner = [c for c in computed if c.name not in s.state.outputs] or computed
            apply_storage(s[(inner if number > 0 else computed)[which % len(inner)].name], primitive, x, y, number)
        case "tensorize":
            tensorize_somewhere(s, which, x, number)
        case "prefetch":
            read = [other for other in stages if stage in s.state.consumers(other)] or computed
            view.prefetch(read[y % len(read)].name, loop, number)
        case "decide":
            s.decide(("rows", "pack", "")[x % 3], [1, 2, False, "b"][: y % 5], (1, 2, False)[which % 3])
        case "annotate":
            key = ("partition", "mine.note", "mine.other", "partiton")[y % 4]
            view.annotate(loop, key, False if key == "partition" else number)
        case _:
            raise AssertionError(f"apply_step does not know {primitive}")


PADS = (0, 1, "nan", "-inf", "edge")


def round_up_copies(s, name, which, x, y, number):
    """Round up some loops of a stage; of an output those of its cache, and with copies of what it reads."""
    if name in s.state.outputs:
        name = s.cache_write(name, "global").op.name
    for source in s.state.stage(name).op.inputs:
        s.cache_read(s.state.stage_of(source).name, "global", [name], pad=PADS[(x + y) % len(PADS)] if which % 3 else 0)
    leaves = list(s.state.stage(name).leaves)
    for k, loop in enumerate(leaves):
        if len(leaves) == 1 or (x + k) % 3 or not k:
            if (y + k) % 2:
                s[name].split(loop, number, tail="round_up")
            else:
                s[name].round_up(loop, number)


LAYOUTS = (
    ("lambda i: (i // 4, i % 4)", "lambda i: i * 2 + 1", "lambda i: i // 2", "lambda i: 7 - i"),
    ("lambda i, j: (j, i)", "lambda i, j: (j // 4, i, j % 4)", "lambda i, j: (i, i + j)", "lambda i, j: i + j"),
)
"""Index maps of one and of two dimensions; the last ones of each may not do."""


AXES = (
    (
        "lambda i: (i // 4, i % 4)",
        "lambda i: (i % 2, i // 2)",
        "lambda i: (i % 3, i // 3 % 2, i // 6)",
        "lambda i: ((i + 3) // 4, (i + 3) % 4)",
    ),
    (
        "lambda i, j: (j, i)",
        "lambda i, j: (i * 16 + j,)",
        "lambda i, j: ((i * 20 + j) // 4, (i * 20 + j) % 4)",
        "lambda i, j: (i + 1, (j + 2) // 4, (j + 2) % 4)",
    ),
    (
        "lambda i, j, k: (k // 4, j, i, k % 4)",
        "lambda i, j, k: (j, i * 16 + k)",
        "lambda i, j, k: (j % 2, i, j // 2, k)",
        "lambda i, j, k: (j, i, (k + 5) // 4, (k + 5) % 4)",
    ),
)
"""Index maps of up to three dimensions."""


def axes_for(stage, x, y):
    """Other axes for a copy of a stage, half the time."""
    rank = stage.tensors[0].ndim
    return AXES[rank - 1][x % 4] if 1 <= rank <= len(AXES) and y % 2 else None


def apply_storage(view, primitive, x, y, number):
    if primitive == "set_scope":
        view.set_scope(("global", "local", "register", "nowhere")[y % 4 if x else y % 3])
    elif primitive == "storage_align":
        view.storage_align(x % 2 if number == 16 else 0, number, y % 3)
    else:
        maps = LAYOUTS[min(view.op.outputs[0].ndim, 2) - 1]
        view.transform_layout(maps[y % len(maps)])


def tensorize_somewhere(s, which, x, number):
    """At the first place where it is legal, of all innermost loops or of all loops; or else at one where an intrinsic
    is made to measure, or where it is not legal."""
    places = [(stage.name, leaf) for stage in s.state.stages for leaf in stage.leaves[-1 if x else 0 :]]
    places = places[which % max(len(places), 1) :] + places or [("none", "none#0")]
    kind = next((stage.tensors[0].dtype for stage in s.state.stages if stage.is_input), "int32")
    names = declare_intrinsics(str(kind)) if number != 11 else ["nothing"]
    for (stage, leaf), name in itertools.product(places[: 4 if number != 13 else 1], names):
        try:
            return s[stage].tensorize(leaf, name)
        except lw.ScheduleError:
            continue
    stage, leaf = places[0]
    return s[stage].tensorize(leaf, declare_for(s.state, s.state.stage(stage), leaf) if number > 1 else names[0])


def make_schedule(program, plan, print_each=True):
    """The schedule of a plan, and the refusals met on the way. A refused step leaves all as it was; after each of the
    others the schedule is printed, or only after the last."""
    s = lw.create_schedule(program.outputs)
    refusals = []
    for step in plan["steps"]:
        before, trace = s.state, s.trace
        try:
            apply_step(s, step)
            assert not print_each or str(s)
        except lw.ScheduleError as error:
            refusals.append(f"{step}: {error}")
            unchanged = s.state is before and s.trace == trace
            assert unchanged, f"the refused {step} changed the schedule"
    assert str(s)
    return s, refusals
