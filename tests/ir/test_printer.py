"""The text of programs: close to Python, names unique, parentheses only where they are needed."""

from __future__ import annotations

import itertools
import math

import pytest

from loopwright.base.dtype import FLOAT32, INT32
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import TRUE, ZERO, const
from loopwright.ir.expr import (
    Axis,
    Binary,
    Broadcast,
    Cast,
    Combiner,
    Expr,
    IfThenElse,
    Let,
    Load,
    Logical,
    Ramp,
    Reduce,
    Select,
    Unary,
    Var,
)
from loopwright.ir.intrinsics import call
from loopwright.ir.makers import maximum
from loopwright.ir.printer import func_text, stmt_text
from loopwright.ir.stmt import (
    Allocate,
    Assert,
    Evaluate,
    For,
    If,
    IRModule,
    Launch,
    LetStmt,
    PrimFunc,
    Seq,
    Store,
    While,
    seq,
)

x, y, z = (Var(name, INT32) for name in "xyz")
p, q = (Var(name, TRUE.dtype) for name in "pq")
f = Var("f", FLOAT32)

TEXTS = {
    "x + y * z": x + y * z,
    "(x + y) * z": (x + y) * z,
    "x - (y - z)": x - (y - z),
    "x - y - z": x - y - z,
    "x // (y // z)": x // (y // z),
    "-x * y": -x * y,
    "-(x * y)": -(x * y),
    "~x & y | z": (~x & y) | z,
    "x & (y | z)": x & (y | z),
    "x << y + z": x << (y + z),
    "(x << y) + z": (x << y) + z,
    "p and not q": p & ~q,
    "not (p and q)": ~(p & q),
    "(p or q) and p": Logical("and", p | q, p),
    "x < y and y < z": (x < y) & (y < z),
    "(x < y) == p": (x < y) == p,
    "max(x, y + z)": maximum(x, y + z),
    "float32(x + y)": Cast(FLOAT32, x + y),
    "select(p, x, y)": Select(p, x, y),
    "if_then_else(p, x, y)": IfThenElse(p, x, y),
    "(let x = y in x + 1)": Let(x, y, Binary("+", x, const(1, "int32"))),
    "exp(f)": call("exp", f),
    "pow(f, 2.0)": call("pow", f, 2.0),
    "ramp(0, 1, 8)": Ramp(ZERO, const(1, "index"), 8),
    "broadcast(x, 4)": Broadcast(x, 4),
    "0.1": const(0.1, "float32"),
    "-0.0": const(-0.0, "float32"),
    "1e+30": const(1e30, "float32"),
    "nan": const(math.nan, "float32"),
    "-inf": const(-math.inf, "float32"),
    "3.0": const(3, "float32"),
    "float64(0.1)": const(0.1, "float64"),
    "float16(0.1)": const(0.1, "float16"),
    "bfloat16(1.5)": const(1.5, "bfloat16"),
    "int8(-3)": const(-3, "int8"),
    "True": TRUE,
    "-7": const(-7, "index"),
}
TEXTS["(let x = y in x + int32(1))"] = TEXTS.pop("(let x = y in x + 1)")


@pytest.mark.parametrize("text", TEXTS)
def test_expressions(text):
    assert str(TEXTS[text]) == text


OPS = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>")


@pytest.mark.parametrize("ops", list(itertools.product(OPS, repeat=2)), ids=" ".join)
def test_parentheses_are_those_that_python_needs(ops):
    outer, inner = ops
    for expression, nested in (
        (Binary(outer, Binary(inner, x, y), z), f"(x {inner} y) {outer} z"),
        (Binary(outer, x, Binary(inner, y, z)), f"x {outer} (y {inner} z)"),
    ):
        environment = {"x": 37, "y": 13, "z": 3}
        assert eval(str(expression), environment) == eval(nested, environment)  # the text means what the tree means


def test_names_are_unique_in_order_of_appearance():
    first, second, third = index_var("i"), index_var("i"), index_var("i_1")
    assert str(first + third + second + first) == "i + i_1 + i_2 + i"


EVERY_STATEMENT = """
def f(A: float32[4, n], m: index):
    for i in parallel(4):
        for j in range(i, i + 2):
            A[i, j] = 0.0
    T: float32[4] = allocate('local')
    while T[0] < 1.0:
        if True:
            T[0] = 0.0
        else:
            f = 0.0
            T[0] = f
    assert True, 'ok'
    0
    launch(task, 4, [A])
    if True:
        pass
    T[ramp(0, 1, 4) where broadcast(True, 4)] = broadcast(0.0, 4)
"""


def test_every_statement():
    A, T = make_buffer("A", (4, index_var("n")), "float32"), make_buffer("T", (4,), "float32", "local")
    i, j = index_var("i"), index_var("j")
    zero = const(0.0, "float32")
    body = seq(
        For(i, ZERO, const(4, "index"), "parallel", For(j, i, const(2, "index"), "serial", Store(A, (i, j), zero))),
        Allocate(
            T, While(Load(T, (ZERO,)) < 1.0, If(TRUE, Store(T, (ZERO,), zero), LetStmt(f, zero, Store(T, (ZERO,), f))))
        ),
        Assert(TRUE, "ok"),
        Evaluate(ZERO),
        Launch("task", const(4, "index"), (A,)),
        If(TRUE, Seq(())),
        Store(T, (Ramp(ZERO, const(1, "index"), 4),), Broadcast(zero, 4), Broadcast(TRUE, 4)),
    )
    assert func_text(PrimFunc("f", (A, index_var("m")), body)) == EVERY_STATEMENT.strip()


def test_layouts_show_in_declarations():
    n = index_var("n")
    A = make_buffer("A", (n, 4), "int8", strides=(n * 2, 1), elem_offset=3)
    assert str(PrimFunc("f", (A,), Evaluate(n))).startswith("def f(A: int8[n, 4, strides=(n * 2, 1), offset=3]):\n")


def test_modules_print_function_by_function():
    func = PrimFunc("f", (), Evaluate(ZERO))
    assert str(IRModule((func, func))) == "def f():\n    0\n\ndef f():\n    0"


def test_reductions():
    lhs, rhs, r = Var("l", FLOAT32), Var("r", FLOAT32), index_var("r")
    combiner = Combiner("sum", (lhs,), (rhs,), (lhs + rhs,), (const(0, "float32"),))
    axis = Axis(r, ZERO, const(8, "index"), "reduce")
    value = Reduce(combiner, (Cast(FLOAT32, r),), (axis,), r > 2, 0)
    assert str(value) == "sum(float32(r), axis=[r], where=r > 2)"
    assert str(axis) == "r"


def test_a_marker_notes_statements():
    culprit = Evaluate(const(1, "index"))
    text = stmt_text(Seq((Evaluate(ZERO), culprit)), lambda s: "# here" if s is culprit else None)
    assert text == "0\n1  # here"


def test_deep_expressions_print_in_full():
    deep: Expr = x
    for _ in range(5_000):
        deep = deep + y
    text = str(deep)
    assert text.count(" + y") == 5_000
    assert text.startswith("x + y + y")


def test_expressions_that_share_without_end_are_cut_short():
    shared: Expr = x
    for _ in range(300):
        shared = shared + shared
    text = str(shared)
    assert "…" in text
    assert len(text) < 1_000_000
    assert str(shared + y)  # a message that quotes it does not hang either
    assert str(Unary("-", x)) == "-x"
