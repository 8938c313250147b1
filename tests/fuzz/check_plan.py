"""Checks one plan from end to end: what its schedule computes, and how its illegal steps are refused.

Run as a script it is a server: a line with ``{"plan": …, "native": …}`` comes in, a line with the outcome goes out. The
campaign talks to it so, because LLVM ends the process where it cannot select an instruction.
"""

import json
import sys
import traceback
from dataclasses import replace

import numpy as np
import random_programs
import random_schedules
from draw import runnable
from same_state import same_state

import loopwright as lw
from loopwright.lowering.pipeline import realized_function
from loopwright.lowering.report import nest_text
from loopwright.lowering.rules.fold_order import require_order_of_definition


def check(plan, native):
    """The primitives of the accepted steps, the number of refused ones, and the error that was found or None."""
    outcome = {"accepted": [], "refused": 0, "error": None}
    try:
        program = random_programs.make_program(plan)
        s, refusals = random_schedules.make_schedule(program, plan, print_each=native)
        outcome |= {"accepted": [label(step) for step in s.trace], "refused": len(refusals)}
        check_bounds(s)
        if native:
            check_trace(program, s)
        check_values(program, s, plan, native)
    except Exception as error:
        outcome["error"] = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"
    return outcome


def label(step):
    """What a step is called in plans."""
    return f"{step.primitive}/{step.tail}" if step.primitive == "split" else step.primitive


def check_trace(program, s):
    """The trace leads to the same state again, from JSON and from Python."""
    again, printed = (lw.create_schedule(program.outputs) for _ in range(2))
    again.replay(lw.Trace.from_json(s.trace.to_json()))
    exec(s.trace.python(), {"s": printed})
    assert same_state(again.state, s.state), f"the JSON of the trace gives another state:\n{s.trace}"
    assert same_state(printed.state, s.state), f"the Python of the trace gives another state:\n{s.trace}"


def check_bounds(s):
    """What a state took over from those before it is what it finds by itself."""
    alone = replace(s.state)
    assert not alone.outdated
    assert nest_text(s.state) == nest_text(alone), f"by itself the last state is\n{nest_text(alone)}\nit says\n{s}"


def check_values(program, s, plan, native):
    """The scheduled program, in the interpreter and as native code, gives what the unscheduled one gives."""
    target = random_schedules.TARGETS[plan["target"]]
    expected = unscheduled(program, plan["seed"])
    nest = realized_function(s, program.args)  # memory is fresh in each iteration there, as it is not once lowered
    func = lw.lower(s, program.args, target=target)  # verifies after each pass
    for function, shown in (nest, "the nest"), (func, "the lowered function"):
        arrays = program.arrays(plan["seed"])
        lw.interpret(function)(*arrays)
        assert_same(program, arrays, expected, lambda shown=shown: f"{shown} in the interpreter\n{s}\n{func}")
    if native:
        debug = plan["seed"] % 3 == 0
        kernel = lw.build(s, program.args, target=runnable(target), precision=precision(s), debug=debug)
        arrays = program.arrays(plan["seed"])
        kernel(*arrays)
        assert_same(program, arrays, expected, lambda: f"in native code for {target}, debug={debug}\n{s}\n{func}")


def unscheduled(program, seed):
    """The arrays after the naive nest, which no pass has touched, ran in the interpreter."""
    arrays = program.arrays(seed)
    lw.interpret(realized_function(lw.create_schedule(program.outputs), program.args))(*arrays)
    return arrays


def assert_same(program, found, expected, where):
    """Integers bit for bit; floats within a few roundings, and only products need them: else all are whole numbers."""
    for tensor, x, y in zip(program.args, found, expected, strict=True):
        same = np.allclose(x, y, rtol=1e-6, atol=0, equal_nan=True) if tensor.dtype.is_float else np.array_equal(x, y)
        assert same, f"{tensor.name} is {x}, not {y}, {where()}"


def precision(s):
    """The strictest that allows the schedule."""
    try:
        require_order_of_definition(s.state)
    except lw.ScheduleError:
        return "standard"
    return "strict"


def serve():
    for line in sys.stdin:
        print(json.dumps(check(**json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
