"""Random graphs, from plans: operators over values made before, tuples whole and in parts, and what each gives in
numpy.

``make_graph`` gives the graph and a program of numpy functions in the same order, which ``evaluate`` runs.
"""

import math
from dataclasses import dataclass

import numpy as np
from draw import outlier
from graph_values import Step, Value, broadcast, extents, same_type
from operators_simple import every, log_sum_exp, safe_softmax
from random_movements import Movements
from random_programs import concrete

import loopwright as lw
from loopwright import te
from loopwright.graph import Tuple, TupleGet
from loopwright.ops.families.cumsum import cumsum

nn = lw.nn
MAX_ELEMENTS = {"graph": 6_000, "chain": 100_000}
"""Of a value, by the kind of the plan."""
MAX_MULTIPLICATIONS = 300_000
SIZES = (3, 1, 2, 4, 5, 7, 8, 12, 16, 17, 19, 32, 33, 40, 64, 65)
LONG_SIZES = (*SIZES, 10, 20, 31, 48, 77, 96, 100, 128, 196, 197, 256, 384)
SHAPES = ("nm", "m", "nkm", "n1", "nchw", "1m", "chw", "ncm")
CONSTANTS = (2.0, 0.5, -1.0, 1e10, 1e-3, -3.0)


def _gelu(x):
    """By its definition, of an error function that is rounded as the type of x is: what is left of 1 far below 0 has
    few digits."""
    erf = np.vectorize(math.erf, otypes=[x.dtype])(x / math.sqrt(2))
    return x / 2 * (1 + erf)


