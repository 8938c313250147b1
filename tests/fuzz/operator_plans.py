"""Plans of random calls of operators, which ``check_operator.py`` checks."""

from check_operator import DRAWS, NATIVE, TARGETS

from loopwright.ops.definition.registry import OpPattern, get_op

SCRIPT = "check_operator.py"
TURNS = {OpPattern.COMM_REDUCE: 3, OpPattern.OUT_ELEMENTWISE_FUSABLE: 6}
"""Operators of these patterns have many implementations, and are drawn so often as others."""
NAMES = [
    name for turn in range(max(TURNS.values())) for name in sorted(DRAWS) if turn < TURNS.get(get_op(name).pattern, 1)
]
SIZES = {"run": (0, 0, 1, 1), "forced": (0, 0, 1), "lower": (0, 1, 2, 2), "compile": (0, 1)}
"""By what is done with the call, the sizes that are drawn: what is only scheduled may be large."""


def draw(rng, number):
    """The plan of a number: the operators take turns."""
    how = rng.choice(["run", "run", "run", "forced", "forced", "lower", "lower", "compile"])
    return {
        "op": NAMES[number % len(NAMES)],
        "seed": rng.randrange(1_000_000),
        "size": rng.choice(SIZES[how]),
        "outliers": rng.random() < 0.5,
        "strict": rng.random() < 0.15,
        "relu": rng.random() < 0.3,
        "symbolic": rng.random() < 0.2,
        "layouts": rng.choice(["plan", "keep"]),
        "how": how,
        "target": rng.randrange(len(NATIVE if how in ("run", "forced") else TARGETS)),
    }


def simpler(plan):
    """Plans with one thing less."""
    for key, value in (
        ("outliers", False),
        ("strict", False),
        ("relu", False),
        ("symbolic", False),
        ("layouts", "keep"),
        ("target", 0),
    ):
        if plan[key] != value:
            yield plan | {key: value}
    for size in range(plan["size"]):
        yield plan | {"size": size}
    for seed in range(20):
        if plan["seed"] > seed:
            yield plan | {"seed": seed, "size": 0}
