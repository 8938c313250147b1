"""Random calls of operators of which an element needs one of each argument, or a row: elementwise ones, reductions."""

import numpy as np
import python_path  # noqa: F401  finds the next one
import test_every_operator as every
from draw import Case, Input

from loopwright.base.dtype import NARROW_KINDS, dtype
from loopwright.ops import nn
from loopwright.ops.families.cumsum import cumprod, cumsum

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def unary(name, oracle, low=-5.0, high=5.0, **attrs):
    def draw(d):
        return Case(
            lambda x: getattr(nn, name)(x, **attrs), oracle, (Input(d.shape(0, 4, empty=True), d.kind(), low, high),)
        )

    return draw


def integer_range(kind):
    limits = np.iinfo(kind)
    return float(max(limits.min, -100)), float(min(limits.max, 100))


def of_integers(d, low=None, high=None):
    kind = d.one(*INTEGERS)
    least, most = integer_range(kind)
    return {"kind": kind, "low": least if low is None else low, "high": most if high is None else high}


def broadcast_shapes(d, count):
    """Shapes that broadcast to one another."""
    whole = d.shape(0, 4, empty=True)
    shapes = [tuple(1 if d.chance(0.25) else e for e in whole)[d.int(0, len(whole)) :] for _ in range(count - 1)]
    return [whole, *shapes] if d.chance(0.8) else [whole] * count


def binary(name, oracle, draw_inputs):
    def draw(d):
        shapes = broadcast_shapes(d, 2)
        options = draw_inputs(d)
        swap = d.chance() and options.get("same", True)
        options.pop("same", None)
        inputs = [Input(shape, **options) for shape in (shapes[::-1] if swap else shapes)]
        return Case(getattr(nn, name), oracle, tuple(inputs))

    return draw


def any_numbers(d):
    return {"kind": d.kind()} if d.chance(0.7) else of_integers(d)


def modulo(a, b):
    """0 where an integer divides by 0."""
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, np.mod(a, safe)).astype(a.dtype) if a.dtype.kind in "iu" else np.mod(a, b)


def draw_mod(d):
    fmod = d.chance()
    if d.chance():
        options = of_integers(d)
        oracle = (lambda a, b: np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b)))) if fmod else modulo
    else:
        options, fmod = {"kind": d.one("float32", "float64"), "outliers": None}, True
        oracle = np.fmod
    shapes = broadcast_shapes(d, 2)
    return Case(lambda a, b: nn.mod(a, b, fmod=fmod), oracle, tuple(Input(s, **options) for s in shapes))


def draw_shift(name):
    oracle = {"left_shift": np.left_shift, "right_shift": np.right_shift}[name]

    def draw(d):
        kind = d.one("uint8", "uint16", "uint32", "uint64")
        inputs = (Input((shape := d.shape()), kind, 0, 200), Input(shape[d.int(0, len(shape)) :], kind, 0, 7))
        return Case(getattr(nn, name), lambda a, b: oracle(a, b).astype(a.dtype), inputs)

    return draw


def draw_division(d):
    options = {"kind": d.kind()} if d.chance(0.8) else of_integers(d, low=1)
    shapes = broadcast_shapes(d, 2)
    oracle = np.divide if "outliers" not in options and options["kind"] not in INTEGERS else np.floor_divide
    return Case(nn.divide, oracle, tuple(Input(s, **options) for s in shapes))


def draw_power(d):
    shapes = broadcast_shapes(d, 2)
    kind = d.one("float32", "float64")
    return Case(nn.power, np.power, (Input(shapes[0], kind, 0.1, 4), Input(shapes[1], kind, -3, 3)))


def draw_where(d):
    shapes = broadcast_shapes(d, 3)
    kind = d.kind()
    return Case(nn.where, np.where, (Input(shapes[1], "bool"), Input(shapes[0], kind), Input(shapes[2], kind)))


def draw_scales(d, shape, kind):
    """Scales and zero points of the whole, or of places on the last axis."""
    each = shape[-1:] if shape and d.chance() else ()
    return Input(each, "float32", 0.01, 2.0, outliers=None), Input(each, kind, *integer_range(kind))


def draw_quantize(d):
    """By scales that are powers of two, so that what lies halfway does so in the oracle, too."""
    kind, shape = d.one("int8", "uint8", "int16", "uint16"), d.shape(0, 4, empty=True)
    step = 2.0 ** d.int(-4, 3)
    _, zero = draw_scales(d, shape, kind)
    return Case(
        lambda x, z: nn.quantize(x, nn.full((), step), z, kind),
        lambda x, z: every.quantized(x, np.float32(step), z, kind),
        (Input(shape, "float32", -300, 300), zero),
    )


