"""ResNet-50: what it was fused into, where its time goes, how fast it is beside onnxruntime, and its hottest code.

The graph ships inside the onnx package; its weights are replaced by seeded random ones. The result, before the softmax,
is checked against onnxruntime. `python examples/resnet50.py FOLDER` says where the model and the compiled library go.
"""

import shlex
import sys
import time

import numpy as np
from support.light_models import with_random_weights
from support.peers import in_onnxruntime
from support.showing import (
    compare_times,
    heading,
    hottest_loop,
    innermost_nest,
    output_folder,
    short,
    show_code,
    show_functions,
)

import loopwright as lw

folder = output_folder()
path, saved = folder / "resnet50.onnx", folder / "resnet50.lwlib"
heading("ResNet-50: a model, compiled, checked and timed")
path.write_bytes(with_random_weights("resnet50", intermediates=0).SerializeToString())

begin = time.perf_counter()
library = lw.compile(path)
compiled = time.perf_counter() - begin
library.save(saved)
begin = time.perf_counter()
engine = lw.Engine(lw.load(saved), threads=1).init()
loaded = time.perf_counter() - begin
print(f"Compiled in {compiled:.1f} s; saved, it loads in {loaded:.1f} s.\n")

onnxruntime = in_onnxruntime(path)
x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
(ours,) = engine(x)
theirs = onnxruntime(x)
error = np.abs(ours - theirs).max() / np.abs(theirs).max()
assert error < 1e-4, f"the results differ by {error:.1e} of the largest element"

profile = engine.profile(x)
show_functions(library, profile)
hottest = profile.functions[0].symbol
(nest,), (assembly,) = (lw.dump(library, stage, hottest) for stage in ("loop", "asm"))
show_code("The loop nest of the hottest, down to its longest loop", innermost_nest(nest.text), 14)
show_code("Its innermost loop in machine code", hottest_loop(assembly.text), 10)

print(f"One image on one thread each; the results differ by {error:.0e} of the largest:")
compare_times(
    {"loopwright": lambda: engine(x), "onnxruntime": lambda: onnxruntime(x)},
    operations=sum(step.operations for step in profile.steps),
)
print(f"\n{short(path)} is the model,\n{short(saved)} what it was compiled to.")
print("To see in a browser how the hottest function becomes this code, step by step:")
command = [short(sys.executable), "-m", "loopwright", "explore", short(path), "--open", "--function", hottest]
print(shlex.join(command))
