"""Lets the scripts of this folder import what tests share: from the folders that pyproject.toml gives pytest."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
sys.path += [folder for name in SETTINGS["pythonpath"] if (folder := str(ROOT / name)) not in sys.path]
