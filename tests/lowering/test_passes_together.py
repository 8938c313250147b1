"""All passes in the order of the pipeline: the result means what the loop nest said."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import IfThenElse, Load
from loopwright.ir.simplify import simplify_func
from loopwright.ir.stmt import Allocate, For, If, Store, seq
from loopwright.lowering.passes.flatten_buffers import flatten_buffers
from loopwright.lowering.passes.loop_partition import loop_partition
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.lowering.passes.promote_registers import promote_registers
from loopwright.lowering.passes.storage_rewrite import storage_rewrite
from loopwright.lowering.passes.unroll import unroll
from loopwright.lowering.passes.vectorize import vectorize

PASSES = [
    flatten_buffers,
    simplify_func,
    loop_partition,
    vectorize,
    unroll,
    simplify_func,
    promote_registers,
    storage_rewrite,
    simplify_func,
    outline_parallel,
]


def check(nest, func, **sizes):
    done = func
    for step in PASSES:
        done = step(done)
        nest.same(func, done, **sizes)
    return done


def up(a, b):
    return (a + b - 1) // b


def guarded_gemm(nest, n, m, k, tile, kinds):
    """C = A B in tiles with guards, B packed into a temporary for each tile."""
    rows, width, depth = tile
    A, B, C = make_buffer("A", (n, k), "int32"), make_buffer("B", (k, m), "int32"), make_buffer("C", (n, m), "int32")

    def nest2(body):
        return nest.loop("ii", rows, lambda ii: nest.loop("ji", width, lambda ji: body(ii, ji), kinds[2]), kinds[1])

    def block(io, jo):
        packed = make_buffer("packed", (up(k, depth) * depth, width), "int32", scope="local")

        def pack(kk):
            def item(ji):
                inside = (jo * width + ji < m) & (kk < k)
                return Store(packed, (kk, ji), IfThenElse(inside, Load(B, (kk, jo * width + ji)), const(0, "int32")))

            return nest.loop("ji", width, item, kinds[2])

        def guard(ii, ji, value):
            at = (io * rows + ii, jo * width + ji)
            return If((at[0] < n) & (at[1] < m), Store(C, at, value(at)))

        def update(ko, ki):
            kk = ko * depth + ki

            def item(ii, ji):
                product = lambda at: Load(C, at) + Load(A, (at[0], kk)) * Load(packed, (kk, ji))  # noqa: E731
                return If(kk < k, guard(ii, ji, product))

            return nest2(item)

        init = nest2(lambda ii, ji: guard(ii, ji, lambda _: const(0, "int32")))
        fill = nest.loop("kk", up(k, depth) * depth, pack)
        reduce = nest.loop("ko", up(k, depth), lambda ko: nest.loop("ki", depth, lambda ki: update(ko, ki)))
        return Allocate(packed, seq(fill, init, reduce))

    body = nest.loop("io", up(n, rows), lambda io: nest.loop("jo", up(m, width), lambda jo: block(io, jo)), kinds[0])
    return nest.kernel((A, B, C), body)


KINDS = ("parallel", "unrolled", "vectorized")


@pytest.mark.parametrize("size", [(4, 8, 6), (5, 9, 7), (1, 1, 1), (3, 0, 2), (2, 4, 0)])
def test_gemm(nest, size):
    module = check(nest, guarded_gemm(nest, *size, (2, 4, 2), KINDS))
    assert all(nest.count(f, For, kind=kind) == 0 for f in module.functions for kind in KINDS)


@pytest.mark.parametrize("size", [(4, 8, 6), (5, 9, 7), (1, 3, 1), (0, 2, 2), (2, 4, 0)])
def test_gemm_of_symbolic_size(nest, size):
    func = guarded_gemm(nest, index_var("n"), index_var("m"), index_var("k"), (2, 4, 2), KINDS)
    check(nest, func, **dict(zip("nmk", size, strict=True)))


@settings(max_examples=15)
@given(
    size=st.tuples(*[st.integers(0, 7)] * 3),
    tile=st.tuples(st.integers(1, 3), st.integers(2, 5), st.integers(1, 3)),
    kinds=st.tuples(
        st.sampled_from(["serial", "parallel"]),
        st.sampled_from(["serial", "unrolled"]),
        st.sampled_from(["serial", "unrolled", "vectorized"]),
    ),
)
def test_random_gemms(nest, size, tile, kinds):
    check(nest, guarded_gemm(nest, *size, tile, kinds))
