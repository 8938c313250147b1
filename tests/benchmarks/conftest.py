"""The modules of ``benchmarks/`` import each other by their bare names, as scripts do."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
