"""A stencil of one's own, from its naive nest to what the machine's memory allows.

Heat spreads in a plate: two steps, each the mean of a cell and its four neighbours. The naive nest, the default
schedule, what ``lw.autoschedule`` finds by a model, and what ``lw.tune_schedule`` finds by measuring compute the same.
The roofline is the time that moving the plate once in and once out takes, at the rate of reading from where its size
lets it stay. Give a size and a number of measurements as arguments, such as 1024 64.
"""

import sys

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.runtime.measure.measure_rates import measure_rates


def step(plate: te.Tensor, name: str) -> te.Tensor:
    height, width = plate.shape

    def cell(y: te.Axis, x: te.Axis) -> te.Expr:
        beside = plate[y + 1, x] + plate[y + 1, x + 2] + plate[y, x + 1] + plate[y + 2, x + 1]
        return (beside + plate[y + 1, x + 1]) * 0.2

    return te.compute((height - 2, width - 2), cell, name=name)


def step_by_numpy(plate: np.ndarray) -> np.ndarray:
    beside = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
    updated: np.ndarray = (beside + plate[1:-1, 1:-1]) * np.float32(0.2)
    return updated


def main(size: int, measurements: int) -> None:
    target = lw.resolve_target("native").with_threads(1)
    plate = te.placeholder((size + 4, size + 4), name="plate")
    cooled = step(step(plate, "first"), "cooled")

    found = lw.autoschedule(cooled, target, candidates=8)
    tuned = lw.tune_schedule(cooled, target, measurements=measurements, candidates=8, threads=1)
    print(tuned)
    print(*(decision for decision in tuned.schedule.decisions if len(decision.legal) > 1), sep="\n")

    heat = np.random.default_rng(0).standard_normal(plate.shape, dtype=np.float32)
    expected = step_by_numpy(step_by_numpy(heat))
    roofline = measure_rates(target, threads=1).least_seconds(10 * size**2, 4 * (size + 4) ** 2 + 4 * size**2)
    ways = {
        "naive": lw.create_schedule(cooled),
        "by default": lw.default_schedule(cooled, target),
        "by the model": found,
        "by measuring": tuned.schedule,
    }
    for name, schedule in ways.items():
        kernel, result = lw.build(schedule, [plate, cooled], target, name="cool"), np.empty((size, size), np.float32)
        kernel(heat, result)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        seconds = kernel.time(heat, result, threads=1).min
        print(f"{name:12} {1e6 * seconds:8.1f} µs, {roofline / seconds:4.0%} of the roofline; agrees with numpy")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256, int(sys.argv[2]) if len(sys.argv) > 2 else 8)