def draw_dequantize(d):
    kind, shape = d.one("int8", "uint8", "int16", "int32"), d.shape(0, 4, empty=True)
    scale, zero = draw_scales(d, shape, kind)
    low, high = integer_range(kind)
    return Case(
        nn.dequantize,
        lambda x, s, z: (x.astype(np.int64) - z) * s.astype(np.float64),
        (Input(shape, kind, low, high), scale, zero),
    )


def draw_byte_table(d):
    kind, given = d.one("int8", "uint8"), d.one("int8", "uint8")
    inputs = (Input(d.shape(0, 4, empty=True), given, *integer_range(given)), Input((256,), kind, *integer_range(kind)))
    return Case(nn.byte_table, lambda x, table: table[x.view(np.uint8)], inputs)


def draw_clip(d):
    low = d.int(-3, 1)
    high = low + d.int(0, 3)
    inputs = (Input(d.shape(empty=True), d.kind(), -5, 5),)
    return Case(lambda x: nn.clip(x, float(low), float(high)), lambda x: np.clip(x, low, high), inputs)


def draw_narrow_cast(d):
    """To a narrow float or integer and back; what 2 bits hold, so that integers neither wrap nor saturate."""
    to = d.one(*NARROW_KINDS)
    kind = dtype(to).to_numpy()
    x = Input(d.shape(empty=True), "float32", 0 if to.startswith("u") else -2, 1, None)
    return Case(lambda x: nn.cast(nn.cast(x, to), "float32"), lambda x: x.astype(kind).astype(np.float64), (x,))


def draw_bitcast(d):
    x = Input(d.shape(empty=True), "float32", -100, 100, None)
    return Case(lambda x: nn.bitcast(x, "int32"), lambda x: x.astype(np.float32).view(np.int32), (x,))


def draw_cast(d):
    if d.one(False, False, False, True):
        return draw_narrow_cast(d)
    to = d.one("float16", "float32", "float64", "int32", "int64", "int8", "uint8", "bool", "bfloat16")
    source = d.one("float32", "float64", "int32", "int8", "uint8", "bool", "float16")
    floats = "float" in to
    unsigned = "u" in (to[0], source[0])
    x = Input(d.shape(empty=True), source, 0 if unsigned else -100, 100, "any" if floats else None)
    wanted = (lambda x: x.astype(np.float64)) if floats else (lambda x: x != 0) if to == "bool" else np.trunc
    return Case(lambda x: nn.cast(x, to), wanted, (x,))


# Reductions.

RANGES = {"log_sum": (0.1, 3.0), "prod": (-1.3, 1.3)}
OUTLIERS = {"log_sum": "large", "prod": "moderate"}


def log_sum_exp(x, axis, keepdims):
    with np.errstate(all="ignore"):
        most = x.max(axis, keepdims=True)
        shift = np.where(np.isfinite(most), most, 0.0)
        total = np.log(np.exp(x - shift).sum(axis, keepdims=True)) + shift
    return total if keepdims else total.squeeze(axis)


ORACLES = {**every.REDUCTIONS, "log_sum_exp": log_sum_exp}
SUMMED = {"sum": 1, "mean": 1, "l1": 1, "log_sum": 1, "l2": 2, "sum_square": 2}


def reduction(name):
    def draw(d):
        shape = d.shape(1, 4)
        axes, keep = d.subset(range(len(shape))), d.chance()
        low, high = RANGES.get(name, (-3.0, 3.0))
        power = SUMMED.get(name)
        inputs = (Input(shape, d.kind(), low, high, OUTLIERS.get(name, "any")),)

        def magnitude(x):
            total = (x**power).sum(axis=axes, keepdims=keep)
            return total if name != "log_sum" else total * 0 + 1

        return Case(
            lambda x: getattr(nn, name)(x, axes, keepdims=keep),
            lambda x: ORACLES[name](x, axis=axes, keepdims=keep),
            inputs,
            magnitude if power else None,
            tolerance=10 if name in ("prod", "log_sum") else 1,
        )

    return draw


def draw_quantifier(name):
    def draw(d):
        shape = d.shape(1, 4)
        axes, keep = d.subset(range(len(shape))), d.chance()
        oracle = {"any": np.any, "all": np.all}[name]
        return Case(
            lambda x: getattr(nn, name)(x, axes, keepdims=keep),
            lambda x: oracle(x, axis=axes, keepdims=keep),
            (Input(shape, "bool"),),
        )

    return draw


