"""Operators and strategies that scripts register: compiled whatever the number of processes, and never from an entry of
the cache that other code made."""

import os
import subprocess
import sys

PROGRAM = """
import sys
from dataclasses import dataclass
import numpy as np
import loopwright as lw
from loopwright import te
from loopwright.ops.definition.attrs import Attrs, attr
from loopwright.ops.definition.registry import OpPattern, register_op
from loopwright.ops.definition.strategy import OpStrategy, register_compute, register_strategy, schedule_default

@dataclass(frozen=True)
class ShiftAttrs(Attrs):
    by: int = attr("what is added", 0)

def compute(attrs, inputs, result):
    (x,) = inputs
    return te.compute(x.shape, lambda *i: x[i] + (attrs.by + STEP), name="shift")

def relation(types, attrs):
    return types[0]

SHIFT = register_op("shift", "x + by + a step", [("x", "any")], relation, OpPattern.OPAQUE, ShiftAttrs)
register_compute(SHIFT, compute)

@register_strategy(lw.nn.exp(lw.var("x", (1,))).op, level=20)
def exp_strategy(attrs, inputs, result, target):
    made = OpStrategy()
    minus = lambda attrs, inputs, result: te.compute(inputs[0].shape, lambda *i: inputs[0][i] - STEP)
    made.add_implementation(minus, schedule_default, "exp.mine")
    return made

x = lw.var("x", (4,))
y = x
for by in range(7):
    y = SHIFT(y, attrs=ShiftAttrs(by))
library = lw.compile(lw.Function([x], lw.nn.exp(y)), jobs=2)
print(lw.Engine(library)([np.zeros(4, "float32")])[0][0], len(library.functions))
"""


def run(tmp_path, step, **environment):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.replace("STEP", str(step)))
    command = [sys.executable, str(script)]
    variables = os.environ | {"LOOPWRIGHT_CACHE_DIR": str(tmp_path / "cache")} | environment
    done = subprocess.run(command, env=variables, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    value, functions = done.stdout.split()
    assert int(functions) == 8
    return float(value)


def test_what_a_script_registers_is_compiled_as_the_script_is_now(tmp_path):
    for step in (1, 1000, 1):
        assert run(tmp_path, step) == 21 + 7 * step - step
