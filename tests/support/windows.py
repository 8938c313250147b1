"""Slow and plain convolutions and pools in numpy, in float64: what the operators are compared with."""

import itertools

import numpy as np

from loopwright.graph.layout import Layout

PRIMAL = {rank: (f"NC{axes}", f"OI{axes}") for rank, axes in ((1, "W"), (2, "HW"), (3, "DHW"))}


def rearranged(array, source, destination):
    """An array in another layout: blocks merged into their axes, the axes moved, blocks cut off again."""
    source, destination = Layout(source), Layout(destination)
    whole = array.transpose([place for name in source.names for place in source.digits(name)])
    sizes = {name: np.prod([array.shape[d] for d in source.digits(name)], dtype=int) for name in source.names}
    whole = whole.reshape(list(sizes.values())).transpose([source.names.index(name) for name in destination.names])
    cut, places = [], []
    for name in destination.names:
        blocks = destination.blocks(name)
        cut += [sizes[name] // int(np.prod(blocks, dtype=int)), *blocks]
        places += destination.digits(name)
    return np.ascontiguousarray(whole.reshape(cut).transpose(np.argsort(places)))


def pad_spatial(x, padding, value):
    rank = x.ndim - 2
    return np.pad(x, [(0, 0), (0, 0), *zip(padding[:rank], padding[rank:], strict=True)], constant_values=value)


def conv_in(x, w, strides, padding, dilations, groups, layouts):
    """``conv`` of arrays in layouts other than N, C, … and O, I, …: of x, w and the result."""
    data, kernel = PRIMAL[len(strides)]
    result = conv(
        rearranged(x, layouts[0], data), rearranged(w, layouts[1], kernel), strides, padding, dilations, groups
    )
    return rearranged(result, data, layouts[2])


def conv(x, w, strides, padding, dilations, groups):
    x = pad_spatial(x.astype(np.float64), padding, 0)
    rank = x.ndim - 2
    reach = [(w.shape[2 + d] - 1) * dilations[d] + 1 for d in range(rank)]
    out = [(x.shape[2 + d] - reach[d]) // strides[d] + 1 for d in range(rank)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per_group, filters = w.shape[1], w.shape[0] // groups
    for g in range(groups):
        part, kernel = x[:, g * per_group : (g + 1) * per_group], w[g * filters : (g + 1) * filters]
        for tap in itertools.product(*map(range, w.shape[2:])):
            begin = [tap[d] * dilations[d] for d in range(rank)]
            places = tuple(slice(b, b + (o - 1) * s + 1, s) for b, o, s in zip(begin, out, strides, strict=True))
            y[:, g * filters : (g + 1) * filters] += np.einsum(
                "nc...,kc->nk...", part[(slice(None), slice(None), *places)], kernel[(slice(None), slice(None), *tap)]
            )
    return y


def conv_transpose(x, w, strides, padding, dilations, output_padding, groups):
    """By the definition: each input element adds to the output."""
    rank = x.ndim - 2
    full = [
        (x.shape[2 + d] - 1) * strides[d] + (w.shape[2 + d] - 1) * dilations[d] + 1 + output_padding[d]
        for d in range(rank)
    ]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *(f + max(0, -padding[rank + d]) for d, f in enumerate(full))))
    rows, filters = x.shape[1] // groups, w.shape[1]
    for g in range(groups):
        for tap in itertools.product(*map(range, w.shape[2:])):
            begin = [tap[d] * dilations[d] for d in range(rank)]
            places = tuple(
                slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begin, x.shape[2:], strides, strict=True)
            )
            y[(slice(None), slice(g * filters, (g + 1) * filters), *places)] += np.einsum(
                "nc...,ck->nk...",
                x[:, g * rows : (g + 1) * rows].astype(np.float64),
                w[(slice(g * rows, (g + 1) * rows), slice(None), *tap)],
            )
    kept = tuple(slice(padding[d], full[d] - padding[rank + d]) for d in range(rank))
    return y[(slice(None), slice(None), *kept)]


def window_elements(x, window, strides, padding, dilations, ceil_mode):
    """For each output position, the places (relative to x) of its window's elements; and the number of windows."""
    rank = x.ndim - 2
    counts = []
    for d in range(rank):
        room = x.shape[2 + d] + padding[d] + padding[rank + d] - (window[d] - 1) * dilations[d] - 1
        count = -(-room // strides[d]) + 1 if ceil_mode else room // strides[d] + 1
        if ceil_mode and (count - 1) * strides[d] >= x.shape[2 + d] + padding[d]:
            count -= 1
        counts.append(count)
    for o in itertools.product(*map(range, counts)):
        yield (
            o,
            [
                tuple(o[d] * strides[d] + t[d] * dilations[d] - padding[d] for d in range(rank))
                for t in itertools.product(*map(range, window))
            ],
            counts,
        )


def pool(x, window, strides, padding, dilations, ceil_mode, fold):
    """``fold(inside, padded)``: arrays [N, C, elements] of a window inside x, and the number of elements in padding."""
    rank = x.ndim - 2
    y = None
    for o, places, counts in window_elements(x, window, strides, padding, dilations, ceil_mode):
        inside = [p for p in places if all(0 <= p[d] < x.shape[2 + d] for d in range(rank))]
        near = [p for p in places if all(-padding[d] <= p[d] < x.shape[2 + d] + padding[rank + d] for d in range(rank))]
        values = np.stack([x[(slice(None), slice(None), *p)] for p in inside], axis=-1)
        if y is None:
            y = np.zeros((*x.shape[:2], *counts))
        y[(slice(None), slice(None), *o)] = fold(values.astype(np.float64), len(near) - len(inside))
    return y


def max_pool_indices(x, window, strides, padding, dilations, ceil_mode):
    """Row-major places of the maxima in x, flattened."""
    rank = x.ndim - 2
    numbers = np.arange(x.size).reshape(x.shape)
    y = None
    for o, places, counts in window_elements(x, window, strides, padding, dilations, ceil_mode):
        inside = [p for p in places if all(0 <= p[d] < x.shape[2 + d] for d in range(rank))]
        values = np.stack([x[(slice(None), slice(None), *p)] for p in inside], axis=-1)
        places_of = np.stack([numbers[(slice(None), slice(None), *p)] for p in inside], axis=-1)
        if y is None:
            y = np.zeros((*x.shape[:2], *counts), np.int64)
        best = values.argmax(axis=-1)[..., None]
        y[(slice(None), slice(None), *o)] = np.take_along_axis(places_of, best, axis=-1)[..., 0]
    return y


def added_up(x, image, window, strides, padding, dilation):
    """The image whose windows are the columns of x, where elements that overlap are added."""
    rank = len(image)
    padded = [e + padding[d] + padding[rank + d] for d, e in enumerate(image)]
    counts = [(e - dilation[d] * (window[d] - 1) - 1) // strides[d] + 1 for d, e in enumerate(padded)]
    made = np.zeros((x.shape[0], x.shape[1] // np.prod(window), *padded), x.dtype)
    by_place = x.reshape(*made.shape[:2], *window, *counts)
    for k in np.ndindex(*window):
        for n in np.ndindex(*counts):
            at = tuple(n[d] * strides[d] + k[d] * dilation[d] for d in range(rank))
            made[(slice(None), slice(None), *at)] += by_place[(slice(None), slice(None), *k, *n)]
    return made[(slice(None), slice(None), *(slice(padding[d], padding[d] + e) for d, e in enumerate(image)))]
