"""ResNet-50 by the command line: what was fused, which implementations serve it, how fast it is, its hottest code.

The graph ships inside the onnx package; its weights are replaced by seeded random ones. The result, before the softmax,
is checked against onnxruntime where that is installed, else against onnx's reference evaluator. With `--explore`, a
page shows how the function that takes the longest becomes machine code, stage by stage.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).parent))
from support.light_models import with_random_weights


def loopwright(*arguments: str) -> int:
    """Run the command line; its exit code."""
    print("$ loopwright", *arguments, flush=True)
    return subprocess.run([sys.executable, "-m", "loopwright", *arguments], check=False).returncode


def near(path: str) -> str:
    """A path as short as it can be written here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


exploring = "--explore" in sys.argv
with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder) / "resnet50.onnx")
    onnx.save(with_random_weights("resnet50", intermediates=0), path)
    if exploring:
        code = loopwright("explore", path, "--output", "resnet50.html", "--open")
    else:
        code = loopwright("run", path, "--check", "--threads", "1")
if not exploring and code == 0:
    print("\nTo see in a browser how its hottest function becomes this code, step by step:")
    print(shlex.join([near(sys.executable), near(__file__), "--explore"]))
sys.exit(code)
