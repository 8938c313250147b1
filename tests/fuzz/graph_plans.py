"""Plans of random graphs, which ``check_graph.py`` checks."""

from check_graph import TARGETS
from random_graphs import FORMS, SHAPES, SIZES

SCRIPT = "check_graph.py"
LEAST = {"nodes": 1, "inputs": 1, "outputs": 1}


def draw(rng, number):
    """A plan; each number has its own generator."""
    return {
        "seed": rng.randrange(1_000_000),
        "sizes": [rng.choice(SIZES) for _ in "nmkchw"],
        "symbolic": rng.choice(["", "", "n", "nm"]),
        "inputs": [rng.choice(SHAPES) for _ in range(rng.choice([1, 2, 2, 3]))],
        "nodes": [
            [rng.choice(FORMS), rng.randrange(4), rng.randrange(8), rng.randrange(240)]
            for _ in range(rng.randint(2, 7))
        ],
        "outputs": [rng.choice([0, 0, 1, 2, 3]) for _ in range(rng.choice([1, 1, 2, 3]))],
        "outliers": rng.choice([None, None, "large", "any"]),
        "target": rng.randrange(len(TARGETS)),
        "layouts": rng.choice(["plan", "plan", "keep"]),
        "precision": rng.choice(["standard", "standard", "standard", "strict", "fast"]),
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
