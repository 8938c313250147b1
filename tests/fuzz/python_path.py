"""Lets the scripts of this folder import what tests share: from the folders that pyproject.toml gives pytest."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
FOLDERS = [str(ROOT / name) for name in SETTINGS["pythonpath"]]
sys.path += [folder for folder in FOLDERS if folder not in sys.path]
