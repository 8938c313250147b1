"""ResNet-50 by the command line: what was fused, which implementations serve it, how fast it is, its hottest code.

The graph ships inside the onnx package; its weights are replaced by seeded random ones. The result, before the softmax,
is checked against onnxruntime where that is installed, else against onnx's reference evaluator.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).parent))
from support.light_models import with_random_weights

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "resnet50.onnx"
    onnx.save(with_random_weights("resnet50", intermediates=0), path)
    command = ["loopwright", "run", str(path), "--check", "--threads", "1"]
    print("$", *command, flush=True)
    sys.exit(subprocess.run([sys.executable, "-m", *command], check=False).returncode)
