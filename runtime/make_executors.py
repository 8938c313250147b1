"""The executors of an engine: they share the constants and, as far as they may, the loaded code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..artifact.model import CompiledModel
from ..base.aligned import aligned
from ..base.errors import TargetError
from .executor import Executor
from .executor_config import ExecutorConfig
from .foreign import why_not_here
from .functions.externs import find_externs
from .functions.symbols import function_symbols, model_symbols
from .loaded_model import LoadedModel
from .memory_budget import MemoryBudget
from .signature import Signature
from .tactics.choice import ChosenTactics, TacticChoice
from .threads.thread_pool import SHARED_POOL, PoolLease


def make_executors(
    model: CompiledModel,
    signature: Signature,
    configs: Sequence[ExecutorConfig],
    choice: TacticChoice,
    budget: MemoryBudget,
) -> list[tuple[Executor, ChosenTactics]]:
    """An executor for each config, with the tactics that were chosen for it; the budget counts the weights.

    Those whose threads are of the same set share the loaded code, but for those that have functions of Python of their
    own. Raises ``TargetError`` for a model that does not run here.
    """
    if (problem := why_not_here(model.target)) is not None:
        raise TargetError(problem)
    budget.hold_weights(sum(constant.nbytes for constant in model.constants))
    constants = tuple(aligned(constant) for constant in model.constants)
    externs = find_externs(model)
    shared: dict[tuple[object, ...], LoadedModel] = {}
    made = []
    for number, config in enumerate(configs):
        lease = PoolLease() if config.has_own_pool else None
        pool = lease.pool if lease is not None else config.cores or SHARED_POOL
        chosen = choice.choose(config)
        kind = (pool, *((symbol, code.implementation) for symbol, code in chosen.codes.items()))
        loaded = None if chosen.hosts else shared.get(kind)
        if loaded is None:
            symbols = {**model_symbols(model, pool), **function_symbols(chosen.codes.values()), **externs.natives}
            loaded = LoadedModel(model, constants, symbols, {**externs.hosts, **chosen.hosts}, chosen.codes)
            if not chosen.hosts:
                shared[kind] = loaded
        made.append((Executor(loaded, signature, config, lease, partial(budget.claim, number)), chosen))
    return made
