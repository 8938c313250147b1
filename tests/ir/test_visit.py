"""Traversal and rewriting: identity where nothing changes, each shared node once, any depth."""

from __future__ import annotations

from loopwright.base.dtype import INT32
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ONE, ZERO, const
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Binary, Const, Expr, Load, Var
from loopwright.ir.stmt import Allocate, Evaluate, For, Launch, PrimFunc, Seq, Store, seq
from loopwright.ir.visit import buffers_accessed, children, rewrite, walk, with_body

x, y, z = (Var(name, INT32) for name in "xyz")
i, j, n = (index_var(name) for name in "ijn")
A, B = make_buffer("A", (4,), "int32"), make_buffer("B", (4,), "int32")
LOOP = For(i, ZERO, n, "serial", Store(B, (i,), Load(A, (i + j,)) + x))


def deep(depth: int, start: Expr = x) -> Expr:
    for _ in range(depth):
        start = start + y
    return start


def test_children_are_in_order_of_evaluation():
    assert all(a is b for a, b in zip(children(x + y), (x, y), strict=True))
    load = Load(A, (i,), i < 3)
    assert [str(c) for c in children(load)] == ["i", "i < 3"]
    assert [str(c) for c in children(Store(A, (i,), x))] == ["i", "x"]


def test_walk_visits_parents_first_and_shared_nodes_once():
    shared = x + y
    assert [str(node) for node in walk(shared * shared)] == ["(x + y) * (x + y)", "x + y", "x", "y"]


def test_a_rewrite_that_changes_nothing_gives_the_same_object():
    assert rewrite(LOOP, lambda node: None) is LOOP
    assert substitute(LOOP, {z: x}) is LOOP
    assert substitute(LOOP, {}) is LOOP


def test_a_rewrite_changes_only_what_it_must():
    first, second = Store(A, (ZERO,), x), Store(B, (ZERO,), y)
    changed = rewrite(seq(first, second), lambda node: z if node is x else None)
    assert isinstance(changed, Seq)
    assert changed.stmts[1] is second
    assert str(changed.stmts[0]) == "A[0] = z"


def test_a_rewrite_sees_each_node_once_with_its_children_rewritten():
    seen: list[str] = []

    def fold(node):
        seen.append(str(node))
        match node:
            case Binary("+", Const(value=a), Const(value=b)):
                return const(a + b, "int32")
        return None

    one, two = const(1, "int32"), const(2, "int32")
    total = Binary("+", Binary("+", one, two), Binary("+", one, two))
    assert rewrite(total, fold) is const(6, "int32")
    assert len(seen) == 4  # 1, 2, 1 + 2, 3 + 3


def test_substitute_replaces_variables_in_statements():
    assert str(substitute(LOOP, {j: i * 2, x: const(7, "int32")})) == (
        "for i in range(n):\n    B[i] = A[i + i * 2] + int32(7)"
    )


def test_deep_expressions_are_walked_and_rewritten():
    assert sum(1 for _ in walk(deep(5_000))) == 5_002
    assert substitute(deep(5_000), {x: z}) is deep(5_000, z)


def test_shared_expressions_are_rewritten_in_linear_time():
    def double(start: Expr) -> Expr:
        for _ in range(200):
            start = start + start
        return start

    assert substitute(double(x), {x: y}) is double(y)


def test_buffers_accessed_are_in_order_of_appearance():
    T = make_buffer("T", (4,), "int32", "local")
    body = Allocate(T, seq(LOOP, Evaluate(Load(T, (ZERO,))), Launch("task", ONE, (A, n))))
    assert [b.name for b in buffers_accessed(body)] == ["B", "A", "T"]


def test_with_body_keeps_the_function_if_the_body_is_the_same():
    func = PrimFunc("f", (A, B), LOOP, (B,))
    assert with_body(func, LOOP) is func
    other = with_body(func, Seq(()))
    assert (other.name, other.params, other.outputs) == (func.name, func.params, func.outputs)
