"""Reductions of ONNX, in each version, against the reference: axes as an attribute, then as an input."""

import numpy as np
from onnx_cases import case, check, each_version, floats, integers, ints

X = floats(2, 3, 4, low=0.2)
OLD, NEW = (1, 11, 13), (18,)
VERSIONS = {
    "ReduceL1": (OLD, NEW),
    "ReduceL2": (OLD, NEW),
    "ReduceLogSum": (OLD, (18, 28)),
    "ReduceLogSumExp": (OLD, (18, 28)),
    "ReduceMax": ((1, 11, 12, 13), (18, 20)),
    "ReduceMean": (OLD, NEW),
    "ReduceMin": ((1, 11, 12, 13), (18, 20)),
    "ReduceProd": (OLD, NEW),
    "ReduceSum": ((1, 11), (13,)),
    "ReduceSumSquare": (OLD, NEW),
}
NUMPY = {
    "ReduceL1": lambda x, **k: np.sum(abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}


def cases_of(op):
    old, new = VERSIONS[op]
    f = NUMPY[op]
    return [
        case(op, old, X, axes=[0, 2], expected=lambda x: f(x, axis=(0, 2), keepdims=True)),
        case(op, old, X, keepdims=0, label="all", expected=f),
        case(op, old[1:], X, axes=[-2], keepdims=0, label="negative", expected=lambda x: f(x, axis=1)),
        case(op, new, X, ints(0, -1), const=(1,)),
        case(op, new, X, keepdims=0, label="all"),
        case(op, new, X, ints(), const=(1,), label="empty"),
        case(op, new[:1] if op in ("ReduceSum", "ReduceMax") else (), X, noop_with_empty_axes=1, label="noop"),
    ]


def best(x, k, axis, largest):
    places = np.take(np.argsort(-x if largest else x, axis, kind="stable"), np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places


CASES = [
    *(c for op in VERSIONS for c in cases_of(op)),
    case("ReduceSum", (13,), integers(3, 4), ints(1), const=(1,), label="int"),
    case("ReduceMax", (20,), integers(3, 4) > 0, ints(1), const=(1,), label="bool"),
    *(c for op in ("ArgMax", "ArgMin") for c in (
        case(op, (1, 11, 12, 13), X),
        case(op, (1, 11, 12, 13), X, axis=2, keepdims=0, label="axis"),
        case(op, (11, 12, 13), X, axis=-2, label="negative"),
        case(op, (12, 13), integers(3, 8, low=0, high=3), axis=1, select_last_index=1, label="last"),
    )),
    case("CumSum", (11, 14), X, np.array(1), const=(1,)),
    case("CumSum", (11, 14), X, np.array(-1), const=(1,), exclusive=1, reverse=1, label="reverse"),
    case("TopK", (1,), X, k=2, outputs=2, expected=lambda x: best(x, 2, -1, True)),
    case("TopK", (10, 11, 24), X, np.array([2]), const=(1,), outputs=2, axis=1,
         expected=lambda x, _: best(x, 2, 1, True)),
    case("TopK", (11, 24), X, np.array([3]), const=(1,), outputs=2, largest=0, sorted=0, label="smallest",
         expected=lambda x, _: best(x, 3, -1, False)),
    case("CumProd", (26,), X, np.array(1), const=(1,)),
    case("CumProd", (26,), X, np.array(-1), const=(1,), exclusive=1, reverse=1, label="reverse"),
    case("CumSum", (14,), integers(3, 4), np.array(0), const=(1,), exclusive=1, label="int"),
]  # fmt: skip


@each_version(CASES)
def test_an_operator_gives_what_the_reference_gives(case, version):
    check(case, version)
