"""Elementwise operators of ONNX, in each version, against the reference."""

import numpy as np
import pytest
from onnx import TensorProto
from onnx_cases import bools, case, check, each_version, floats, integers

import loopwright as lw
from loopwright.frontend.fold import fold
from loopwright.ops.families.binary import mod

X = floats(2, 3, 4)
POSITIVE = floats(2, 3, low=0.1, high=3)
UNIT = floats(2, 3, low=-0.9, high=0.9)
A, B = floats(2, 3, 4, seed=1), floats(3, 1, seed=2)
C, D = floats(2, 3, seed=3), floats(2, 3, seed=4)
I, J = integers(2, 3), integers(2, 3, seed=1)
P, Q = bools(2, 3), bools(2, 3, seed=1)
HALF = floats(2, 3, kind=np.float16)


def legacy(op, versions, function, a=X, b=None):
    """Before version 7: no broadcasting but by the attribute, aligned at ``axis`` or at the end."""
    channel = floats(3, seed=5, low=0.5) if b is None else b
    return [
        case(op, versions, a, a[::-1].copy(), expected=function, label="same"),
        case(op, versions, a, channel, broadcast=1, axis=1, label="axis",
             expected=lambda x, y: function(x, y[:, None])),
        case(op, versions, a, a[0, 0].copy(), broadcast=1, expected=function, label="suffix"),
    ]  # fmt: skip


