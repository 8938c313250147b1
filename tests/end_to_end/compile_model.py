"""Run as a script, ``compile_model.py <light model> <jobs>``: compiles the model, and prints as JSON digests of each
function's loop nest, LLVM IR and object, of the entry point and of the steps.
"""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import loopwright as lw


def light_models():
    path = Path(__file__).resolve().parents[2] / "examples" / "support" / "light_models.py"
    spec = importlib.util.spec_from_file_location("light_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


if __name__ == "__main__":
    name, jobs = sys.argv[1:]
    model = lw.compile(
        light_models().with_random_weights(name, intermediates=0), target="x86-64-v3", jobs=int(jobs)
    ).model
    parts = {
        function.symbol: [digest(part) for part in (function.loop_ir, function.llvm_ir, function.object)]
        for function in model.functions
    }
    steps = [(step.symbol, step.operands, step.origin) for step in model.steps]
    entry = [digest(model.entry_llvm_ir), digest(model.entry_object), list(map(repr, model.first_stage.intermediates))]
    constants = [digest(constant.tobytes()) for constant in model.constants]
    print(json.dumps({"functions": parts, "entry": entry, "steps": steps, "constants": constants}))  # noqa: T201
