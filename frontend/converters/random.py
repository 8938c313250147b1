"""ONNX's operators that draw numbers: RandomUniform, RandomNormal and their like, Bernoulli, Multinomial, Dropout.

Number i of a stream is ``mix(key + (i + 1) · GAMMA)``, 64 bits of SplitMix64 (Steele, Lea and Flood, "Fast Splittable
Pseudorandom Number Generators", 2014), so that results do not depend on threads. With a seed the key follows from it:
each run gives the same numbers. Without one, each run asks the packed function ``loopwright.entropy`` for a key.

Dropout with a seed drops what ``numpy.random.RandomState(seed).uniform`` says, as onnx's reference does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.dtype import FLOAT32, FLOAT64, INT64, UINT64, DType, dtype
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import ONE
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ops.families.binary import (
    add,
    bitwise_xor,
    greater_equal,
    less,
    less_equal,
    minimum,
    multiply,
    right_shift,
    subtract,
)
from ...ops.families.cast import cast
from ...ops.families.cumsum import cumsum
from ...ops.families.extern import extern
from ...ops.families.reduce import max as max_of
from ...ops.families.reduce import sum as sum_of
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.slicing import strided_slice
from ...ops.families.unary import cos, exp, log, sqrt
from ..onnx_node import OnnxNode
from ..registry import converter
from ..reshaping import reshape_to
from ..tensors import element_type
from .creation import filled
from .run_time_operands import extent_as_number, numbers_up_to

ENTROPY = "loopwright.entropy"
GAMMA = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shifts, and the numbers to multiply by behind them."""
LAST_SHIFT = 31
FRACTION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""How many bits a uniform number has, so that 1 is none."""


def _known(value: int) -> Constant:
    return Constant(np.array(value, np.uint64))


def _mixed(z: Node) -> Node:
    for shift, factor in ROUNDS:
        z = multiply(bitwise_xor(z, right_shift(z, _known(shift))), _known(factor))
    return bitwise_xor(z, right_shift(z, _known(LAST_SHIFT)))


def _key(node: OnnxNode) -> Node:
    """Where a stream begins, [1]: the bits of the seed as a float64, or something else in each run."""
    if node.has("seed"):
        return Constant(np.array([node.real("seed")], np.float64).view(np.uint64))
    return extern(ENTROPY, Constant(np.zeros(2, np.uint64)), shape=(1,), options={"node": str(node.proto.output[0])})


def _bits(node: OnnxNode, count: Expr) -> Node:
    """Draw so many numbers of 64 bits."""
    numbers = cast(numbers_up_to(node, simplify(count)), UINT64)
    return _mixed(add(multiply(add(numbers, _known(1)), _known(GAMMA)), _mixed(_key(node))))


def _uniform(node: OnnxNode, count: Expr, kind: DType) -> Node:
    """Draw so many numbers from 0 to below 1, which are all multiples of one power of 2 that the type holds."""
    bits = FRACTION[kind.name]
    wide = FLOAT64 if kind is FLOAT64 else FLOAT32
    return multiply(
        cast(right_shift(_bits(node, count), _known(64 - bits)), wide),
        Constant(np.array(2.0**-bits, wide.to_numpy())),
    )


def _normal(node: OnnxNode, count: Expr, kind: DType) -> Node:
    """Draw so many numbers of the standard normal distribution, each of two uniform ones (Box and Muller, 1958)."""
    wide = FLOAT64 if kind is FLOAT64 else FLOAT32
    pairs = reshape(_uniform(node, count * 2, wide), (-1, 2))
    radius, turn = (reshape(strided_slice(pairs, [k], [k + 1], axes=[1]), (-1,)) for k in range(2))
    one, angle = (Constant(np.array(value, wide.to_numpy())) for value in (1.0, 2 * math.pi))
    distance = sqrt(multiply(log(subtract(one, radius)), Constant(np.array(-2.0, wide.to_numpy()))))
    return multiply(distance, cos(multiply(turn, angle)))


def _drawn(node: OnnxNode, shape: Sequence[int | Expr], kind: DType) -> Node:
    """What a Random… node draws: uniform between low and high, or normal around mean."""
    if kind.name not in FRACTION:
        raise node.unsupported(f"the element type {kind}")
    count = math.prod(map(as_index, shape), start=ONE)
    if "Normal" in node.proto.op_type:
        made = _normal(node, count, kind)
        start, scale = node.real("mean", 0.0), node.real("scale", 1.0)
    else:
        made = _uniform(node, count, kind)
        start, scale = node.real("low", 0.0), node.real("high", 1.0) - node.real("low", 0.0)
    wide = tensor_of(made).dtype.to_numpy()
    numbers = add(multiply(made, Constant(np.array(scale, wide))), Constant(np.array(start, wide)))
    return cast(reshape_to(numbers, shape, node.shapes.inputs), kind)


@converter("RandomNormal", 1, 22)
@converter("RandomUniform", 1, 22)
def _random(node: OnnxNode) -> Node:
    return _drawn(node, node.required_ints("shape"), element_type(node.integer("dtype", 1), str(node)))


@converter("RandomNormalLike", 1, 22)
@converter("RandomUniformLike", 1, 22)
def _random_like(node: OnnxNode) -> Node:
    kind = element_type(node.integer("dtype"), str(node)) if node.has("dtype") else node.type().dtype
    return _drawn(node, node.type().shape, kind)


@converter("Bernoulli", 15, 22)
def _bernoulli(node: OnnxNode) -> Node:
    """1 where a uniform number is below x. The body that ONNX gives it compares the other way round."""
    kind = element_type(node.integer("dtype"), str(node)) if node.has("dtype") else node.type().dtype
    wide = FLOAT64 if node.type().dtype is FLOAT64 else FLOAT32
    count = math.prod(node.type().shape, start=ONE)
    drawn = reshape_to(_uniform(node, count, wide), node.type().shape, node.shapes.inputs)
    return cast(less(drawn, cast(node[0], wide)), kind)


@converter("Multinomial", 7, 22)
def _multinomial(node: OnnxNode) -> Node:
    """The number of the first class up to which the probabilities sum to more than a uniform number."""
    kind = element_type(node.integer("dtype", 6), str(node))
    if node.rank != 2 or not kind.is_data_int:
        raise ModelError(f"{node}: it draws integers of rows [batch, classes], found {kind} of {node.type()}")
    wide = FLOAT64 if node.type().dtype is FLOAT64 else FLOAT32
    x, samples = cast(node[0], wide), node.integer("sample_size", 1)
    batch, classes = node.type().shape
    sums = cumsum(exp(subtract(x, max_of(x, (1,), keepdims=True))), 1)
    drawn = reshape_to(_uniform(node, batch * samples, wide), (batch, samples), node.shapes.inputs)
    wanted = multiply(drawn, strided_slice(sums, [-1], [1 << 62], axes=[1]))
    below = less_equal(expand_dims(sums, 1), expand_dims(wanted, 2))
    chosen = sum_of(cast(below, INT64), (2,))
    return cast(minimum(chosen, extent_as_number(node, classes - 1)), kind)


@converter("Dropout", 1, 6, 7, 10)
def _dropout_1(node: OnnxNode) -> Sequence[Node]:
    """Dropout at inference, where nothing is dropped."""
    return _undropped(node, "bool" if node.version >= 10 else str(node.type().dtype))


@converter("Dropout", 12, 13, 22)
def _dropout(node: OnnxNode) -> Sequence[Node]:
    training, ratio = node.get(2), node.get(1)
    if training is None or _is_known(training, 0) or (ratio is not None and _is_known(ratio, 0)):
        return _undropped(node, "bool")
    dropped = cast(Constant(np.array(0.5)) if ratio is None else reshape(ratio, []), FLOAT64)
    share = where(reshape(training, []), dropped, Constant(np.array(0.0)))
    if node.has("seed"):
        generator = np.random.RandomState(node.integer("seed") % (1 << 32))
        drawn: Node = Constant(generator.uniform(size=node.static_shape(0)))
    else:
        count = math.prod(node.type().shape, start=ONE)
        drawn = reshape_to(cast(_uniform(node, count, FLOAT32), FLOAT64), node.type().shape, node.shapes.inputs)
    kept, kind = greater_equal(drawn, share), node.type().dtype
    scale = cast(Constant(np.array(1.0)) / subtract(Constant(np.array(1.0)), share), kind)
    return where(kept, multiply(node[0], scale), Constant(np.zeros((), kind.to_numpy()))), kept


def _is_known(value: Node, number: float) -> bool:
    return isinstance(value, Constant) and bool((value.value == number).all())


def _undropped(node: OnnxNode, mask: str) -> Sequence[Node]:
    if not node.wants(1):
        return (node[0],)
    return node[0], filled(node, node.type().shape, np.ones((), dtype(mask).to_numpy()))
