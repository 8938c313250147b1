"""The same inputs give the same choice and the same text, whatever the order of imports and the seed of hashes."""

import os
import subprocess
import sys
from pathlib import Path

import loopwright as lw

PROGRAM = """
import importlib, pkgutil, random, sys, types

def bare(name, path):
    # A package without what its __init__ imports, so that the order is ours.
    made = types.ModuleType(name)
    made.__path__ = [path]
    sys.modules[name] = made

root = sys.argv[1]
bare("loopwright", root)
bare("loopwright.ops", root + "/ops")
names = sorted(m.name for m in pkgutil.iter_modules([root + "/ops"]))
random.Random(int(sys.argv[2])).shuffle(names)
for name in names:
    importlib.import_module("loopwright.ops." + name)

from loopwright.codegen.host import resolve_target
from loopwright.compiler.reports.explain import explain_call
from loopwright.compiler.selection.records import TuningRecords
from loopwright.compiler.selection.tuning_record import TuningRecord
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Var
from loopwright.graph.types import tensor_type
from loopwright.ops import nn

def var(*shape):
    return Var("x", tensor_type(shape, "float32"))

target = resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
product = nn.matmul(var(24, 16), var(16, 20))
calls = [
    product, nn.conv2d(var(1, 8, 9, 9), var(8, 8, 3, 3)), nn.conv2d(var(1, 8, 9, 9), var(16, 8, 1, 1)),
    nn.softmax(var(4, 400)), nn.max(var(4, 400), axes=[1]), nn.relu(var(3)), nn.max_pool(var(1, 8, 16, 16), 2),
]
cost = [TuningRecord.of(product, target, name, [1e-3]) for name in ("matmul.direct", "matmul.paneled")]
print(len(sys.modules["loopwright.ops.definition.registry"].all_ops()))
for call in calls:
    print(explain_call(call, CompileSettings(target)))
    print(explain_call(call, CompileSettings(target, records=TuningRecords(cost))))
"""


def choices(seed):
    """What a child says that imports the operators in an order of its own, and hashes in its own way."""
    root = str(Path(lw.__file__).parent)
    command = [sys.executable, "-c", PROGRAM, root, str(seed)]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=600).stdout


def test_choices_do_not_depend_on_the_order_of_imports():
    first, second = choices(1), choices(2)
    assert first == second
    assert (
        "matmul.direct (10): recorded on this target: 1.00 ms, the cheapest of 2 records, the first recorded" in first
    )
