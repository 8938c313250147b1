"""Checks one random loop: compiled, it gives what numpy gives, iteration by iteration.

Run as a script it is a server: a plan as JSON comes in a line, a line with the outcome goes out.
"""

import json
import sys
import traceback

import numpy as np
from random_loops import random_loop

import loopwright as lw


def check(plan):
    """``{"error": …}``; ``"met"`` has the operators of the bodies."""
    loop = random_loop(plan["seed"])
    try:
        check_loop(loop)
    except Exception as error:
        return {"met": [], "error": f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"}
    return {"met": sorted(loop.operators), "error": None}


def check_loop(loop):
    """Raises ``AssertionError`` where a call gives something else than expected."""
    engine = lw.Engine(lw.compile(loop.model, jobs=1, progress=False))
    for feeds, wanted in zip(loop.feeds, loop.expected, strict=True):
        for found, want in zip(engine(feeds), wanted, strict=True):
            if want.dtype == object:
                assert found.tolist() == want.tolist()
            else:
                assert found.shape == want.shape
                np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def serve():
    for line in sys.stdin:
        print(json.dumps(check(json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
