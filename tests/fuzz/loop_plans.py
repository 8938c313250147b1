"""Plans of random loops, which ``check_loop.py`` checks."""

SCRIPT = "check_loop.py"


def draw(rng, number):
    """A plan; each number has its own generator."""
    return {"seed": rng.randrange(1_000_000)}


def simpler(plan):
    """No plan: a seed has no simpler ones."""
    return ()
