"""Whether code for a target can run on this machine."""

from __future__ import annotations

from ..base.target import Target
from ..codegen.features import FEATURES
from ..codegen.host import host_target


def why_not_here(target: Target) -> str | None:
    """Why code for a target cannot run on this machine; None if it can. A wrong instruction would kill the process."""
    host = host_target()
    if target.arch != host.arch:
        return f"the kernel was compiled for {target.arch}, but this machine is {host.arch}"
    if target.system != host.system:  # which calls functions in another way
        return f"the kernel was compiled for {target.triple}, but this machine is {host.triple}"
    missing = sorted(target.features & set(FEATURES.get(host.arch, ())) - host.features)
    return (
        f"the kernel was compiled for {target.cpu} with {', '.join(missing)}, which this cpu lacks" if missing else None
    )
