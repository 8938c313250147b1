"""What only moves the elements of a random graph."""

import numpy as np
from graph_values import same_but, same_type

import loopwright as lw
from loopwright.ir.constants import const_int

nn = lw.nn


class Movements:
    """Forms of a builder of graphs, which has ``pool``, ``made``, ``constant``, ``rng`` and ``most``; each adds a node
    of the values ``x`` and ``y``, as the number ``c`` says, where these can have one."""

    def _transpose(self, x, y, c):
        order = tuple(np.random.default_rng(c).permutation(len(x.shape)).tolist())
        self.made(nn.transpose(x.node, order), lambda v: np.transpose(v, order), x, exact=True)

    def _reshape(self, x, y, c):
        if len(x.shape) < 2:
            return
        at = c % (len(x.shape) - 1)
        shape = (*(0,) * at, -1, *(const_int(e) or 0 for e in x.node.type.shape[at + 2 :]))
        if 0 in shape[at + 1 :] and any(const_int(e) is None for e in x.node.type.shape[at + 2 :]):
            return
        result = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
        self.made(nn.reshape(x.node, shape), lambda v: v.reshape(result), x, exact=True)

    def _concat(self, x, y, c):
        if not x.shape:
            return
        axis = c % len(x.shape)
        parts = [v for v in self.pool if len(v.shape) == len(x.shape)]
        parts = [v for v in parts if same_but(v, x, axis)][-1 - c // 4 % 3 :]
        self.made(nn.concatenate([v.node for v in parts], axis), lambda *v: np.concatenate(v, axis), *parts, exact=True)

    def _split(self, x, y, c):
        if not x.shape or const_int(x.node.type.shape[c % len(x.shape)]) is None or x.shape[c % len(x.shape)] < 2:
            return
        axis, first = c % len(x.shape), 1 + c // 4 % (x.shape[c % len(x.shape)] - 1)
        parts = nn.split(x.node, (first, x.shape[axis] - first), axis)
        for part, where in zip(parts, (slice(first), slice(first, None)), strict=True):
            index = (slice(None),) * axis + (where,)
            self.made(part, lambda v, index=index: v[index], x, exact=True)

    def _slice(self, x, y, c):
        if x.shape and x.shape[axis := c % len(x.shape)] > 2 and const_int(x.node.type.shape[axis]) is not None:
            begin, step = c // 4 % 2, 1 + c // 8 % 2
            index = (slice(None),) * axis + (slice(begin, None, step),)
            node = nn.strided_slice(x.node, [begin], [x.shape[axis]], [axis], [step])
            self.made(node, lambda v: v[index], x, exact=True)

    def _pad(self, x, y, c):
        before, after = (tuple(c // k % 2 for _ in x.shape) for k in (1, 2))
        if x.shape:
            pads = list(zip(before, after, strict=True))
            self.made(
                nn.pad(x.node, before, after, value=1.0), lambda v: np.pad(v, pads, constant_values=1.0), x, exact=True
            )

    def _expand(self, x, y, c):
        if len(x.shape) < 4:
            at = c % (len(x.shape) + 1)
            self.made(nn.expand_dims(x.node, at), lambda v: np.expand_dims(v, at), x, exact=True)

    def _take(self, x, y, c):
        if x.shape and x.shape[0] > 1 and const_int(x.node.type.shape[0]) is not None:
            places = self.rng.integers(0, x.shape[0], 1 + c % 5)
            self.made(nn.take(x.node, lw.const(places), 0), lambda v: v[places], x, exact=True)

    def _flip(self, x, y, c):
        if x.shape and const_int(x.node.type.shape[axis := c % len(x.shape)]) is not None:
            node = nn.strided_slice(x.node, [x.shape[axis] - 1], [-x.shape[axis] - 1], [axis], [-1])
            self.made(node, lambda v: np.flip(v, axis), x, exact=True)

    def _roll(self, x, y, c):
        """The last elements of an axis before the others."""
        if x.shape and const_int(x.node.type.shape[axis := c % len(x.shape)]) is not None and x.shape[axis] > 1:
            first = 1 + c // 4 % (x.shape[axis] - 1)
            parts = nn.split(x.node, (first, x.shape[axis] - first), axis)
            node = nn.concatenate([parts[1], parts[0]], axis)
            self.made(node, lambda v: np.roll(v, -first, axis), x, exact=True)

    def _tile(self, x, y, c):
        if x.shape:
            axis, times = c % len(x.shape), 2 + c // 4 % 3
            counts = tuple(times if k == axis else 1 for k in range(len(x.shape)))
            self.made(nn.tile(x.node, counts), lambda v: np.tile(v, counts), x, exact=True)

    def _stack(self, x, y, c):
        """Some tensors of one type along a new axis."""
        if len(x.shape) < 4:
            axis, parts = c % (len(x.shape) + 1), [x, *(v for v in self.pool if same_type(v, x))][: 2 + c // 5 % 3]
            node = nn.concatenate([nn.expand_dims(v.node, axis) for v in parts], axis)
            self.made(node, lambda *v: np.stack(v, axis), *parts, exact=True)

    def _pieces(self, x, y, c):
        """Many short constants beside a tensor."""
        if x.shape and all(const_int(extent) is not None for extent in x.node.type.shape):
            axis, count, width = c % len(x.shape), (5, 9, 20)[c // 4 % 3], (1, 2, 3, 8)[c // 12 % 4]
            shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
            if np.prod(shape, dtype=int) * count <= self.most:
                parts = [x, *(self.constant(shape) for _ in range(count))]
                node = nn.concatenate([v.node for v in parts], axis)
                self.made(node, lambda *v: np.concatenate(v, axis), *parts, exact=True)

    def _apart(self, x, y, c):
        """An axis as two."""
        if x.shape and len(x.shape) < 5 and const_int(x.node.type.shape[axis := c % len(x.shape)]) is not None:
            parts = [k for k in range(2, x.shape[axis]) if x.shape[axis] % k == 0]
            if parts and all(const_int(extent) is not None for extent in x.node.type.shape):
                inner = parts[c // 4 % len(parts)]
                shape = (*x.shape[:axis], x.shape[axis] // inner, inner, *x.shape[axis + 1 :])
                self.made(nn.reshape(x.node, shape), lambda v: v.reshape(shape), x, exact=True)
