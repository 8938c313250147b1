"""Features of the steps of a trace: which primitives made a schedule, how often, and with what numbers.

Zhai et al. (*TLP: A Deep Learning-based Cost Model for Tensor Program Tuning*, 2023) learn from primitives alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....lowering.primitives.annotate import Unroll, Vectorize
from ....lowering.primitives.loop_shape import Split
from ....lowering.step import Step

COUNTED = (
    "split",
    "fuse",
    "reorder",
    "vectorize",
    "unroll",
    "parallel",
    "compute_at",
    "compute_inline",
    "cache_read",
    "cache_write",
    "rfactor",
    "round_up",
    "transform_layout",
    "prefetch",
    "tensorize",
)


def trace_features(steps: Sequence[Step]) -> dict[str, float]:
    """The features of steps, by their names."""
    made = [step.primitive for step in steps]
    found = {f"steps.{name}": float(made.count(name)) for name in COUNTED}
    splits = [step for step in steps if isinstance(step, Split)]
    factors = [step.factor for step in splits if isinstance(step.factor, int)]
    peeled = [step for step in splits if step.tail == "peel"]
    return {
        **found,
        "steps.factors": math.log2(math.prod(factors)),
        "steps.largest factor": math.log2(max(factors, default=1)),
        "steps.peeled": float(len(peeled)),
        "steps.stages": float(len({step.stage for step in steps if isinstance(step, (Vectorize, Unroll))})),
    }