class _Builder(Movements):
    """Makes the nodes of a plan, of at most ``most`` elements each. Mutable: ``pool`` holds the tensors so far,
    ``steps`` how numpy makes them."""

    def __init__(self, plan):
        self.most = MAX_ELEMENTS[plan["kind"]]
        self.extents = dict(zip("nmkchw", plan["sizes"], strict=True))
        self.extents["h"], self.extents["w"] = (min(self.extents[k], 12) for k in "hw")
        self.extents["1"] = 1
        self.symbols = {letter: te.var(letter) for letter in plan["symbolic"]}
        self.rng = np.random.default_rng(plan["seed"])
        self.inputs, self.steps, self.pool, self.constants = [], [], [], []
        for name in plan["inputs"]:
            shape = self.sizes(name)
            if np.prod(shape, dtype=int) <= self.most:
                node = lw.var(f"x{len(self.inputs)}", tuple(self.symbols.get(k, self.extents[k]) for k in name))
                self.inputs.append(Value(node, shape))
        if not self.inputs:
            self.inputs.append(Value(lw.var("x0", (3,)), (3,)))
        self.pool += self.inputs

    def sizes(self, name):
        return tuple(self.extents[k] for k in name)

    def constant(self, shape, low=-1.0, high=1.0):
        array = self.rng.uniform(low, high, shape).astype(np.float32)
        value = Value(lw.const(array), tuple(shape))
        self.constants.append((value, array))
        return value

    def add(self, form, a, b, c):
        x, y = self.pool[-1 - a % len(self.pool)], self.pool[b % len(self.pool)]
        try:
            getattr(self, f"_{form}")(x, y, c)
        except lw.LoopwrightError as error:
            if not self.symbols:  # extents that are not known are refused by some operators
                raise AssertionError(f"{form} of {x.node.type} and {y.node.type} ({c}): {error}") from error

    def made(self, node, function, *read, exact=False):
        """A node, a tensor, as the next of the pool."""
        shape = tuple(concrete(node.type.shape, {var: self.extents[letter] for letter, var in self.symbols.items()}))
        if np.prod(shape, dtype=int) > self.most or str(node.type.dtype) != "float32":
            return
        value = Value(node, shape, exact)
        self.pool.append(value)
        self.steps.append(Step(function, read, value))

    # Elementwise.

    def _unary(self, x, y, c):
        names = ("relu", "negative", "sigmoid", "tanh", "exp", "abs", "erf", "gelu", "softplus", "hard_swish", "floor",
                 "softsign", "sin", "identity", "sign", "leaky_relu", "elu", "swish", "round")  # fmt: skip
        name = names[c % len(names)]
        attrs, oracle = every.WITH_ATTRIBUTES.get(name) or ({}, every.UNARY[name])
        oracle = _gelu if name == "gelu" else oracle
        exact = name in ("relu", "negative", "abs", "identity") and x.exact
        self.made(getattr(nn, name)(x.node, **attrs), oracle, x, exact=exact)

    def _positive(self, x, y, c):
        """What is undefined below 0, of what is not."""
        name, oracle = (("sqrt", np.sqrt), ("log", lambda v: np.log(v + 1)), ("rsqrt", lambda v: 1 / np.sqrt(v + 1)))[
            c % 3
        ]
        square = nn.abs(x.node)
        shifted = square if name == "sqrt" else nn.add(square, lw.const(np.float32(1)))
        self.made(getattr(nn, name)(shifted), lambda v: oracle(np.abs(v)), x)

    def _scalar(self, x, y, c):
        number = np.float32(CONSTANTS[c // 4 % len(CONSTANTS)])
        name = ("multiply", "add", "subtract", "divide")[c % 4]
        self.made(getattr(nn, name)(x.node, lw.const(number)), lambda v: getattr(np, name)(v, float(number)), x)

    def _binary(self, x, y, c):
        names = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
        name = names[c % len(names)]
        if not broadcast(x, y):
            y = self.constant(x.shape[-1:] if c // 6 % 2 and x.shape and isinstance(extents(x)[-1], int) else ())
        exact = name in ("maximum", "minimum") and x.exact and y.exact
        self.made(getattr(nn, name)(x.node, y.node), every.ARITHMETIC[name], x, y, exact=exact)

    def _where(self, x, y, c):
        if not same_type(x, y):
            y = self.constant(())
        name = ("greater", "less", "greater_equal")[c % 3]
        oracle = every.ARITHMETIC[name]
        self.made(
            nn.where(getattr(nn, name)(x.node, y.node), x.node, lw.const(np.float32(0.5))),
            lambda v, w: np.where(oracle(v, w), v, 0.5),
            x,
            y,
        )

    def _clip(self, x, y, c):
        self.made(nn.clip(x.node, -1.0, 1.0 + c % 3), lambda v: np.clip(v, -1.0, 1.0 + c % 3), x, exact=x.exact)

    # Reductions and rows.

    def _reduce(self, x, y, c):
        if not x.shape:
            return
        names = ("sum", "mean", "max", "min", "l2", "log_sum_exp", "sum_square", "l1")
        name, axis, keep = names[c % len(names)], c // 8 % len(x.shape), bool(c // 3 % 2)
        axes = (axis,) if c // 2 % 3 else tuple(range(axis, len(x.shape)))
        oracle = log_sum_exp if name == "log_sum_exp" else every.REDUCTIONS[name]
        self.made(getattr(nn, name)(x.node, axes, keepdims=keep), lambda v: oracle(v, axis=axes, keepdims=keep), x)

    def _softmax(self, x, y, c):
        if not x.shape:
            return
        axis, log = (len(x.shape) - 1 if c // 2 % 3 else c // 6 % len(x.shape)), bool(c % 2)
        make = nn.log_softmax if log else nn.softmax
        self.made(make(x.node, axis), lambda v: safe_softmax(v, axis, log), x)

    def _norm(self, x, y, c):
        if not x.shape or x.shape[-1] < 3:
            return
        scale = self.constant(x.shape[-1:])
        if c % 2:
            self.made(nn.rms_norm(x.node, scale.node), lambda v, s: every.scaled_to_1(v) * s, x, scale)
            return
        bias = self.constant(x.shape[-1:])
        self.made(
            nn.layer_norm(x.node, scale.node, bias.node),
            lambda v, s, b: every.normalised(v, (-1,)) * s + b,
            x,
            scale,
            bias,
        )

    def _cumsum(self, x, y, c):
        if x.shape:
            axis = c % len(x.shape)
            self.made(cumsum(x.node, axis), lambda v: np.cumsum(v, axis), x)

    # Products and windows.

    def _matmul(self, x, y, c):
        if not x.shape:
            return
        columns = (8, 3, 16, 33, 1)[c // 3 % 5]
        if c % 3 == 0 and len(x.shape) > 1 and same_type(x, y):
            order = (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2)
            if np.prod(x.shape, dtype=int) * x.shape[-2] <= MAX_MULTIPLICATIONS:
                self.made(nn.matmul(x.node, nn.transpose(y.node, order)), lambda v, w: v @ np.transpose(w, order), x, y)
            return
        weight = self.constant((x.shape[-1], columns))
        self.made(nn.matmul(x.node, weight.node), np.matmul, x, weight)

    def _conv(self, x, y, c):
        if len(x.shape) not in (3, 4) or min(x.shape[1:]) < 1:
            return
        rank, channels = len(x.shape) - 2, x.shape[1]
        size, filters = (1, 3, 3, 5)[c % 4], (8, 16, 4, 5, 32)[c // 4 % 5]
        depthwise = c // 20 % 3 == 0
        strides, dilation = (1 + c // 7 % 2,) * rank, (1 + c // 11 % 2,) * rank
        pad = (size // 2 * dilation[0],) * (2 * rank)
        shape = (channels, 1, *(size,) * rank) if depthwise else (filters, channels, *(size,) * rank)
        if np.prod(shape, dtype=int) * np.prod(x.shape[2:], dtype=int) * x.shape[0] > MAX_MULTIPLICATIONS:
            return
        weight, groups = self.constant(shape), channels if depthwise else 1
        self.made(
            nn.conv(x.node, weight.node, strides=strides, padding=pad, dilation=dilation, groups=groups),
            lambda v, w: every.windows.conv(v, w, strides, pad, dilation, groups),
            x,
            weight,
        )

    def _pool(self, x, y, c):
        if len(x.shape) not in (3, 4) or min(x.shape[2:]) < 2:
            return
        rank = len(x.shape) - 2
        window, strides = (2 + c % 2,) * rank, (1 + c // 2 % 2,) * rank
        padding = (c // 4 % 2,) * (2 * rank)
        if min(x.shape[2:]) + 2 * padding[0] < window[0]:
            return
        made = (window, strides, padding, (1,) * rank, False)
        make, fold = every.POOLS["nn.avg_pool" if c // 8 % 2 else "nn.max_pool"]
        self.made(
            make(x.node, window=window, strides=strides, padding=padding),
            lambda v: every.windows.pool(v, *made, fold),
            x,
        )

    def _pool_with_indices(self, x, y, c):
        if len(x.shape) != 4 or min(x.shape[2:]) < 2:
            return
        both = nn.max_pool_with_indices(x.node, window=(2, 2), strides=(1 + c % 2,) * 2)
        made = ((2, 2), (1 + c % 2,) * 2, (0,) * 4, (1, 1), False)
        self.made(
            TupleGet(both, 0), lambda v: every.windows.pool(v, *made, lambda w, padded: w.max(-1)), x, exact=x.exact
        )
        self.made(
            nn.cast(TupleGet(both, 1), "float32"), lambda v: every.windows.max_pool_indices(v, *made).astype(float), x
        )

    # Those that move elements.

    # Tuples.

    def _tuple(self, x, y, c):
        """Results that are tuples go whole to the next operator, or some of their parts do."""
        from tuple_models import OPS, PATTERNS  # which registers operators: in processes of the campaign alone

        parts, _, _ = OPS[PATTERNS[c % len(PATTERNS)]]
        _, weigh, swap = OPS[PATTERNS[c // 4 % len(PATTERNS)]]
        whole = parts(x.node)
        if c // 16 % 3 == 0:
            self.made(weigh(whole), lambda v: (v + 1) - 2 * -v + 3 * (v * 0.5), x)
        elif c // 16 % 3 == 1:
            turned = swap(whole)  # ((-x, x / 2), x + 1)
            self.made(TupleGet(turned, 1), lambda v: v + 1, x)
            self.made(TupleGet(TupleGet(turned, 0), 1), lambda v: v * 0.5, x)
        elif same_type(x, y):
            given = Tuple((x.node, Tuple((y.node, TupleGet(whole, 0)))))
            self.made(weigh(given), lambda v, w: v - 2 * w + 3 * (v + 1), x, y)

    # Control flow.

    def _branch(self, x, y, c):
        """One of two bodies, as an input has positive elements: that does not hang on rounding."""
        other = y if same_type(x, y) else self.constant(())
        count = nn.sum(nn.cast(nn.greater(self.inputs[0].node, lw.const(np.float32(0))), "float32"))
        names = ("maximum", "subtract", "add", "minimum")
        then, otherwise = names[c % 4], names[c // 4 % 4]
        made = nn.cond(
            nn.greater(count, lw.const(np.float32(c % 5))),
            lambda a: getattr(nn, then)(nn.tanh(a), other.node),
            lambda a: getattr(nn, otherwise)(a, other.node),
            x.node,
        )

        def oracle(v, w, i):
            holds = np.sum(i > 0) > c % 5
            return every.ARITHMETIC[then](np.tanh(v), w) if holds else every.ARITHMETIC[otherwise](v, w)

        self.made(made, oracle, x, other, self.inputs[0])

    def _repeat(self, x, y, c):
        """A body that is computed some times, of what it gave and a value that stays."""
        other = y if same_type(x, y) else self.constant(())
        half = lw.const(np.float32(0.5))
        made = nn.for_loop(c % 4, lambda number, a: nn.add(nn.multiply(a, half), nn.sigmoid(other.node)), x.node)

        def oracle(v, w):
            for _ in range(c % 4):
                v = v * 0.5 + every.UNARY["sigmoid"](w)
            return v

        self.made(made, oracle, x, other, exact=x.exact and c % 4 == 0)

    def _scan(self, x, y, c):
        """Rows that are summed one after the other, from either end."""
        if not x.shape or not x.shape[0]:
            return
        reverse, half = bool(c % 2), lw.const(np.float32(0.5))

        def body(h, row):
            new = nn.add(nn.multiply(h, half), row)
            return new, nn.tanh(new) if c // 2 % 2 else new

        made = nn.scan(body, [nn.max(x.node, (0,))], [x.node], reverse=reverse).fields[1]

        def oracle(v):
            rows, h = np.zeros_like(v), np.max(v, axis=0)
            for t in reversed(range(len(v))) if reverse else range(len(v)):
                h = h * 0.5 + v[t]
                rows[t] = np.tanh(h) if c // 2 % 2 else h
            return rows

        self.made(made, oracle, x)


def _forms(kind):
    return sorted(name[1:] for name in vars(kind) if name[0] == "_" and name[1] != "_")


MOVEMENTS, OTHERS = _forms(Movements), _forms(_Builder)


@dataclass(frozen=True)
class Graph:
    """A function to compile, the values that it takes and gives, and the steps and constants that numpy needs."""

    function: lw.Function
    inputs: list[Value]
    outputs: list[Value]
    steps: list[Step]
    constants: list[tuple[Value, np.ndarray]]

    def arrays(self, plan):
        rng = np.random.default_rng(plan["seed"])
        made = [rng.uniform(-2, 2, value.shape).astype(np.float32) for value in self.inputs]
        for array in made if plan["outliers"] else ():
            for place in rng.choice(array.size, min(array.size, 2), replace=False):
                array.reshape(-1)[place] = outlier(rng, plan["outliers"], array.dtype)
        return made


def make_graph(plan):
    """The graph of a plan."""
    builder = _Builder(plan)
    for form, a, b, c in plan["nodes"]:
        builder.add(form, a, b, c)
    outputs = [builder.pool[-1 - k % len(builder.pool)] for k in plan["outputs"]]
    nodes = [value.node for value in outputs]
    body = nodes[0] if len(nodes) == 1 else Tuple(tuple(nodes))
    function = lw.Function([value.node for value in builder.inputs], body)
    return Graph(function, builder.inputs, outputs, builder.steps, builder.constants)


def evaluate(graph, arrays, rng=None, inside=np.float64, between=np.float32, limit=None):
    """The outputs by numpy, an operator at a time: the types that one computes in, and of what it gives. ``rng`` gives
    each operator's arguments an error of an ulp or two, but those of operators that only move them: it shows how far
    rounding may take a result. Sums whose terms come to more than ``limit``, however they cancel, are infinite."""
    values = dict(zip(graph.inputs, arrays, strict=True)) | dict(graph.constants)
    with np.errstate(all="ignore"):
        for step in graph.steps:
            read = [values[value].astype(inside) for value in step.read]
            if rng is not None and not step.made.exact:
                read = [v * (1 + rng.uniform(-1, 1, v.shape) * 2.0**-22).astype(inside) for v in read]
            made = np.asarray(step.function(*read))
            if limit is not None and not step.made.exact and made.dtype.kind == "f":
                terms = np.asarray(step.function(*map(np.abs, read)))
                made = np.where(np.abs(terms) > limit, np.copysign(np.inf, made), made)
            values[step.made] = made.astype(between)
    return [values[value].astype(np.float64) for value in graph.outputs]
