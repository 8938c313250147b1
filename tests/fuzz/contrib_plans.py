"""Plans of random changes to cases of onnxruntime's own operators, which ``check_contrib.py`` checks."""

SCRIPT = "check_contrib.py"
CHANGES = (
    "change_attribute", "leave_out", "leave_out_attribute", "hostile_number", "other_extent", "halves",
    "other_constants", "other_outputs",
)  # fmt: skip
"""Names of functions of ``check_contrib.py``, which only the processes that check import, as onnxruntime is needed."""


def draw(rng, number):
    """A plan; each number has its own generator. The cases take turns."""
    count = rng.choice([1, 1, 2, 2, 3])
    return {
        "case": number,
        "changes": [[rng.choice(CHANGES), rng.randrange(240), rng.randrange(240)] for _ in range(count)],
        "opened": rng.random() < 0.4,
    }


def simpler(plan):
    """Plans with one thing less."""
    for at in range(len(plan["changes"])):
        yield plan | {"changes": plan["changes"][:at] + plan["changes"][at + 1 :]}
    if plan["opened"]:
        yield plan | {"opened": False}
