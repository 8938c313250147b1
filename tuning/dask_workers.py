"""The workers of a Dask cluster, by the address of its scheduler: ``dask://HOST:PORT``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..base.errors import RuntimeArgumentError
from .workers import SubmitsJobs

PATIENCE_SECONDS = 30.0
"""How long to wait for a scheduler, and for its first worker."""


@contextmanager
def dask_workers(address: str, patience: float = PATIENCE_SECONDS) -> Iterator[tuple[SubmitsJobs, int]]:
    """An executor of the cluster, and how many jobs its workers do at once, which is one a thread.

    Raises ``RuntimeArgumentError`` for an address that is none, where dask.distributed is not installed, and where no
    scheduler answers, or has no worker, in ``patience`` seconds.
    """
    found = re.fullmatch(r"dask://([^/\s]+:\d+)", address)
    if found is None:
        raise RuntimeArgumentError(f"workers stand at dask://HOST:PORT, found {address!r}")
    try:
        from distributed import Client
    except ImportError:
        raise RuntimeArgumentError(
            f"{address}: workers of Dask need dask.distributed: pip install 'loopwright[tune]'"
        ) from None
    try:
        client = Client(f"tcp://{found[1]}", timeout=patience)
    except (OSError, ValueError) as error:
        raise RuntimeArgumentError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            raise RuntimeArgumentError(f"the Dask scheduler at {address} has no workers") from None
        yield client.get_executor(), sum(client.nthreads().values())
