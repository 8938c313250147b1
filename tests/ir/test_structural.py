"""Equality and hashes up to bound names."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Axis, Combiner, Const, Expr, Let, Load, Reduce, Var
from loopwright.ir.makers import cast, maximum
from loopwright.ir.stmt import Allocate, Assert, For, IRModule, PrimFunc, Stmt, Store, seq
from loopwright.ir.structural import structural_equal, structural_hash

INDEX_ZERO = const(0, "index")


def loop(name: str, extent: int, body, kind="serial") -> For:
    i = index_var(name)
    return For(i, INDEX_ZERO, const(extent, "index"), kind, body(i))


def copy_function(
    prefix: str = "", *, extent: int = 8, kind: str = "serial", dtype: str = "float32", swapped: bool = False
) -> PrimFunc:
    n = index_var(prefix + "n")
    source, target = make_buffer(prefix + "A", (n, extent), dtype), make_buffer(prefix + "B", (n, extent), dtype)
    local = make_buffer(prefix + "T", (extent,), dtype, "local")
    i, j, k = (index_var(prefix + name) for name in "ijk")
    first, second = (source, target) if not swapped else (target, source)
    body: Stmt = For(
        i,
        INDEX_ZERO,
        n,
        kind,
        Allocate(
            local,
            seq(
                For(j, INDEX_ZERO, const(extent, "index"), "serial", Store(local, (j,), Load(first, (i, j)))),
                For(k, INDEX_ZERO, const(extent, "index"), "serial", Store(second, (i, k), Load(local, (k,)))),
            ),
        ),
    )
    return PrimFunc("copy", (source, target), body, (second,))


def test_renamed_functions_are_equal_and_hash_alike():
    assert structural_equal(copy_function(), copy_function("renamed_"))
    assert structural_hash(copy_function()) == structural_hash(copy_function("renamed_"))


@pytest.mark.parametrize(
    "change", [{"extent": 9}, {"kind": "parallel"}, {"dtype": "int32"}, {"swapped": True}], ids=lambda c: next(iter(c))
)
def test_any_change_is_noticed(change):
    assert not structural_equal(copy_function(), copy_function(**change))
    assert structural_hash(copy_function()) != structural_hash(copy_function(**change))


def test_modules_compare_function_by_function():
    pair = IRModule((copy_function(), copy_function(extent=9)))
    assert structural_equal(pair, IRModule((copy_function("x"), copy_function("y", extent=9))))
    assert not structural_equal(pair, IRModule((copy_function(extent=9), copy_function())))
    assert structural_hash(pair) == structural_hash(IRModule((copy_function("x"), copy_function("y", extent=9))))


def test_functions_that_share_variables_equal_functions_that_do_not():
    shared = copy_function()
    assert structural_equal(IRModule((shared, shared)), IRModule((copy_function(), copy_function())))


def test_free_variables_compare_by_identity_but_hash_by_position():
    x, y = index_var("x"), index_var("y")
    assert structural_equal(x + y, x + y)
    assert not structural_equal(x + y, x + x)
    assert not structural_equal(x + 1, y + 1)
    assert structural_hash(x + 1) == structural_hash(y + 1)
    assert structural_hash(x + y) != structural_hash(x + x)
    assert structural_hash(x + y) == structural_hash(y + x)
    assert structural_hash(Var("x", const(0, "int32").dtype)) != structural_hash(x)


def test_a_bound_variable_is_not_a_free_one():
    x, y, z = index_var("x"), index_var("y"), index_var("z")
    assert structural_equal(Let(x, z, x + z), Let(y, z, y + z))
    assert not structural_equal(Let(x, z, x + z), Let(y, z, z + z))
    assert not structural_equal(Let(x, z, x), x)


def test_constants_compare_by_dtype_and_bits():
    values = [const(0.0, "float32"), const(-0.0, "float32"), const(0.0, "float64"), const(0, "int32"), const(0, "bool")]
    assert len({structural_hash(v) for v in values}) == len(values)
    assert structural_equal(const(float("nan"), "float32"), const(float("nan"), "float32"))
    assert not structural_equal(values[0], values[1])


def test_views_of_one_memory_differ_from_two_memories():
    def func(shared: bool) -> PrimFunc:
        a = make_buffer("A", (4,), "float32")
        b = make_buffer("B", (4,), "float32", data=a.data if shared else None)
        c = make_buffer("C", (4,), "float32")
        zero = const(0, "float32")
        return PrimFunc("f", (a, c), seq(Store(a, (INDEX_ZERO,), zero), Store(b, (INDEX_ZERO,), zero)), (a,))

    assert structural_equal(func(True), func(True))
    assert not structural_equal(func(True), func(False))


def test_messages_of_asserts_count():
    yes = const(True, "bool")
    assert structural_equal(Assert(yes, "a"), Assert(yes, "a"))
    assert not structural_equal(Assert(yes, "a"), Assert(yes, "b"))


def sum_over(name: str, operation=lambda a, b: a + b) -> Expr:
    lhs, rhs = Var("l", const(0.0, "float32").dtype), Var("r", const(0.0, "float32").dtype)
    combiner = Combiner("sum", (lhs,), (rhs,), (operation(lhs, rhs),), (const(0, "float32"),))
    axis = Axis(index_var(name), INDEX_ZERO, const(8, "index"), "reduce")
    return Reduce(combiner, (cast("float32", axis.var),), (axis,), None, 0)


def test_reductions_compare_by_what_they_combine():
    assert structural_equal(sum_over("r"), sum_over("s"))
    assert structural_hash(sum_over("r")) == structural_hash(sum_over("s"))
    assert not structural_equal(sum_over("r"), sum_over("r", maximum))


def test_it_does_not_matter_whether_two_reductions_share_a_combiner():
    first, other = sum_over("r"), sum_over("s")
    assert isinstance(first, Reduce)
    assert isinstance(other, Reduce)
    sharing = Reduce(first.combiner, other.sources, other.axes, None, 0)
    assert structural_equal(first + sharing, first + other)


def test_shared_and_deep_expressions_take_linear_time():
    x = index_var("x")
    shared: Expr = x
    for _ in range(200):  # 2**200 nodes, written out as a tree
        shared = shared + shared
    deep: Expr = x
    for number in range(5_000):
        deep = deep + (number % 7)
    assert structural_equal(shared, shared + 0 - 0) is False
    assert len(structural_hash(shared)) == len(structural_hash(deep)) == 64


def test_the_hash_is_the_same_in_every_process():
    program = (
        "from loopwright.ir.build import index_var; from loopwright.ir.structural import structural_hash;"
        "x = index_var('x'); print(structural_hash(x * 3 + 4 < x // 2))"
    )
    digests = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    x = index_var("y")
    assert digests == {structural_hash(x * 3 + 4 < x // 2) + "\n"}


def test_const_rows_tell_large_floats_apart():
    assert not structural_equal(const(1e30, "float64"), const(1.0000000000000002e30, "float64"))
    assert isinstance(const(1e30, "float64"), Const)
