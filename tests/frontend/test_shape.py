"""Operators of ONNX that move, read or make elements, in each version, against the reference."""

import numpy as np
import scattering
import windows
from onnx import TensorProto, numpy_helper
from onnx_cases import case, check, each_version, floats, integers, ints

X = floats(2, 3, 4)
Y = floats(4, 6, 5)
IMAGE = floats(1, 8, 2, 3)
SQUARE = floats(2, 4, 5)
PLACES = np.array([[[0, 1, -1, 0], [1, 1, 0, -2]], [[-1, 0, 0, 1], [1, 0, 1, 0]]])
UPDATES = floats(*PLACES.shape, seed=9)
RESHAPES = (5, 13, 14, 19, 21, 23, 24, 25)
RECENT = (13, 21, 23, 24, 25)
PADS = (11, 13, 18, 19, 21, 23, 24, 25)


def tensor(*values, kind=np.float32):
    return numpy_helper.from_array(np.array(values, kind))


CASES = [
    case("Reshape", (1,), X, shape=[4, -1], expected=lambda x: x.reshape(4, -1)),
    case("Reshape", RESHAPES, X, ints(0, -1), const=(1,)),
    case("Reshape", RESHAPES, X, ints(6, 4), const=(1,), label="numbers"),
    case("Reshape", RESHAPES[2:], floats(0, 3), ints(3, 0), const=(1,), allowzero=1, label="allowzero"),
    case("Transpose", (1, *RECENT), X),
    case("Transpose", (1, *RECENT), X, perm=[1, 2, 0], label="perm"),
    case("Squeeze", (1, 11), floats(1, 3, 1), axes=[0], expected=lambda x: x[0]),
    case("Squeeze", (1, 11), floats(1, 3, 1), expected=np.squeeze, label="all"),
    case("Squeeze", (11,), floats(1, 3, 1), axes=[-1], label="negative", expected=lambda x: x[..., 0]),
    case("Squeeze", RECENT, floats(1, 3, 1), ints(-1), const=(1,)),
    case("Squeeze", RECENT, floats(1, 3, 1), label="all"),
    case("Unsqueeze", (1, 11), X, axes=[0, 4], expected=lambda x: x[None, ..., None]),
    case("Unsqueeze", (11,), X, axes=[-1], label="negative", expected=lambda x: x[..., None]),
    case("Unsqueeze", RECENT, X, ints(1, -1), const=(1,)),
    *(case("Flatten", (1, 9, 11, 13, 21, 23, 24, 25), X, axis=k, label=str(k)) for k in (0, 1, 2, 3)),
    case("Flatten", (11, 13, 25), X, axis=-1, label="negative"),
    case("Concat", (4, 11, 13), X, X[:1], X, axis=0),
    case("Concat", (1,), X, X[:, :1], expected=lambda *x: np.concatenate(x, 1)),
    case("Concat", (1, 4, 11, 13), X, X, axis=2, label="axis"),
    case("Concat", (11, 13), X, X, axis=-1, label="negative"),
    case("Split", (2, 11, 13), Y, outputs=2),
    case("Split", (2, 11), Y, outputs=3, axis=1, split=[1, 3, 2], label="split",
         expected=lambda x: tuple(np.split(x, [1, 4], 1))),
    case("Split", (1,), Y, axis=0, outputs=2, split=[1, 3], expected=lambda x: (x[:1], x[1:])),
    case("Split", (1,), Y, ints(1, 3), const=(1,), axis=0, outputs=2, label="input",
         expected=lambda x, _: (x[:1], x[1:])),
    case("Split", (13, 18), Y, ints(1, 3, 2), const=(1,), axis=1, outputs=3, label="input"),
    case("Split", (18,), Y, axis=2, num_outputs=2, outputs=2, label="uneven"),
    case("Slice", (1,), Y, starts=[1, -3], ends=[2**31 - 1, -1], expected=lambda x: x[1:, -3:-1]),
    case("Slice", (1,), Y, starts=[0, 1], ends=[2, 9], axes=[2, 0], label="axes", expected=lambda x: x[1:9, :, :2]),
    case("Slice", (10, 11, 13), Y, ints(1, 0), ints(3, 2), const=(1, 2)),
    case("Slice", (10, 11, 13), Y, ints(1, -1), ints(2**63 - 1, -(2**63)), ints(0, 2), ints(2, -1),
         const=(1, 2, 3, 4), label="steps"),
    case("Slice", (11, 13), Y, ints(-2), ints(99), ints(-1), const=(1, 2, 3), label="negative axis"),
    *(case("Pad", (v,), X, **{name: [0, 1, 2, 1, 0, 3]}, value=1.5,
           expected=lambda x: np.pad(x, ((0, 1), (1, 0), (2, 3)), constant_values=1.5))
      for v, name in ((1, "paddings"), (2, "pads"))),
    *(case("Pad", (v,), X, **{name: [0, 1, 2, 1, 0, 3]}, mode=mode, label=mode,
           expected=lambda x, mode=mode: np.pad(x, ((0, 1), (1, 0), (2, 3)), mode))
      for v, name in ((1, "paddings"), (2, "pads")) for mode in ("edge", "reflect")),
    case("Pad", (2,), X, pads=[0, -1, 1, 0, 0, -2], label="negative",
         expected=lambda x: np.pad(x[:, 1:, :-2], ((0, 0), (0, 0), (1, 0)))),
    case("Pad", PADS, X, ints(0, 1, 2, 1, 0, 3), np.float32(1.5), const=(1, 2)),
    case("Pad", PADS, X, ints(0, 1, 2, 1, 0, 3), const=(1,), mode="reflect", label="reflect"),
    case("Pad", PADS, X, ints(0, 1, 2, 1, 0, 3), const=(1,), mode="edge", label="edge"),
    case("Pad", PADS[3:], X, ints(0, 1, 2, 1, 0, 3), const=(1,), mode="wrap", label="wrap"),
    case("Pad", PADS[2:], X, ints(1, 2), None, ints(-1), const=(1, 3), label="axes"),
    case("Tile", (1,), X, np.int64(2), np.int64(1), const=(1, 2), expected=lambda x, *_: np.tile(x, (1, 2, 1))),
    case("Tile", (6, 13), X, ints(1, 2, 3), const=(1,)),
    case("Expand", (8, 13), X, ints(2, 1, 1, 4), const=(1,)),
    case("DepthToSpace", (1,), IMAGE, blocksize=2,
         expected=lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)),
    *(case("DepthToSpace", (11, 13, 28), IMAGE, blocksize=2, mode=mode, label=mode) for mode in ("DCR", "CRD")),
    case("SpaceToDepth", (1, 13, 28), floats(1, 2, 4, 6), blocksize=2),
    case("SpaceToDepth", (28,), floats(1, 2, 4, 6), blocksize=2, mode="CRD", label="CRD",
         expected=lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 8, 2, 3)),
    case("Gather", (1, 11, 13), Y, integers(2, 2, low=0, high=4)),
    case("Gather", (1, 11, 13), Y, ints(0, 4, 1), axis=2, label="axis"),
    case("Gather", (11, 13), Y, ints(-1, 0).astype(np.int32), axis=-2, label="negative"),
    case("Gather", (13,), Y, np.int64(2), const=(1,), axis=1, label="scalar"),
    case("GatherElements", (11, 13), X, integers(2, 3, 4, low=-3, high=3), axis=1),
    case("GatherND", (11, 12, 13), X, ints([0, 1], [1, -1])),
    case("GatherND", (12, 13), X, ints([[1]], [[0]]), batch_dims=1, label="batch"),
    case("Scatter", (9,), X, PLACES, UPDATES, axis=1, expected=lambda *a: scattering.elements(*a, 1)),
    case("ScatterElements", (11, 13, 16, 18), X, PLACES, UPDATES, axis=-2,
         expected=lambda *a: scattering.elements(*a, X.ndim - 2)),
    *(
        case("ScatterElements", (16, 18) if r in ("add", "mul") else (18,), X, PLACES, UPDATES, reduction=r, label=r,
             expected=lambda *a, r=r: scattering.elements(*a, 0, r))
        for r in ("add", "mul", "max", "min")
    ),
    case("ScatterND", (11, 13, 16, 18), X, ints([0, 1], [1, -1]), floats(2, *X.shape[2:], seed=5),
         expected=scattering.nd),
    *(
        case("ScatterND", (16, 18) if r in ("add", "mul") else (18,), X, ints([1], [0], [1]),
             floats(3, *X.shape[1:], seed=5), reduction=r, label=r, expected=lambda *a, r=r: scattering.nd(*a, r))
        for r in ("add", "mul", "max", "min")
    ),
    case("TensorScatter", (24,), floats(2, 3, 6, 4), floats(2, 3, 2, 4, seed=1), ints(1, 4)),
    case("TensorScatter", (24,), floats(2, 6, 4), floats(2, 2, 4, seed=1), ints(1, 5), mode="circular", label="ring"),
    case("TensorScatter", (24,), floats(2, 6, 4), floats(2, 2, 4, seed=1), label="start"),
    case("Col2Im", (18,), floats(1, 20, 12), ints(5, 7), ints(2, 2), const=(1, 2), strides=[1, 2],
         expected=lambda x, *_: windows.added_up(x, (5, 7), (2, 2), (1, 2), (0,) * 4, (1, 1))),
    case("Col2Im", (18,), floats(2, 12, 16), ints(5, 5), ints(2, 3), const=(1, 2), pads=[1, 0, 0, 1], dilations=[2, 1],
         label="pads", expected=lambda x, *_: windows.added_up(x, (5, 5), (2, 3), (1, 1), (1, 0, 0, 1), (2, 1))),
    case("OneHot", (9, 11, 28), integers(2, 3, low=0, high=6), np.int64(5), np.array([0.5, 2], np.float32), const=(1,)),
    case("OneHot", (11, 28), integers(3, low=-4, high=4), np.int64(5), ints(0, 1), const=(1, 2), axis=0, label="axis"),
    case("Trilu", (14,), SQUARE),
    case("NonZero", (9, 13), np.sign(integers(3, 4, low=-1, high=2)).astype(np.float32)),
    case("Unique", (11, 28), integers(5, 6, low=0, high=5), outputs=4),
    case("Unique", (11, 28), np.array([[1, 0], [1, 1], [1, 0], [0, 2]], np.float32), outputs=4, axis=0, label="axis"),
    case("Unique", (11, 28), np.array([5, 3, 5, 1, 3], np.float32), outputs=4, sorted=0, label="as_met"),
    case("Compress", (9, 11, 28), X, np.array([True, False, True]), axis=1, label="axis"),
    case("Compress", (9, 11, 28), X, np.array([False, True, False, False, True])),
    case("Trilu", (14,), SQUARE, np.int64(-1), const=(1,), upper=0, label="lower"),
    case("Shape", (1, 13, 15, 19, 21, 23, 24, 25), X),
    case("Shape", (15, 19, 25), X, start=1, end=-1, label="part"),
    case("Size", (1, 13, 19, 21, 23, 24, 25), X),
    case("Constant", (1, 9, 11, 12, 13, 19, 21, 23, 24, 25), value=tensor(1, 2, 3)),
    case("Constant", (12, 13, 25), value_float=1.5, label="float"),
    case("Constant", (12, 13, 25), value_floats=[1.5, 2.0], label="floats"),
    case("Constant", (12, 13, 25), value_int=3, label="int"),
    case("Constant", (12, 13, 25), value_ints=[3, 4], label="ints"),
    case("ConstantOfShape", (9, 20, 21, 23, 24, 25), ints(2, 3), const=(0,)),
    case("ConstantOfShape", (9, 20, 25), ints(2, 3), const=(0,), value=tensor(7, kind=np.int64), label="value"),
    case("ConstantOfShape", (9, 25), ints(300, 300), const=(0,), value=tensor(0.5), label="large"),
    case("Range", (11, 27), np.int64(2), np.int64(9), np.int64(3), const=(0, 1, 2)),
    case("Range", (11, 27), np.float32(4), np.float32(1), np.float32(-0.5), const=(0, 1, 2), label="float"),
    case("EyeLike", (9, 22), floats(3, 4)),
    case("EyeLike", (9, 22), floats(3, 4), k=1, dtype=TensorProto.INT32, label="attributes"),
]  # fmt: skip


@each_version(CASES)
def test_an_operator_gives_what_the_reference_gives(case, version):
    check(case, version)