def draw_arg(name):
    def draw(d):
        shape = d.shape(1, 4)
        axis, keep = d.int(0, len(shape) - 1), d.chance()
        oracle = {"argmax": np.argmax, "argmin": np.argmin}[name]
        options = {"kind": "float32", "outliers": "large"} if d.chance() else of_integers(d)
        return Case(
            lambda x: getattr(nn, name)(x, axis=axis, keepdims=keep),
            lambda x: oracle(x, axis=axis, keepdims=keep),
            (Input(shape, **options),),
        )

    return draw


def safe_softmax(x, axis, log=False):
    with np.errstate(all="ignore"):
        shifted = x - x.max(axis, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)) if log else every.softmax(x, axis)


def draw_softmax(name):
    def draw(d):
        shape = d.shape(1, 4)
        axis = d.int(0, len(shape) - 1)
        log = name == "log_softmax"
        return Case(
            lambda x: getattr(nn, name)(x, axis),
            lambda x: safe_softmax(x, axis, log),
            (Input(shape, d.kind(), -9, 9),),
            (lambda x: x.max(axis, keepdims=True) + 1) if log else None,
        )

    return draw


def draw_cumsum(d):
    shape = d.shape(1, 3)
    axis, exclusive, reverse = d.int(0, len(shape) - 1), d.chance(), d.chance()

    def oracle(x):
        y = np.flip(x, axis) if reverse else x
        total = np.cumsum(y, axis)
        if exclusive:
            total = np.roll(total, 1, axis)
            total[(slice(None),) * axis + (0,)] = 0
        return np.flip(total, axis) if reverse else total

    return Case(
        lambda x: cumsum(x, axis, exclusive=exclusive, reverse=reverse),
        oracle,
        (Input(shape, d.one("float32", "float64", "int32"), outliers="large"),),
        lambda x: x.sum(axis, keepdims=True) + 0 * x,
    )


def draw_cumprod(d):
    shape = d.shape(1, 3)
    axis = d.int(0, len(shape) - 1)
    kind = d.one("float32", "float64")
    return Case(
        lambda x: cumprod(x, axis),
        lambda x: np.cumprod(x, axis),
        (Input(shape, kind, -1.1, 1.1, outliers="large"),),
        tolerance=1 + shape[axis] / 4,
    )


DRAWS = {
    **{name: unary(name, oracle) for name, oracle in every.UNARY.items()},
    **{name: unary(name, oracle, low, high) for name, (oracle, low, high) in every.UNARY_WITHIN.items()},
    **{
        name: unary(name, oracle, **attrs)
        for name, (attrs, oracle) in every.WITH_ATTRIBUTES.items()
        if "alpha" in attrs or name in ("gelu", "shrink")
    },
    **{name: binary(name, oracle, any_numbers) for name, oracle in every.ARITHMETIC.items() if name != "divide"},
    **{name: binary(name, every.OF_BITS[name], of_integers) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: binary(name, oracle, lambda d: {"kind": "bool"}) for name, oracle in every.OF_BOOLS.items()},
    **{name: unary(name, getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    **{name: draw_shift(name) for name in ("left_shift", "right_shift")},
    **{name: reduction(name) for name in ORACLES},
    **{name: draw_quantifier(name) for name in ("any", "all")},
    **{name: draw_arg(name) for name in ("argmax", "argmin")},
    **{name: draw_softmax(name) for name in ("softmax", "log_softmax")},
    "mod": draw_mod,
    "divide": draw_division,
    "power": draw_power,
    "where": draw_where,
    "clip": draw_clip,
    "quantize": draw_quantize,
    "byte_table": draw_byte_table,
    "dequantize": draw_dequantize,
    "bitcast": draw_bitcast,
    "cast": draw_cast,
    "prelu": lambda d: Case(
        nn.prelu, lambda x, s: np.where(x < 0, s * x, x), tuple(Input(s, "float32") for s in broadcast_shapes(d, 2))
    ),
    "bitwise_not": lambda d: Case(nn.bitwise_not, np.bitwise_not, (Input(d.shape(), **of_integers(d)),)),
    "logical_not": lambda d: Case(nn.logical_not, np.logical_not, (Input(d.shape(), "bool"),)),
    "cumsum": draw_cumsum,
    "cumprod": draw_cumprod,
}
