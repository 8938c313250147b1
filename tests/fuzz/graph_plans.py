"""Plans of random graphs, which ``check_graph.py`` checks."""

from check_graph import TARGETS
from random_graphs import LONG_SIZES, MOVEMENTS, OTHERS, SHAPES, SIZES

SCRIPT = "check_graph.py"
LEAST = {"nodes": 1, "inputs": 1, "outputs": 1}


def draw(rng, number):
    """A plan; each number has its own generator. One of four is a chain."""
    plan = {
        "kind": "graph",
        "seed": rng.randrange(1_000_000),
        "sizes": [rng.choice(SIZES) for _ in "nmkchw"],
        "symbolic": rng.choice(["", "", "n", "nm"]),
        "inputs": [rng.choice(SHAPES) for _ in range(rng.choice([1, 2, 2, 3]))],
        "nodes": [
            [rng.choice(MOVEMENTS + OTHERS), rng.randrange(4), rng.randrange(8), rng.randrange(240)]
            for _ in range(rng.randint(2, 7))
        ],
        "outputs": [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.choice([1, 1, 2, 3]))],
        "outliers": rng.choice([None, None, "large", "any"]),
        "target": rng.randrange(len(TARGETS)),
        "layouts": rng.choice(["plan", "plan", "keep"]),
        "precision": rng.choice(["standard", "standard", "standard", "strict", "fast"]),
    }
    return plan | _chain(rng) if number % 4 == 3 else plan


def _chain(rng):
    """What makes a plan a chain: movements, mostly, and a few others, each of what the one before it gave, of larger
    tensors. Their indices are taken apart and put together again when they are fused."""
    return {
        "kind": "chain",
        "sizes": [rng.choice(LONG_SIZES) for _ in "nmkchw"],
        "symbolic": rng.choice(["", "", "", "n"]),
        "inputs": [rng.choice(["nm", "nkm", "ncm", "nchw"]) for _ in range(2)],
        "nodes": [
            [rng.choice(rng.choice([MOVEMENTS, MOVEMENTS, OTHERS])), 0, rng.randrange(8), rng.randrange(240)]
            for _ in range(rng.randint(3, 6))
        ],
        "outputs": [0],
    }


def simpler(plan):
    """Plans with one thing less, the most promising first."""
    for key, least in LEAST.items():
        for at in range(len(plan[key])):
            if len(plan[key]) > least:
                yield plan | {key: plan[key][:at] + plan[key][at + 1 :]}
    for key, value in (
        ("symbolic", ""), ("outliers", None), ("layouts", "keep"), ("precision", "standard"), ("target", 0),
    ):  # fmt: skip
        if plan[key] != value:
            yield plan | {key: value}
    for at, size in enumerate(plan["sizes"]):
        if size > 3:
            yield plan | {"sizes": [*plan["sizes"][:at], 3, *plan["sizes"][at + 1 :]]}
