"""Helpers of the pass tests: loops in one line, and "the program still means the same" by the interpreter."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from loopwright.ir.build import index_var
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Const, Var
from loopwright.ir.interpret import interpret
from loopwright.ir.makers import as_index
from loopwright.ir.stmt import For, IRModule, PrimFunc
from loopwright.ir.verify import verify
from loopwright.ir.visit import walk


def loop(name, extent, body: Callable, kind="serial", low=0):
    """``loop("i", n, lambda i: statement)``."""
    var = index_var(name)
    return For(var, as_index(low), as_index(extent), kind, body(var))


def kernel(params, body, name="kernel"):
    """A function whose last parameter is its output."""
    return PrimFunc(name, tuple(params), body, (params[-1],))


def dims_of(func):
    """The symbolic dimensions of a function by name."""
    return {v.name: v for b in func.buffers for e in b.shape for v in walk(e) if isinstance(v, Var)}


def arrays_for(func, sizes, seed):
    from loopwright.ir.simplify import simplify

    rng = np.random.default_rng(seed)
    values = {var: as_index(sizes[name]) for name, var in dims_of(func).items()}
    made = []
    for buffer in func.buffers:
        shape = [simplify(substitute(extent, values)) for extent in buffer.shape]
        assert all(isinstance(extent, Const) for extent in shape)
        data = rng.integers(-9, 10, [int(extent) for extent in shape])
        made.append(data.astype(buffer.dtype.to_numpy()))
    return made


def assert_same(before, after, seed=0, **sizes):
    """Both programs are legal, and give the same bits on random data."""
    verify(before)
    verify(after)
    entry = before.entry if isinstance(before, IRModule) else before
    expected, found = arrays_for(entry, sizes, seed), arrays_for(entry, sizes, seed)
    interpret(before)(*expected)
    interpret(after)(*found)
    for buffer, a, b in zip(entry.buffers, expected, found, strict=True):
        np.testing.assert_array_equal(b, a, err_msg=f"{buffer.name} after the pass, sizes {sizes}\n{before}\n{after}")


@pytest.fixture(scope="session")
def nest():
    """``nest.loop``, ``nest.kernel``, ``nest.same``: see above; ``nest.count(program, class)`` counts nodes."""

    def count(program, node_class, **fields):
        root = program.body if isinstance(program, PrimFunc) else program
        return sum(
            isinstance(node, node_class) and all(getattr(node, k) == v for k, v in fields.items())
            for node in walk(root)
        )

    return SimpleNamespace(loop=loop, kernel=kernel, same=assert_same, count=count)
