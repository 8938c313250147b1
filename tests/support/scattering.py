"""Operators that write where indices say, in numpy, an update after the other: oracles for the tests of several
folders."""

import itertools

import numpy as np

REDUCTIONS = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": np.maximum,
    "min": np.minimum,
}


def elements(data, indices, updates, axis=0, reduction="none"):
    made = data.copy()
    for place in np.ndindex(indices.shape):
        at = (*place[:axis], indices[place], *place[axis + 1 :])
        if -data.shape[axis] <= indices[place] < data.shape[axis]:
            made[at] = REDUCTIONS[reduction](made[at], updates[place])
    return made


def nd(data, indices, updates, reduction="none"):
    made = data.copy()
    for place in np.ndindex(indices.shape[:-1]):
        at = tuple(indices[place])
        if all(-extent <= i < extent for i, extent in zip(at, data.shape, strict=False)):
            made[at] = REDUCTIONS[reduction](made[at], updates[place])
    return made


def tensor(data, updates, starts, axis=1, circular=False):
    made, extent = data.copy(), data.shape[axis]
    for b, k in itertools.product(range(len(data)), range(updates.shape[axis])):
        at = int(starts[b]) + k
        if circular or at < extent:
            np.moveaxis(made[b], axis - 1, 0)[at % extent] = np.moveaxis(updates[b], axis - 1, 0)[k]
    return made
