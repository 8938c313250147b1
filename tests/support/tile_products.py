"""Products of words of bytes that are to be summed in tiles."""

import loopwright as lw
from loopwright import te
from loopwright.ir.tiles import TileBlock


def product(rows=18, columns=32, words=6, signed=False, block=None, step=2):
    """Sums of products of words by rows of A and by columns of B, in tiles, and twice the sums."""
    block = TileBlock(rows, columns, step) if block is None else block
    A = te.placeholder((rows, words), "int32", "A")
    B = te.placeholder((words, columns), "int32", "B")
    k = te.reduce_axis((0, words), name="k")
    pair = (lambda i, j: te.dot4(B[k, j], A[i, k])) if signed else (lambda i, j: te.dot4(A[i, k], B[k, j]))
    C = te.compute((rows, columns), lambda i, j: te.sum(pair(i, j), axis=k), name="C")
    D = te.compute(C.shape, lambda i, j: C[i, j] * 2, name="D")
    s = lw.create_schedule(D)
    held = s.cache_write(C, "tile")
    i, j, k = s[held].loops
    outer, inner = s[held].split(k, factor=step)
    s[held].reorder(outer, i, j, inner)
    return s, [A, B, D], C, held, i, block
