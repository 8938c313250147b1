"""GridSample in numpy, a place after the other: the oracle for the tests of several folders."""

import itertools

import numpy as np

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")


def weights(mode, share):
    """The offsets of the elements around a place, and their weights."""
    if mode == "nearest":
        return [(0, 1.0)]
    if mode == "linear":
        return [(0, 1 - share), (1, share)]
    a = -0.75
    near = lambda t: (a + 2) * t**3 - (a + 3) * t**2 + 1  # noqa: E731
    far = lambda t: a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a  # noqa: E731
    return [(-1, far(1 + share)), (0, near(share)), (1, near(1 - share)), (2, far(2 - share))]


def reflected(at, low, high):
    """Folded back at both ends until it is inside."""
    if high <= low:
        return low
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def sampled(x, grid, mode="linear", padding="zeros", align=False):
    extents = x.shape[2:]
    made = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for place in np.ndindex(grid.shape[:-1]):
        taps = []
        for extent, coordinate in zip(extents, grid[place][::-1], strict=True):
            low, high = (0, extent - 1) if align else (-0.5, extent - 0.5)
            at = (coordinate + 1) / 2 * (high - low) + low
            at = np.rint(at) if mode == "nearest" else at
            if padding == "border" and mode != "cubic":  # whose elements are brought to the border one by one
                at = min(max(at, 0), extent - 1)
            if padding == "reflection":
                at = 0 if high <= low else reflected(at, low, high)
            first = int(np.floor(at))
            around = []
            for offset, weight in weights(mode, at - first):
                k = first + offset
                seen = padding != "zeros" or 0 <= k < extent
                if padding == "reflection":
                    k = int(reflected(k, low, high)) if high > low else 0
                around.append((min(max(k, 0), extent - 1), weight * seen))
            taps.append(around)
        total = 0.0
        for corner in itertools.product(*taps):
            at, factors = zip(*corner, strict=True)
            total = total + x[(place[0], slice(None), *at)] * np.prod(factors)
        made[(place[0], slice(None), *place[1:])] = total
    return made
