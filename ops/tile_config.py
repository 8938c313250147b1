"""Configs of tuning records for implementations with a register tile: ``{"rows": 6, "vectors": 2, "pack": true}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..ir.errors import SelectionError
from ..lowering.register_tile import RegisterTile

MAX_SUMS = 128
"""Vectors of sums in a tile. More than a few times the registers there are only makes long code."""


def configured_tile(config: Mapping[str, Any], tile: RegisterTile) -> RegisterTile:
    """The tile with the ``rows`` and ``vectors`` of a config, where it gives them.

    Raises ``SelectionError`` for numbers that are none, and for tiles that are far too large.
    """
    rows, vectors = (_positive(config, name, getattr(tile, name)) for name in ("rows", "vectors"))
    if rows * vectors > MAX_SUMS:
        raise SelectionError(f"a tile of {rows} rows of {vectors} vectors is too large; at most {MAX_SUMS} are taken")
    return replace(tile, rows=rows, vectors=vectors)


def configured_flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    """The true or false that a config gives, if it does. Raises ``SelectionError`` for anything else."""
    value = config.get(name, default)
    if not isinstance(value, bool):
        raise SelectionError(f"the config's {name!r} should be true or false, found {value!r}")
    return value


def check_config(config: Mapping[str, Any], *names: str) -> None:
    """Raises ``SelectionError`` where a config has a name that is not one of these."""
    for name in config:
        if name not in names:
            raise SelectionError(f"the config has an unknown {name!r}; there are {', '.join(names)}")


def _positive(config: Mapping[str, Any], name: str, default: int) -> int:
    value = config.get(name, default)
    if type(value) is not int or value < 1:
        raise SelectionError(f"the config's {name!r} should be a whole number above 0, found {value!r}")
    return value
