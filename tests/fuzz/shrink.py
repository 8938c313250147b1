"""Makes a failing plan small: takes away steps and stages, makes numbers small, as long as it fails in the same way."""

import copy
from collections.abc import Iterator


def failure(error):
    """What stays the same while a plan shrinks: the kind of error, and the first words of its text."""
    return " ".join(error.split()[:4])


def shrink(plan, check, attempts=300):
    """The smallest plan found that fails in the same way. ``check`` gives a plan's error or None."""
    wanted = failure(check(plan) or "nothing")
    best, tried = plan, 0
    progress = True
    while progress and tried < attempts:
        progress = False
        for candidate in simpler(best):
            tried += 1
            error = check(candidate)
            if error is not None and failure(error) == wanted:
                best, progress = candidate, True
                break
            if tried >= attempts:
                break
    return best


def simpler(plan) -> Iterator[dict]:
    """Plans with one thing less, the most promising first."""
    for key in ("steps", "stages"):
        for size in (len(plan[key]) // 2, 1):
            for at in range(0, len(plan[key]), size or 1):
                if size and len(plan[key]) > size:
                    yield plan | {key: plan[key][:at] + plan[key][at + size :]}
    for at in range(2):
        if plan["symbolic"][at]:
            yield changed(plan, "symbolic", at, value=False)
        if plan["sizes"][at] > 4:
            yield changed(plan, "sizes", at, value=4)
    for key, value in (("dtype", "int32"), ("extra", 0), ("outliers", False), ("seed", 1), ("target", 0)):
        if plan.get(key, value) != value:
            yield plan | {key: value}
    for key in ("stages", "steps"):
        for at, item in enumerate(plan[key]):
            for part, number in enumerate(item):
                if isinstance(number, int) and number > 0:
                    yield changed(plan, key, at, part, value=0)


def changed(plan, *path, value):
    """The plan with another value at a path."""
    result = copy.deepcopy(plan)
    target = result
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return result
