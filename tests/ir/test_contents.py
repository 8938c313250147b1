"""What is in expressions and statements, found by what expressions remember, and by a walk over all nodes."""

import gc
import weakref

import pytest

from loopwright.base.dtype import FLOAT32, INT32
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ONE, ZERO, const
from loopwright.ir.contents import (
    accesses_in,
    bindings_in,
    bindings_of,
    bound_vars,
    chooses,
    divides,
    divisions_of,
    expressions_of,
    free_vars,
    loads_of,
    nodes_of,
    reads_memory,
    reads_tensors,
    statements_of,
    variables_of,
)
from loopwright.ir.expr import Axis, Binary, Call, Combiner, Expr, IfThenElse, Let, Load, Reduce, Select, Var
from loopwright.ir.stmt import Allocate, Evaluate, For, If, StmtNode, Store, seq
from loopwright.ir.visit import walk

x, y, z = (Var(name, INT32) for name in "xyz")
i, j, n = (index_var(name) for name in "ijn")
A, B = make_buffer("A", (4,), "int32"), make_buffer("B", (4,), "int32")
C = make_buffer("C", (4,), "index")
LOOP = For(i, ZERO, n, "serial", Store(B, (i,), Load(A, (i + j,)) + x))


def deep(depth: int, start: Expr = x) -> Expr:
    for _ in range(depth):
        start = start + y
    return start


def test_free_variables_are_those_not_bound_inside():
    assert [v.name for v in free_vars(LOOP)] == ["n", "j", "x"]
    assert [v.name for v in free_vars(Let(x, y, Binary("+", x, z)))] == ["y", "z"]
    lhs, rhs = Var("l", FLOAT32), Var("r", FLOAT32)
    combiner = Combiner("sum", (lhs,), (rhs,), (lhs + rhs,), (const(0, "float32"),))
    axis = Axis(j, ZERO, n, "reduce")
    reduction = Reduce(combiner, (Load(make_buffer("F", (4,), "float32"), (i + j,)),), (axis,), None, 0)
    assert [v.name for v in free_vars(reduction)] == ["i", "n"]
    assert bound_vars(reduction) == (j,)


def test_whether_an_expression_loads_is_known_at_any_depth():
    memory = make_buffer("M", (n,), "int32")
    load = Load(memory, (i,))
    assert reads_memory(deep(5_000, load))
    assert reads_memory(load)
    assert not reads_memory(deep(5_000))
    assert not reads_memory(x)


def test_whether_an_expression_chooses_is_known_at_any_depth():
    choice = Select(i < 3, x, y)
    assert chooses(deep(5_000, choice))
    assert chooses(IfThenElse(i < 3, x, y))
    assert not chooses(deep(5_000))
    assert not chooses(i < 3)


def sums():
    lhs, rhs = Var("l", FLOAT32), Var("r", FLOAT32)
    combiner = Combiner("sum", (lhs,), (rhs,), (lhs + rhs,), (const(0, "float32"),))
    source = Load(make_buffer("F", (4,), "float32"), (i + j,))
    return Reduce(combiner, (source,), (Axis(j, ZERO, n, "reduce"),), None, 0)


EXPRESSIONS = {
    "variable": x,
    "constant": const(3, "int32"),
    "sum": x + y * x,
    "load": Load(A, ((i + Load(C, (i // 2,))) % n + j,), i < 3),
    "choice": Select(i < j, Load(A, (i % 3,)), x),
    "let": Let(x, Load(A, (i,)), Binary("+", x, Load(A, (i,)))),
    "call": Call("exp", (Call("sqrt", (const(2, "float32"),), FLOAT32),), FLOAT32),
    "reduction": sums(),
    "deep": deep(3_000, Load(A, (i,))),
}


def are_same(found, expected):
    return [id(node) for node in found] == [id(node) for node in expected]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_is_remembered_is_what_a_walk_finds(name):
    e = EXPRESSIONS[name]
    nodes = list(walk(e))
    assert are_same(variables_of(e), [node for node in nodes if isinstance(node, Var)])
    for kind in (Load, IfThenElse, Select, Let, Reduce, Call):
        assert are_same(nodes_of(e, kind), [node for node in nodes if type(node) is kind])
    divisions = [node for node in nodes if isinstance(node, Binary) and node.op in ("//", "%")]
    assert are_same(divisions_of(e), divisions)
    assert divides(e) == bool(divisions)
    assert are_same(loads_of(e), nodes_of(e, Load))
    assert reads_memory(e) == bool(loads_of(e))
    assert not reads_tensors(e)
    assert are_same(bindings_of(e), [var for node in nodes for var in bound_vars(node)])


def test_statements_and_accesses_are_in_order_of_appearance():
    T = make_buffer("T", (4,), "int32", "local")
    choice = If(i < n, Store(T, (ZERO,), Let(z, x, z + y)), Evaluate(Load(T, (ONE,))))
    body = Allocate(T, seq(LOOP, choice, LOOP))
    assert are_same(statements_of(body), [node for node in walk(body) if isinstance(node, StmtNode)])
    accesses = [(type(access), access.buffer.name) for access in accesses_in(body)]
    assert accesses == [(Store, "B"), (Load, "A"), (Store, "T"), (Load, "T")]
    assert bindings_in(body) == {i, z}
    assert [str(e) for e in expressions_of(LOOP)] == ["i", "0", "n"]


def test_a_variable_is_not_kept_alive_by_what_is_remembered():
    local = Var("local", INT32)
    gone = weakref.ref(local)
    gc.disable()
    try:
        assert len(variables_of(local + local * 3)) == 1
        assert are_same(variables_of(local), [local])
        del local
        assert gone() is None
    finally:
        gc.enable()
