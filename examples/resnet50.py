"""ResNet-50 by the command line: what was fused, which implementations serve it, how fast it is, its hottest code.

The graph ships inside the onnx package; its weights are replaced by seeded random ones. The result, before the softmax,
is checked against onnxruntime where that is installed, else against onnx's reference evaluator. `--explore FUNCTION`
makes a page that shows how one of its functions becomes machine code, stage by stage.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).parent))
from support.light_models import with_random_weights


def loopwright(*arguments: str) -> str:
    """Run the command line, and show what it prints as it comes; that text. Where it fails, so does this program."""
    print("$ loopwright", *arguments, flush=True)
    lines = []
    command = [sys.executable, "-u", "-m", "loopwright", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(process.returncode)
    return "".join(lines)


def near(path: str) -> str:
    """A path as short as it can be written here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder) / "resnet50.onnx")
    onnx.save(with_random_weights("resnet50", intermediates=0), path)
    if sys.argv[1:2] == ["--explore"]:
        loopwright("explore", path, "--output=resnet50.html", "--open", *(f"--function={f}" for f in sys.argv[2:]))
        sys.exit()
    shown = loopwright("run", path, "--check", "--threads", "1")
hottest = re.findall(r"^=== Loop nest of (\w+)", shown, re.MULTILINE)
print("\nTo see in a browser how its hottest function becomes this code, step by step:")
print(shlex.join([near(sys.executable), near(__file__), "--explore", *hottest]))
