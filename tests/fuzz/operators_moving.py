"""Random calls of operators that move elements, or make them of nothing."""

import numpy as np
import recurrences
import scattering
from draw import Case, Input
from operators_simple import every, of_integers

from loopwright.ops import nn
from loopwright.ops.definition.registry import get_op
from loopwright.ops.families.born_extents import born_extents
from loopwright.ops.families.repeat import repeat
from loopwright.ops.families.resample import resample
from loopwright.ops.families.split_part import split_evenly


def moving(draw_attrs, name, oracle, low=1, high=4):
    """``draw_attrs(d, shape)`` gives the arguments of both after x."""

    def draw(d):
        shape = d.shape(low, high)
        attrs = draw_attrs(d, shape)
        options = {"kind": d.kind()} if d.chance(0.7) else of_integers(d)
        return Case(lambda x: getattr(nn, name)(x, *attrs), lambda x: oracle(x, *attrs), (Input(shape, **options),))

    return draw


def slices(d, shape):
    axes = d.subset(range(len(shape)))
    starts = [d.int(-shape[a], shape[a] - 1) for a in axes]
    steps = [d.one(1, 1, 2, 3, -1, -2) for _ in axes]
    ends = [d.int(0, shape[a]) if s > 0 else d.int(-shape[a] - 1, -1) for a, s in zip(axes, steps, strict=True)]
    return starts, ends, axes, steps


def sliced(x, starts, ends, axes, steps):
    where = [slice(None)] * x.ndim
    for a, b, e, s in zip(axes, starts, ends, steps, strict=True):
        where[a] = slice(b, e if s > 0 or e >= -x.shape[a] else None, s)
    return x[tuple(where)]


def factors(d, shape):
    total, made = int(np.prod(shape)), []
    for factor in (2, 3, 4, 5, 8):
        if total % factor == 0 and d.chance():
            made.append(factor)
            total //= factor
    return (tuple(int(e) for e in d.rng.permutation([*made, total])),)


def draw_pad(d):
    shape = d.shape(1, 4)
    mode = d.one("constant", "edge", "reflect")
    most = [min(e - 1, 4) if mode == "reflect" else 4 for e in shape]
    before, after = (tuple(d.int(0, m) for m in most) for _ in range(2))
    more = {"constant_values": 1.5} if mode == "constant" else {}
    return Case(
        lambda x: nn.pad(x, before, after, mode=mode, value=1.5),
        lambda x: np.pad(x, list(zip(before, after, strict=True)), mode=mode, **more),
        (Input(shape, d.kind()),),
    )


def draw_concatenate(d):
    shape = d.shape(1, 4)
    axis, count = d.int(0, len(shape) - 1), d.one(1, 2, 3, 4, 20)
    shapes = [(*shape[:axis], d.one(1, 2, 3, 5, 8, shape[axis]), *shape[axis + 1 :]) for _ in range(count)]
    kind = d.kind()
    return Case(
        lambda *x: nn.concatenate(x, axis),
        lambda *x: np.concatenate(x, axis),
        tuple(Input(s, kind) for s in shapes),
    )


