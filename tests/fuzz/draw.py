"""What random calls and graphs are drawn with: numbers, shapes, values with outliers among them; and how two results
are compared."""

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import loopwright as lw
from loopwright.runtime.foreign import why_not_here

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 130, 200)
ELEMENTS = (100, 2_000, 30_000)
"""Most elements of a tensor, by the size of the plan: 0, 1, 2."""
OUTLIERS = {"moderate": (1e4, -1e4, 0.0, 1e-30), "large": (1e10, -1e10, 1e-40, -0.0, 0.0)}
OUTLIERS["mask"] = (-1e38, -np.inf, "min", -1e10, 0.0)
OUTLIERS["any"] = (*OUTLIERS["large"], 1e38, -1e38, np.inf, -np.inf, np.nan, "min", "max", "tiny")
TOLERANCE = {"float64": 1e-9, "float32": 3e-5, "float16": 5e-3, "bfloat16": 4e-2}


def runnable(target):
    """The target, or the machine's own where the machine lacks instructions of it."""
    named = lw.resolve_target(target)
    return named if why_not_here(named) is None else lw.resolve_target("native")


class Draw:
    """Random numbers of a seed. Mutable: it goes on."""

    def __init__(self, seed, size=1):
        self.rng = np.random.default_rng(seed)
        self.size = size

    def int(self, low, high):
        """A whole number, both ends among them."""
        return int(self.rng.integers(low, high + 1))

    def ints(self, low, high, count):
        return tuple(self.int(low, high) for _ in range(count))

    def one(self, *options):
        return options[self.int(0, len(options) - 1)]

    def chance(self, share=0.5):
        return bool(self.rng.random() < share)

    def shape(self, low=1, high=4, empty=False):
        """Extents of ``low`` to ``high`` axes, of at most as many elements as the size allows."""
        most, shape = ELEMENTS[self.size], []
        for _ in range(self.int(low, high)):
            fitting = [e for e in EXTENTS if e <= most]
            shape.append(self.one(*fitting))
            most //= shape[-1]
        if empty and shape and self.chance(0.03):
            shape[self.int(0, len(shape) - 1)] = 0
        return tuple(int(e) for e in self.rng.permutation(shape))

    def subset(self, items, least=1):
        items = list(items)
        return tuple(sorted(self.rng.permutation(items)[: self.int(least, len(items))].tolist()))

    def kind(self):
        """A float type, float32 most of all."""
        return self.one("float32", "float32", "float32", "float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Input:
    """An argument: numbers from ``low`` to ``high``; ``outliers`` says which else a plan may put among them,
    ``constant`` that the value is known to the compiler."""

    shape: tuple[int, ...]
    kind: str = "float32"
    low: float = -3.0
    high: float = 3.0
    outliers: str | None = "any"
    constant: bool = False

    def values(self, rng, outliers):
        """An array of the kind; with one outlier, or some, if the plan has them."""
        kind = numpy_kind(self.kind)
        if self.kind == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if not is_float(kind):
            return rng.integers(int(self.low), int(self.high) + 1, self.shape).astype(kind)
        array = np.asarray(rng.uniform(self.low, self.high, self.shape)).astype(kind)
        if outliers and self.outliers and array.size:
            count = min(array.size, int(rng.integers(1, 4)))
            with np.errstate(all="ignore"):
                for place in rng.choice(array.size, count, replace=False):
                    array.reshape(-1)[place] = outlier(rng, self.outliers, kind)
        return array


class Given(Input):
    """An argument that has to be a certain array, or one that is transformed."""

    def __init__(self, array):
        super().__init__(array.shape, str(array.dtype), outliers=None, constant=True)
        object.__setattr__(self, "array", array)

    def values(self, rng, outliers):
        return self.array


@dataclass(frozen=True)
class Case:
    """A call to check: ``make`` of nodes, ``oracle`` of arrays (float64 for floats).

    ``magnitude`` of the absolute values, what is not finite taken as 0, is how large the summands of a result are: its
    error is a share of that, and where that overflows, the result may. ``local`` False: a fast algorithm may mix
    summands of neighbours, so that the error is a share of the largest, and outliers are for direct arithmetic.
    ``tolerance`` is in units of the usual one.
    """

    make: Callable
    oracle: Callable
    inputs: tuple[Input, ...]
    magnitude: Callable | None = None
    local: bool = True
    tolerance: float = 1.0


def numpy_kind(kind):
    return np.dtype(getattr(ml_dtypes, kind)) if kind == "bfloat16" else np.dtype(kind)


def is_float(kind):
    return kind.kind == "f" or kind == ml_dtypes.bfloat16


def outlier(rng, name, kind):
    value = OUTLIERS[name][int(rng.integers(len(OUTLIERS[name])))]
    limits = ml_dtypes.finfo(kind)
    named = {"min": limits.min, "max": limits.max, "tiny": limits.smallest_subnormal}
    return named[value] if isinstance(value, str) else value


def exact(array):
    """Floats in float64, in which the oracles compute."""
    return array.astype(np.float64) if is_float(array.dtype) else array


def magnitudes(array):
    """The absolute values of floats, 0 for what is not finite; indices as they are."""
    wide = exact(array)
    return np.where(np.isfinite(wide), np.abs(wide), 0.0) if wide.dtype.kind == "f" else wide


def assert_close(found, wanted, magnitude=None, tolerance=1.0, what="the result"):
    """NaN, the infinities and finite numbers are where they should be, and the finite ones are within the tolerance of
    the type. ``magnitude`` as of ``Case``."""
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape, f"{what} has the shape {found.shape}, not {wanted.shape}"
    if not is_float(found.dtype):
        differs = found != wanted.astype(found.dtype)
        assert not differs.any(), first_difference(found, wanted, differs, what)
        return
    most = float(ml_dtypes.finfo(found.dtype).max)
    wide = found.astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = np.where(np.abs(wanted) > most * 1.001, np.sign(wanted) * np.inf, wanted).astype(np.float64)
        scale = np.abs(np.where(np.isfinite(wanted), wanted, 0.0))
        if magnitude is not None:
            scale = scale + np.broadcast_to(magnitude, wanted.shape)
        unsure = scale > most / 4
        share = TOLERANCE[found.dtype.name] * tolerance
        near = np.abs(wide - wanted) <= share * (scale + (1.0 if magnitude is None else 1e-30))
        near |= np.abs(wide - wanted) <= 4 * float(ml_dtypes.finfo(found.dtype).tiny)
        same_class = (np.isnan(wide) & np.isnan(wanted)) | (wide == wanted)
    right = np.where(np.isfinite(wanted), near, same_class) | unsure
    assert right.all(), first_difference(found, wanted, ~right, what)


def first_difference(found, wanted, differs, what):
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return f"{what} is {found[place]} at {place}, not {wanted[place]}; {int(differs.sum())} of {differs.size} differ"