CASES = [
    *(case(op, (1, 6, 13), X) for op in ("Abs", "Ceil", "Exp", "Floor", "Neg", "Sigmoid", "Tanh")),
    *(case(op, (1, 6, 13), POSITIVE) for op in ("Log", "Reciprocal", "Sqrt")),
    *(case(op, (7, 22), UNIT) for op in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan")),
    *(case(op, (9, 22), UNIT) for op in ("Asinh", "Atanh", "Cosh", "Sinh")),
    case("Acosh", (9, 22), POSITIVE + 1),
    case("Abs", (6, 13), I, label="int"),
    case("Neg", (6, 13), I.astype(np.int8), label="int8"),
    case("Exp", (6, 13), HALF, label="half", tolerance=2e-3),
    case("Relu", (1, 6, 13, 14), X),
    case("Relu", (14,), I.astype(np.int32), label="int"),
    case("Erf", (9, 13), X),
    case("Sign", (9, 13), X),
    case("Round", (11, 22), np.array([0.5, 1.5, -2.5, 0.2, -0.7], np.float32)),
    case("Softplus", (1, 22), X),
    case("Softsign", (1, 22), X),
    case("HardSwish", (14, 22), floats(9, low=-5, high=5)),
    case("Mish", (18, 22), X),
    case("Not", (1,), P),
    case("BitwiseNot", (18,), I),
    case("Identity", (1, 13, 14, 16, 19, 21, 23, 24, 25), X),
    case("IsNaN", (9, 13, 20), np.array([1, np.nan, np.inf], np.float32)),
    case("IsInf", (10, 20), np.array([1, np.nan, np.inf, -np.inf], np.float32)),
    case("IsInf", (10, 20), np.array([1, np.inf, -np.inf], np.float32), detect_negative=0, label="positive"),
    *(case(op, (7, 13, 14), A, B) for op in ("Add", "Sub", "Mul", "Div")),
    case("Div", (7, 14), I, np.where(J == 0, 3, J), label="int",
         expected=lambda a, b: np.trunc(a / b).astype(np.int64)),
    *(c for op, f in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide))
      for c in legacy(op, (1, 6), f, floats(2, 3, 4, low=0.5))),
    *legacy("Pow", (1,), np.power, floats(2, 3, 4, low=0.5)),
    *(c for op, f in (("Greater", np.greater), ("Less", np.less)) for c in legacy(op, (1,), f)),
    *legacy("Equal", (1,), np.equal, integers(2, 3, 4, high=3), integers(3)),
    *(c for op, f in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor))
      for c in legacy(op, (1,), f, bools(2, 3, 4), bools(3))),
    case("Pow", (7, 12, 13, 15), POSITIVE, D),
    *(
        case("Pow", (7, 12, 13, 15), A, np.float32(power), const=(1,), label=f"constant {power}")
        for power in (0.0, 1.0, 2.0, 3.0, 4.0, -2.0)
    ),
    case("Pow", (12, 13, 15), J, np.int64(3), const=(1,), label="cube of integers"),
    case("Pow", (12, 13, 15), A, np.full((1, 1, 1, 1, 1), 2.0), const=(1,), label="square of a higher rank"),
    case("Pow", (12, 13, 15), POSITIVE, J.clip(0, 3), label="int exponent"),
    case("PRelu", (7, 9, 16), A, B),
    case("PRelu", (1, 6), X, floats(3), expected=lambda x, s: np.where(x < 0, x * s[:, None], x)),
    case("PRelu", (1, 6), X, floats(1), expected=lambda x, s: np.where(x < 0, x * s, x), label="shared"),
    *(case(op, (7, 9, 13), A, B) for op in ("Greater", "Less")),
    *(case(op, (12, 16), A, B) for op in ("GreaterOrEqual", "LessOrEqual")),
    case("Equal", (7, 11, 13, 19), I, I.clip(-2, 2)),
    case("Equal", (7, 13), P, Q, label="bool"),
    *(case(op, (7,), P, Q[:1]) for op in ("And", "Or", "Xor")),
    *(case(op, (18,), I, J) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(case("BitShift", (11, 28), abs(I).astype(np.uint8), abs(J).astype(np.uint8), direction=d, label=d)
      for d in ("LEFT", "RIGHT")),
    case("Mod", (10, 13, 28), I, np.where(J == 0, 5, J)),
    case("Mod", (10, 13, 28), I, np.where(J == 0, 5, J), fmod=1, label="fmod"),
    case("Mod", (10, 13, 28), C, D, fmod=1, label="float"),
    case("Mod", (28,), C, D, expected=np.mod, label="float floor"),
    case("Mod", (28,), np.float32([6, -6, 0, -0.0]), np.float32([-3, 3, -3, 3]), expected=np.mod, label="zeros"),
    case("Where", (9, 16), P, C, D),
    case("Max", (8, 12, 13), A, B, floats(4)),
    case("Min", (8, 12, 13), A, B, floats(4)),
    case("Sum", (8, 13), A, B, floats(4)),
    case("Mean", (8, 13), A, B, floats(4)),
    *(case(op, (1, 6), C, D, C * D) for op in ("Max", "Min", "Sum", "Mean")),
    *(case(op, (1, 6, 8, 13), C, label="one") for op in ("Max", "Min", "Sum", "Mean")),
    case("Max", (12, 13), I, J, label="int"),
    case("Elu", (1, 6, 22), X),
    case("Elu", (1, 6, 22), X, alpha=0.5, label="alpha"),
    case("Celu", (12, 28), X, alpha=1.5),
    case("Selu", (6, 22), X),
    case("Selu", (1,), X, expected=lambda x: np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * np.expm1(x)).astype("f4")),
    case("Selu", (1, 6, 22), X, alpha=1.2, gamma=0.7, label="attributes"),
    case("LeakyRelu", (1, 6, 16), X),
    case("LeakyRelu", (1, 6, 16), X, alpha=0.3, label="alpha"),
    case("ThresholdedRelu", (10, 22), X),
    case("HardSigmoid", (1, 6, 22), floats(9, low=-5, high=5)),
    case("HardSigmoid", (1, 6, 22), X, alpha=0.5, beta=0.1, label="attributes"),
    case("Swish", (24,), X, alpha=0.5),
    case("Gelu", (20,), X),
    case("Gelu", (20,), X, approximate="tanh", label="tanh"),
    case("Shrink", (9,), X, lambd=1.0, bias=0.25),
    case("Clip", (1, 6), X, min=-1.0, max=0.5, expected=lambda x: x.clip(-1, 0.5)),
    case("Clip", (1, 6), X, max=0.5, expected=lambda x: x.clip(None, 0.5), label="max"),
    case("Clip", (11, 12, 13), X, np.float32(-1), np.float32(0.5), const=(1, 2)),
    case("Clip", (11, 12, 13), X, np.float32(-1), np.float32(0.5), label="computed bounds"),
    case("Clip", (11, 12, 13), X, None, np.float32(0.5), const=(2,), label="max"),
    case("Clip", (12, 13), I, np.int64(-3), const=(1,), label="int"),
    case("Cast", (1,), X, to="INT32", expected=lambda x: x.astype(np.int32)),
    *(case("Cast", (6, 9, 13, 19, 21, 23, 24, 25, 28), X, to=kind, label=str(kind))
      for kind in (TensorProto.INT32, TensorProto.DOUBLE)),
    case("Cast", (9, 13), X, to=TensorProto.BOOL, label="bool"),
    case("CastLike", (15, 19, 21, 23, 24, 25), X, I),
    *(case("Dropout", v, X, expected=lambda x: x) for v in ((1, 6, 7, 10), (12, 13, 22))),
    case("Dropout", (7,), X, outputs=2, expected=lambda x: (x, np.ones_like(x)), label="mask"),
    case("Dropout", (10, 12, 13, 22), X, outputs=2, expected=lambda x: (x, np.ones(x.shape, bool)), label="mask"),
    case("Dropout", (12, 13, 22), X, np.float32(0.5), np.array(False), const=(1, 2), label="inputs",
         expected=lambda x, *_: x),
]  # fmt: skip


@each_version(CASES)
def test_an_operator_gives_what_the_reference_gives(case, version):
    check(case, version)


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_of_constants_are_folded_as_they_are_computed(fmod):
    a, b = np.float32([6, -6, 0.0, -0.0, 5, 1, -1]), np.float32([-3, 3, -3, 3, 0, np.inf, np.inf])
    folded = fold(mod(lw.const(a), lw.const(b), bool(fmod)))
    with np.errstate(all="ignore"):
        wanted = (np.fmod if fmod else np.mod)(a, b)
    np.testing.assert_array_equal(folded.value, wanted)
    np.testing.assert_array_equal(np.signbit(folded.value[:4]), np.signbit(wanted[:4]))