def draw_split_part(d):
    """Parts as ONNX cuts them: as large as the first, but for the last."""
    shape = d.shape(1, 4)
    axis = d.int(0, len(shape) - 1)
    count = d.int(1, shape[axis])
    size = -(-shape[axis] // count)
    number = d.int(0, -(-shape[axis] // size) - 1)
    index = (slice(None),) * axis + (slice(number * size, (number + 1) * size),)
    count = -(-shape[axis] // size)
    return Case(lambda x: split_evenly(x, count, axis)[number], lambda x: x[index], (Input(shape, d.kind()),))


def draw_layout_transform(d):
    blocks = d.one(2, 3, 4, 8, 16)
    n, c, h, w = d.int(1, 2), blocks * d.int(1, 4), d.int(1, 9), d.int(1, 9)
    names = ["NCHW", "NHWC", f"NCHW{blocks}c", "HWCN"]
    source, to = d.one(*names), d.one(*names)
    part = c - d.int(0, blocks - 1)
    out_of, into = (source.endswith("c") > to.endswith("c")), (source.endswith("c") < to.endswith("c"))
    shape = every.windows.rearranged(np.zeros((n, part if into else c, h, w)), "NCHW", source).shape
    within = tuple(slice(part if name == "C" and out_of else None) for name in to[:4])
    missing = [(0, c - part if name == "C" and into else 0) for name in source[:4]]
    make = get_op("layout_transform")
    return Case(
        lambda x: make(x, attrs=make.attrs(source, to, part if out_of else c if into else 0)),
        lambda x: every.windows.rearranged(np.pad(x, missing) if into else x, source, to)[within],
        (Input(shape, d.kind()),),
    )


def draw_take(d):
    shape = d.shape(1, 3)
    axis = d.int(0, len(shape) - 1)
    indices = Input(d.shape(0, 2)[:2], d.one("int32", "int64"), -shape[axis], shape[axis] - 1)
    return Case(lambda x, i: nn.take(x, i, axis), lambda x, i: x.take(i, axis), (Input(shape, d.kind()), indices))


def draw_reverse_sequence(d):
    shape = d.shape(2, 4)
    lengths = Input((shape[1],), d.one("int32", "int64"), 0, shape[0])
    return Case(nn.reverse_sequence, recurrences.backwards, (Input(shape, d.kind()), lengths))


def draw_gather_elements(d):
    shape = d.shape(1, 3)
    axis = d.int(0, len(shape) - 1)
    places = tuple(d.int(1, 9) if k == axis else d.int(1, e) for k, e in enumerate(shape))

    def oracle(x, i):
        room = x[tuple(slice(None) if k == axis else slice(e) for k, e in enumerate(i.shape))]
        return np.take_along_axis(room, i, axis)

    inputs = (Input(shape, d.kind()), Input(places, "int64", -shape[axis], shape[axis] - 1))
    return Case(lambda x, i: nn.gather_elements(x, i, axis=axis), oracle, inputs)


def draw_topk(d):
    shape = d.shape(1, 3)
    axis = d.int(0, len(shape) - 1)
    if d.chance():  # several rows fill a vector
        shape = (*shape, d.int(4, 20))
    k, largest = d.int(0, shape[axis]), d.chance()
    kind = d.one("float32", "float64", "float16", "int32", "int64")
    return Case(
        lambda x: get_op("topk")(x, attrs=get_op("topk").attrs(k, axis, largest)),
        lambda x: every.best(x, k, axis, largest),
        (Input(shape, kind, -9, 9, outliers="large"),),
    )


def _outliers_of(reduction):
    """Whether a product of several is within the range of float32 may depend on their order, which oracles widen."""
    return None if reduction == "mul" else "any"


def draw_scatter_elements(d):
    shape = d.shape(1, 3)
    axis, reduction = d.int(0, len(shape) - 1), d.one(*scattering.REDUCTIONS)
    places = tuple(d.int(1, 9) if k == axis else d.int(1, e) for k, e in enumerate(shape))
    kind = d.one("float32", "float64", "int32")
    outliers = _outliers_of(reduction)
    inputs = (
        Input(shape, kind, outliers=outliers),
        Input(places, "int64", -shape[axis] - 1, shape[axis]),
        Input(places, kind, outliers=outliers),
    )
    return Case(
        lambda *x: nn.scatter_elements(*x, axis, reduction),
        lambda *x: scattering.elements(*x, axis, reduction),
        inputs,
        lambda x, i, u: np.abs(x).max(initial=0.0) + u.sum() if reduction == "add" else 1.0,
        tolerance=4,
    )


def draw_scatter_nd(d):
    shape = d.shape(1, 3)
    depth, count, reduction = d.int(0, len(shape)), d.int(1, 9), d.one(*scattering.REDUCTIONS)
    kind = d.one("float32", "float64", "int32")
    low, high = (-shape[0], shape[0] - 1) if depth else (0, 0)
    inputs = (
        Input(shape, kind, outliers=_outliers_of(reduction)),
        Input((count, depth), "int64", low, high),
        Input((count, *shape[depth:]), kind, outliers=_outliers_of(reduction)),
    )
    return Case(
        lambda *x: nn.scatter_nd(*x, reduction),
        lambda *x: scattering.nd(*x, reduction),
        inputs,
        lambda x, i, u: np.abs(x).max(initial=0.0) + u.sum() if reduction == "add" else 1.0,
        tolerance=4,
    )


def draw_tensor_scatter(d):
    shape = d.shape(2, 4)
    axis, circular = d.int(1, len(shape) - 1), d.chance()
    count = d.int(1, shape[axis])
    updates = (*shape[:axis], count, *shape[axis + 1 :])
    kind, most = d.kind(), shape[axis] - (1 if circular else count)
    inputs = Input(shape, kind), Input(updates, kind), Input((shape[0],), "int64", 0, most)
    return Case(
        lambda *x: nn.tensor_scatter(*x, axis, circular), lambda *x: scattering.tensor(*x, axis, circular), inputs
    )


def draw_append_rows(d):
    shape, kind = d.shape(1, 4), d.kind()
    inputs = Input(shape, kind), Input((d.int(0, 5), *shape[1:]), kind)
    op = get_op("append_rows")
    return Case(lambda *x: op(*x, attrs=op.attrs()), lambda *x: np.concatenate(x), inputs)


def draw_write_rows(d):
    shape = d.shape(2, 4)
    axis, circular = d.int(1, len(shape) - 1), d.chance()
    count = d.int(1, shape[axis])
    rows = (*shape[:axis], count, *shape[axis + 1 :])
    kind, most = d.kind(), shape[axis] - (1 if circular else count)
    inputs = Input(shape, kind), Input(rows, kind), Input((shape[0],), "int64", 0, most)
    attrs = get_op("write_rows").attrs(axis, circular)
    return Case(
        lambda *x: get_op("write_rows")(*x, attrs=attrs), lambda *x: scattering.tensor(*x, axis, circular), inputs
    )


def draw_gather_nd(d):
    shape = d.shape(1, 3)
    depth = d.int(1, len(shape))
    least = min(shape[:depth])
    inputs = (Input(shape, d.kind()), Input((*d.shape(0, 2)[:2], depth), "int64", -least, least - 1))
    return Case(nn.gather_nd, lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], inputs)


def draw_resample(d):
    shape = d.shape(1, 3)
    axis, taps, count = d.int(0, len(shape) - 1), d.int(1, 4), d.int(1, 40)

    def oracle(x, i, w):
        parts = np.moveaxis(x.take(i, axis), axis, 0)  # [taps, …, count, …]: take puts both axes at the place
        weights = w.reshape(taps, *[1] * axis, count, *[1] * (x.ndim - axis - 1))
        return (parts * weights).sum(0)

    inputs = (
        Input(shape, outliers="large"),
        Input((taps, count), "int32", -shape[axis], shape[axis] - 1),
        Input((taps, count), outliers=None),
    )
    return Case(lambda x, i, w: resample(x, i, w, axis), oracle, inputs, oracle)


def draw_one_hot(d):
    depth, shape = d.int(1, 20), d.shape(0, 2)
    axis = d.int(-1, len(shape))

    def oracle(i, off, on):
        return np.moveaxis(every.one_hot(i, off, on, depth), -1, axis)

    inputs = (Input(shape, "int64", -depth, depth - 1), Input(()), Input(()))
    return Case(lambda i, off, on: nn.one_hot(i, off, on, depth=depth, axis=axis), oracle, inputs)


def draw_full(d):
    shape, value = d.shape(empty=True), d.int(-3, 3) + 0.5
    return Case(lambda: nn.full(shape, value), lambda: np.full(shape, value), ())


def draw_arange(d):
    start, step, count = d.int(-9, 9), d.one(1, 2, 3, -1, -4), d.int(1, 50)
    op = get_op("arange")
    return Case(lambda: op(attrs=op.attrs(start, step, count)), lambda: start + step * np.arange(count), ())


def draw_pixels(name):
    def draw(d):
        b, n, c, h, w = d.int(1, 3), d.int(1, 2), d.int(1, 5), d.int(1, 7), d.int(1, 7)
        shape = (n, c * b * b, h, w) if name == "depth_to_space" else (n, c, h * b, w * b)
        return Case(lambda x: getattr(nn, name)(x, b), lambda x: getattr(every, name)(x, b), (Input(shape, d.kind()),))

    return draw


def squeezable(d):
    shape = d.shape(1, 3)
    at = d.int(0, len(shape))
    return Case(
        lambda x: nn.squeeze(x, (at,)), lambda x: x.squeeze(at), (Input((*shape[:at], 1, *shape[at:]), d.kind()),)
    )


def broadcast_to(d):
    whole = d.shape(1, 4)
    shape = tuple(1 if d.chance() else e for e in whole)[d.int(0, len(whole)) :]
    return Case(lambda x: nn.broadcast_to(x, whole), lambda x: np.broadcast_to(x, whole), (Input(shape, d.kind()),))


def draw_open(name):
    """Operators whose attributes are formulas over the extents of their arguments."""
    op = get_op(name)

    def draw(d):
        n, m = d.int(1, 9), d.int(1, 9)
        formula, number = d.one(("x0_0 + x0_1", n + m), ("x0_0 * 3 // 2", n * 3 // 2), ("min(x0_0, x0_1)", min(n, m)))
        attributes, oracle = {
            "positions": ((formula,), lambda x: np.arange(number)),
            "extents": (((formula, 5, "x0_1"),), lambda x: np.array([number, 5, m])),
        }[name]
        return Case(lambda x: op(x, attrs=op.attrs(*attributes)), oracle, (Input((n, m)),))

    return draw


def draw_nonzero(d):
    shape = d.shape(1, 4)
    made = Input(shape, d.one("bool", "int32", "float32"))
    return Case(nn.nonzero, lambda x: np.array(np.nonzero(x)), (made,))


def draw_born_extents(d):
    """Numbers that are the shape of what is made of them."""
    counts = Input((d.int(1, 3),), "uint8")
    return Case(positions_of, lambda x: np.arange(x.astype(np.int64).prod()), (counts,))


def positions_of(x):
    rank = int(x.type.shape[0])
    witness = born_extents(nn.cast(x, "int64"), [f"d{k}" for k in range(rank)], "the extents")
    op = get_op("positions")
    return op(witness, attrs=op.attrs(" * ".join(f"x0_{k}" for k in range(rank))))


def draw_assume_extent(d):
    shape, op = d.shape(1, 3), get_op("assume_extent")
    axis = d.int(0, len(shape) - 1)
    made = op.attrs(axis, f"x1_0 + {shape[axis]} - 1")
    return Case(lambda x, y: op(x, y, attrs=made), lambda x, y: x, (Input(shape, d.kind()), Input((1,))))


def draw_open_slice(d):
    shape, op = d.shape(1, 3), get_op("open_slice")
    axis = d.int(0, len(shape) - 1)
    begin = d.int(0, shape[axis] - 1)
    extent = d.int(1, shape[axis] - begin)
    made = op.attrs(axis, begin, "x1_0")
    where = (slice(None),) * axis + (slice(begin, begin + extent),)
    return Case(lambda x, y: op(x, y, attrs=made), lambda x, y: x[where], (Input(shape, d.kind()), Input((extent,))))


def draw_repeat(d):
    shape = d.shape(1, 3)
    axis, times = d.int(0, len(shape) - 1), d.int(1, 4)
    return Case(lambda x: repeat(x, times, axis), lambda x: np.repeat(x, times, axis), (Input(shape, d.kind()),))


def draw_resize_table(name):
    """Of axes that are made a whole number of times as long, linearly."""
    op = get_op(name)

    def draw(d):
        n, k = d.int(1, 9), d.int(1, 4)
        made = op.attrs("x0_0", f"x0_0 * {k}", float(k), "linear", "asymmetric")

        def oracle(x):
            source = np.arange(n * k) / k
            base = np.ceil(source) - 1
            if name == "resize_indices":
                return np.clip(np.stack([base, base + 1]), 0, n - 1).astype(np.int64)
            return np.stack([base + 1 - source, source - base])

        return Case(lambda x: op(x, attrs=made), oracle, (Input((n,)),))

    return draw


DRAWS = {
    **{name: draw_open(name) for name in ("positions", "extents")},
    **{name: draw_resize_table(name) for name in ("resize_indices", "resize_weights")},
    "assume_extent": draw_assume_extent,
    "born_extents": draw_born_extents,
    "nonzero": draw_nonzero,
    "open_slice": draw_open_slice,
    "repeat": draw_repeat,
    **{f"nn.{name}": draw_pixels(name) for name in ("depth_to_space", "space_to_depth")},
    "transpose": moving(
        lambda d, shape: (tuple(d.rng.permutation(len(shape)).tolist()),), "transpose", np.transpose, low=0
    ),
    "reshape": moving(factors, "reshape", np.reshape),
    "tile": moving(lambda d, shape: (d.ints(1, 3, len(shape)),), "tile", np.tile, high=3),
    "trilu": moving(
        lambda d, shape: (d.int(-4, 4), d.chance()),
        "trilu",
        lambda x, k, upper: (np.triu if upper else np.tril)(x, k),
        low=2,
    ),
    "expand_dims": moving(lambda d, shape: (d.int(0, len(shape)),), "expand_dims", np.expand_dims),
    "strided_slice": moving(slices, "strided_slice", sliced),
    "squeeze": squeezable,
    "broadcast_to": broadcast_to,
    "pad": draw_pad,
    "concatenate": draw_concatenate,
    "split_part": draw_split_part,
    "layout_transform": draw_layout_transform,
    "take": draw_take,
    "reverse_sequence": draw_reverse_sequence,
    "gather_elements": draw_gather_elements,
    "gather_nd": draw_gather_nd,
    "topk": draw_topk,
    "scatter_elements": draw_scatter_elements,
    "append_rows": draw_append_rows,
    "scatter_nd": draw_scatter_nd,
    "tensor_scatter": draw_tensor_scatter,
    "write_rows": draw_write_rows,
    "nn.resample": draw_resample,
    "one_hot": draw_one_hot,
    "full": draw_full,
    "arange": draw_arange,
}
