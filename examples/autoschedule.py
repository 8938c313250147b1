"""A stencil of one's own, from its definition to a schedule that nobody wrote.

An image is blurred along its rows, then along its columns, as one would write it down. The naive nest, the default
schedule and the one that ``lw.autoschedule`` finds compute the same; the last is chosen by an analytic model, without
measuring. A rule of one's own takes part in the search. Give a size as the argument, such as 2048.
"""

import sys

import numpy as np

import loopwright as lw
from loopwright import te

WEIGHTS = [0.0625, 0.25, 0.375, 0.25, 0.0625]


def blur(size: int) -> tuple[te.Tensor, te.Tensor]:
    image = te.placeholder((size + 4, size + 4), name="image")

    def along_row(y: te.Axis, x: te.Axis) -> te.Expr:
        first, *others = (image[y, x + k] * weight for k, weight in enumerate(WEIGHTS))
        return sum(others, first)

    across = te.compute((size + 4, size), along_row, name="across")

    def along_column(y: te.Axis, x: te.Axis) -> te.Expr:
        first, *others = (across[y + k, x] * weight for k, weight in enumerate(WEIGHTS))
        return sum(others, first)

    return image, te.compute((size, size), along_column, name="blurred")


def whole_rows(at: lw.StageSketch) -> None:
    """Rows in parallel, and vectors along them, several side by side; the last ones of a row apart."""
    row, column = at.stage.loops
    width = at.decide("width", [at.lanes, 2 * at.lanes, 4 * at.lanes], at.lanes)
    _, lane = at.stage.split(column, factor=width, tail="peel")
    at.stage.vectorize(lane)
    if at.is_whole:
        at.stage.parallel(row)


def main(size: int) -> None:
    image, blurred = blur(size)
    mine = lw.ScheduleRule("whole rows", "loops", lambda at: at.op.reduction is None, whole_rows)
    found = lw.autoschedule(blurred, candidates=8, rules=[*lw.schedule_rules(), mine])
    print(found)
    print(*(decision for decision in found.decisions if len(decision.legal) > 1), sep="\n")

    pixels = np.random.default_rng(0).standard_normal((size + 4, size + 4), dtype=np.float32)
    rows, expected = np.zeros((size + 4, size), np.float32), np.zeros((size, size), np.float32)
    for k, weight in enumerate(WEIGHTS):
        rows += np.float32(weight) * pixels[:, k : k + size]
    for k, weight in enumerate(WEIGHTS):
        expected += np.float32(weight) * rows[k : k + size]
    ways = {"naive": lw.create_schedule(blurred), "by default": lw.default_schedule(blurred), "found": found}
    for name, schedule in ways.items():
        kernel, result = lw.build(schedule, [image, blurred], name="blur"), np.empty((size, size), np.float32)
        kernel(pixels, result)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        print(f"{name}: agrees with numpy; {kernel.time(pixels, result)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
