"""Probabilities of classes from those of pairs, as libsvm's ``multiclass_probability`` computes them, row by row."""

import numpy as np


def coupled_probabilities(pairs, classes):
    """[rows, classes] of [rows, pairs], in float64."""
    return np.stack([_of_row(row.astype(np.float64), classes) for row in pairs]) if len(pairs) else pairs[:, :classes]


def _of_row(pairs, classes):
    r = np.zeros((classes, classes))
    r[np.triu_indices(classes, 1)] = pairs
    r[np.tril_indices(classes, -1)] = (1 - r.T)[np.tril_indices(classes, -1)]
    form = np.diag((r**2).sum(0)) - r.T * r
    p = np.full(classes, 1 / classes)
    for _ in range(100):
        product = form @ p
        value = p @ product
        if np.abs(product - value).max() < 0.005 / classes:
            break
        for t in range(classes):
            change = (value - product[t]) / form[t, t]
            p[t] += change
            value = (value + change * (change * form[t, t] + 2 * product[t])) / (1 + change) ** 2
            product = (product + change * form[t]) / (1 + change)
            p /= 1 + change
    return p
