"""ResNet-50, from its ONNX file to a running engine: what was fused, which implementations serve it, how fast it is.

The graph ships inside the onnx package; its weights are replaced by seeded random ones. The result is checked against
onnxruntime where that is installed, else against onnx's reference evaluator.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from rich.progress import Progress

import loopwright as lw

sys.path.insert(0, str(Path(__file__).parent))
from support.light_models import with_random_weights


def reference_session(model, threads=1):
    """A function that evaluates the model, and its name."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run, "onnx's reference evaluator"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run, "onnxruntime"


def seconds(run, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


model = with_random_weights("resnet50", intermediates=0)
x = np.random.default_rng(1).standard_normal((1, 3, 224, 224), dtype=np.float32)
name = model.graph.input[0].name

start = time.perf_counter()
with Progress(disable=not sys.stdout.isatty()) as progress:
    task = progress.add_task("compiling", total=None)
    library = lw.compile(model, progress=lambda done, total, _: progress.update(task, completed=done, total=total))
print(
    f"{len(library.functions)} fused functions compiled in {time.perf_counter() - start:.1f} s; "
    f"{len(library.model.steps)} calls of them, an arena of {library.model.arena_bytes / 2**20:.1f} MiB\n"
)

print(f"{'function':70} {'calls':>5}  implementation, and why")
calls = Counter(step.function.symbol for step in library.model.steps)
for function in library.functions:
    anchor = max(function.choices, key=lambda choice: choice.op.startswith("nn."))
    print(f"{function.name:70.70} {calls[function.symbol]:5}  {anchor.implementation} ({anchor.reason})")

engine = lw.Engine(library, threads=1)
(output,) = engine({name: x})
run_reference, who = reference_session(model)
(expected,) = run_reference(None, {name: x})
error = np.abs(output - expected).max() / np.abs(expected).max()
assert error < 1e-4, f"differs from {who} by {error:.1e} of the maximum"
print(f"\nbefore the softmax, the largest difference from {who} is {error:.1e} of the maximum")

print(f"latency, 1 thread: loopwright {seconds(lambda: engine({name: x})) * 1e3:.1f} ms", end="")
print(f", {who} {seconds(lambda: run_reference(None, {name: x}), 3) * 1e3:.1f} ms")

hottest = max(library.functions, key=lambda function: calls[function.symbol] * ("conv" in function.name))
print(f"\n=== Loop nest of {hottest.name} (library.functions has all) ===")
print("\n".join(line[:140] for line in hottest.loop_ir.splitlines()[:24]))
print("\n=== Its LLVM IR, the beginning ===")
print("\n".join(line[:140] for line in hottest.llvm_ir.splitlines()[:16]))
