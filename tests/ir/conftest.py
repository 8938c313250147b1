"""Lets the tests of proofs share what z3 is told."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
