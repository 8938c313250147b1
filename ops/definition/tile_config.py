"""Configs of tuning records for implementations with a register tile: ``{"rows": 6, "vectors": 2, "pack": true}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...base.errors import SelectionError
from ...schedules.register_tile import RegisterTile

MAX_SUMS = 128
"""Vectors of sums in a tile. More than a few times the registers there are only makes long code."""


def configured_tile(config: Mapping[str, Any], tile: RegisterTile) -> RegisterTile:
    """The tile with the ``rows`` and ``vectors`` of a config, where it gives them; it gives nothing else.

    Raises ``SelectionError`` for unknown names, numbers that are none, and tiles that are far too large.
    """
    _check_names(config, "rows", "vectors")
    rows, vectors = (_positive(config, name, getattr(tile, name)) for name in ("rows", "vectors"))
    if rows * vectors > MAX_SUMS:
        raise SelectionError(f"a tile of {rows} rows of {vectors} vectors is too large; at most {MAX_SUMS} are taken")
    return replace(tile, rows=rows, vectors=vectors)


def configured_panels(config: Mapping[str, Any], tile: RegisterTile, pack: bool) -> tuple[RegisterTile, bool]:
    """As ``configured_tile``, and whether a factor is packed into panels as wide as it: ``pack``, true or false."""
    _check_names(config, "rows", "vectors", "pack")
    packed = config.get("pack", pack)
    if not isinstance(packed, bool):
        raise SelectionError(f"the config's 'pack' should be true or false, found {packed!r}")
    return configured_tile({name: value for name, value in config.items() if name != "pack"}, tile), packed


def _check_names(config: Mapping[str, Any], *names: str) -> None:
    for name in config:
        if name not in names:
            raise SelectionError(f"the config has an unknown {name!r}; there are {', '.join(names)}")


def _positive(config: Mapping[str, Any], name: str, default: int) -> int:
    value = config.get(name, default)
    if type(value) is not int or value < 1:
        raise SelectionError(f"the config's {name!r} should be a whole number above 0, found {value!r}")
    return value
