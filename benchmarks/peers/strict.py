"""Ours with strict precision: the order of the definitions kept, nothing contracted. Reported beside, no peer."""

from __future__ import annotations

import functools

from . import loopwright

prepare = functools.partial(loopwright.prepare, precision="strict")
