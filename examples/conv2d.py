"""A direct 2-D convolution with padding (NCHW, 3×3): the border is guarded, and split off from the interior."""

import numpy as np

import loopwright as lw
from loopwright import te

channels, filters, height, width, size, pad = 16, 32, 28, 28, 3, 1

X = te.placeholder((channels, height, width), "float32", name="X")
W = te.placeholder((filters, channels, size, size), "float32", name="W")
Padded = te.compute(
    (channels, height + 2 * pad, width + 2 * pad),
    lambda c, y, x: te.if_then_else(
        te.all(y >= pad, y < height + pad, x >= pad, x < width + pad), X[c, y - pad, x - pad], 0.0
    ),
    name="padded",
)
c = te.reduce_axis((0, channels), name="c")
dy = te.reduce_axis((0, size), name="dy")
dx = te.reduce_axis((0, size), name="dx")
Y = te.compute(
    (filters, height, width),
    lambda f, y, x: te.sum(Padded[c, y + dy, x + dx] * W[f, c, dy, dx], axis=[c, dy, dx]),
    name="Y",
)

s = lw.create_schedule(Y)
f, y, x = s[Y].op.axis
f_outer, f_inner = s[Y].split(f, factor=4)
x_outer, x_inner = s[Y].split(x, factor=14)
s[Y].reorder(f_outer, y, x_outer, c, dy, dx, f_inner, x_inner)
s[Y].vectorize(x_inner)
s[Y].unroll(f_inner)
s[Y].parallel(f_outer)
print(s)

kernel = lw.build(s, [X, W, Y], name="conv2d")
rng = np.random.default_rng(0)
x_data = rng.standard_normal((channels, height, width), dtype=np.float32)
w_data = rng.standard_normal((filters, channels, size, size), dtype=np.float32)
y_data = np.empty((filters, height, width), np.float32)
kernel(x_data, w_data, y_data)

windows = np.lib.stride_tricks.sliding_window_view(
    np.pad(x_data, ((0, 0), (pad, pad), (pad, pad))), (size, size), (1, 2)
)
np.testing.assert_allclose(y_data, np.einsum("cyxij,fcij->fyx", windows, w_data), rtol=1e-4, atol=1e-4)
flops = 2 * filters * height * width * channels * size * size
timing = kernel.time(x_data, w_data, y_data)
print(f"\nagrees with numpy; {flops / timing.median / 1e9:.1f} GFLOP/s")
