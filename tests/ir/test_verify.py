"""Each rule of the verifier, broken once; and a legal program of every kind of statement."""

from __future__ import annotations

import pickle

import pytest

from loopwright.base.dtype import BOOL, FLOAT32, HANDLE, INDEX
from loopwright.base.errors import VerificationError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import TRUE, ZERO, const
from loopwright.ir.expr import (
    Axis,
    Broadcast,
    Call,
    Combiner,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Ramp,
    Reduce,
    TensorBase,
    TensorRead,
    Var,
)
from loopwright.ir.intrinsics import call
from loopwright.ir.makers import cast
from loopwright.ir.stmt import (
    Allocate,
    Assert,
    Evaluate,
    For,
    If,
    IRModule,
    Launch,
    LetStmt,
    PrefetchStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
    seq,
)
from loopwright.ir.verify import verify

A = make_buffer("A", (8,), "float32")
B = make_buffer("B", (8,), "float32")
T = make_buffer("T", (8,), "float32", "local")
i, j, n = index_var("i"), index_var("j"), index_var("n")
HALF = const(0.5, "float32")
EIGHT = const(8, "index")
INT = const(1, "int32")


def func(body: Stmt, params=(A, B), outputs=(B,), name="f") -> PrimFunc:
    return PrimFunc(name, params, body, outputs)


def store(index: Expr = ZERO, value: Expr = HALF, buffer=B) -> Store:
    return Store(buffer, (index,), value)


def loop(body: Stmt, var: Var = i, extent: Expr = EIGHT, kind="serial", low: Expr = ZERO) -> For:
    return For(var, low, extent, kind, body)


class Tensor(TensorBase):
    __slots__ = ("dtype", "name", "shape")

    def __init__(self) -> None:
        self.name, self.dtype, self.shape = "X", FLOAT32, (EIGHT,)


def reduction() -> Expr:
    lhs, rhs = Var("l", FLOAT32), Var("r", FLOAT32)
    combiner = Combiner("sum", (lhs,), (rhs,), (lhs + rhs,), (const(0, "float32"),))
    axis = Axis(index_var("r"), ZERO, EIGHT, "reduce")
    return Reduce(combiner, (cast("float32", axis.var),), (axis,), None, 0)


def task(params=None, outputs=(B,)) -> PrimFunc:
    begin, end, k = index_var("begin"), index_var("end"), index_var("k")
    return PrimFunc("task", params or (begin, end, B), For(k, begin, end - begin, "serial", store(k)), outputs)


def test_a_program_of_every_kind_of_statement_is_legal():
    x = Var("x", FLOAT32)
    symbolic = make_buffer("S", (n, n * 2), "float32")
    body = seq(
        loop(loop(store(i), kind="vectorized"), var=j, extent=n, kind="parallel"),
        Allocate(T, LetStmt(x, HALF, seq(store(ZERO, x, T), store(ZERO, Load(T, (ZERO,)))))),
        If(n > 3, store(), Evaluate(n + 1)),
        While(Load(A, (ZERO,)) > 0.5, store()),
        Assert(n > 0, "positive"),
        Store(B, (Ramp(ZERO, const(1, "index"), 4),), Broadcast(call("exp", HALF), 4), Broadcast(TRUE, 4)),
        Launch("task", n, (B,)),
    )
    verify(IRModule((func(body, (A, B, symbolic)), task())))


def test_one_let_may_stand_in_several_statements():
    x = Var("x", FLOAT32)
    value = Let(x, HALF, x + x)
    verify(func(seq(store(ZERO, value + value), store(ZERO, value))))


ILLEGAL: dict[str, tuple[PrimFunc | IRModule, str]] = {
    "unbound": (func(store(i)), "i is used, but not bound here"),
    "used after its loop": (func(seq(loop(store(i)), store(i))), "i is used, but not bound here"),
    "used beside its let": (
        func(seq(store(ZERO, Let(x := Var("x", FLOAT32), HALF, x + 1.0) + x))),
        "x is used, but not bound here",
    ),
    "bound twice": (func(seq(loop(store(i)), loop(store(i)))), "i is bound twice"),
    "nested twice": (func(loop(loop(store(i)))), "i is bound twice"),
    "allocated twice": (func(Seq((Allocate(T, store()), Allocate(T, store())))), "T is bound twice"),
    "two lets": (
        func(store(ZERO, Let(y := Var("y", FLOAT32), HALF, y + 1.0) + Let(y, HALF + 1.0, y + 1.0))),
        "y is bound twice",
    ),
    "parameter twice": (func(store(), (A, A, B)), "A is bound twice"),
    "address as a value": (func(Evaluate(A.data)), "the address A is used as a value"),
    "float bound": (func(loop(store(), extent=HALF)), "the extent of loop i is a float32"),
    "float start": (func(loop(store(), low=HALF)), "the start of loop i is a float32"),
    "loop variable": (func(loop(store(), var=Var("k", FLOAT32))), "the loop variable k is a float32"),
    "condition": (func(If(INT, store())), "the condition `int32(1)` is a int32"),
    "vector condition": (func(While(Broadcast(TRUE, 4), store())), "is a boolx4, not a scalar bool"),
    "assert condition": (func(Assert(INT, "no")), "the condition `int32(1)` is a int32"),
    "vector if_then_else": (
        func(Evaluate(IfThenElse(Broadcast(TRUE, 4), Broadcast(HALF, 4), Broadcast(HALF, 4)))),
        "is a boolx4, not scalar",
    ),
    "let dtype": (func(LetStmt(Var("z", FLOAT32), INT, store())), "z: float32 is bound to a int32"),
    "store to an input": (func(store(buffer=A)), "store into A, neither an output nor allocated here"),
    "store after allocation": (
        func(seq(Allocate(T, store()), store(buffer=T))),
        "T is neither a parameter nor allocated around here",
    ),
    "load of a stranger": (func(store(ZERO, Load(T, (ZERO,)))), "T is neither a parameter nor allocated around here"),
    "view of another dtype": (
        func(Evaluate(Load(make_buffer("V", (8,), "int32", data=A.data), (ZERO,)))),
        "V views memory of float32 as int32",
    ),
    "view of other lanes": (
        func(Evaluate(Load(make_buffer("V", (2,), "float32x4", data=A.data), (ZERO,)))),
        "V views memory of float32 as float32x4",
    ),
    "prefetch by another dtype": (
        func(PrefetchStmt(make_buffer("V", (2,), "float32x4", data=A.data), (ZERO,))),
        "V views memory of float32 as float32x4",
    ),
    "unbound shape": (
        func(Evaluate(Load(make_buffer("V", (n,), "float32", data=A.data), (ZERO,)))),
        "n is used, but not bound here",
    ),
    "number of strides": (
        func(store(), (A, B, make_buffer("S", (8,), "int8", strides=(1, 2)))),
        "S has 1 dimensions, but 2 strides",
    ),
    "vector layout": (func(store(), (B, make_buffer("S", (Ramp(ZERO, ZERO, 4),), "int8"))), "layout of S must be"),
    "address dtype": (
        func(store(), (B, make_buffer("S", (8,), "int8", data=index_var("S")))),
        "address of S is a index",
    ),
    "foreign output": (func(store(buffer=T), outputs=(T,)), "output T is no parameter"),
    "float parameter": (func(store(), (A, B, Var("x", FLOAT32))), "parameter x is a float32"),
    "symbolic vectorized": (
        func(loop(store(), extent=n, kind="vectorized"), (A, B, make_buffer("S", (n,), "int8"))),
        "the vectorized loop i has extent n",
    ),
    "extent 1 vectorized": (func(loop(store(), extent=const(1, "index"), kind="vectorized")), "has extent 1, not"),
    "wide vectorized": (func(loop(store(), extent=const(512, "index"), kind="vectorized")), "has extent 512, not"),
    "vectorized in vectorized": (
        func(loop(loop(store(), var=j, kind="vectorized"), kind="vectorized")),
        "vectorized loop j inside the vectorized loop i",
    ),
    "parallel in vectorized": (
        func(loop(loop(store(), var=j, kind="parallel"), kind="vectorized")),
        "parallel loop j inside the vectorized loop i",
    ),
    "vector in vectorized": (
        func(loop(Evaluate(Broadcast(HALF, 4)), kind="vectorized")),
        "the vector `broadcast(0.5, 4)` stands inside the vectorized loop i",
    ),
    "tensor read": (func(Evaluate(TensorRead(Tensor(), (ZERO,)))), "belongs to tensor expressions"),
    "reduce": (func(Evaluate(reduction())), "belongs to tensor expressions"),
    "constant out of range": (func(Evaluate(Const(300, const(0, "uint8").dtype))), "300 is not a constant of uint8"),
    "constant of another type": (func(Evaluate(Const(1, FLOAT32))), "1 is not a constant of float32"),
    "unknown intrinsic": (func(Evaluate(Call("frobnicate", (HALF,), FLOAT32))), "no intrinsic 'frobnicate'"),
    "intrinsic result": (func(Evaluate(Call("exp", (HALF,), BOOL))), "does not give a bool"),
    "launch without module": (func(Launch("task", EIGHT, (B,))), "launch of task, which is no other function"),
    "recursive launch": (IRModule((func(Launch("f", EIGHT, (B,))),)), "launch of f, which is no other function"),
    "launch extent": (IRModule((func(Launch("task", INT, (B,))), task())), "the extent of the launch is a int32"),
    "launch arguments": (IRModule((func(Launch("task", EIGHT, ())), task())), "task takes 1 arguments behind"),
    "launch without range": (IRModule((func(Launch("task", EIGHT, ())), task((B,)))), "must be the variables begin"),
    "launch in vectorized": (
        IRModule((func(loop(Launch("task", EIGHT, (B,)), kind="vectorized")), task())),
        "launch inside a vectorized loop",
    ),
    "launch writes an input": (
        IRModule((func(Launch("task", EIGHT, (A,))), task())),
        "argument A for parameter B of task is written, but neither an output nor allocated",
    ),
    "launch of a variable for a buffer": (
        IRModule((func(loop(Launch("task", EIGHT, (i,)))), task())),
        "one is a buffer, the other a variable",
    ),
    "launch of another dtype": (
        IRModule((func(Launch("task", EIGHT, (I := make_buffer("I", (8,), "int8"),)), (A, B, I), (I,)), task())),
        "argument I for parameter B of task holds int8, expected float32",
    ),
    "dimension of a task": (
        IRModule((func(store()), task((index_var("b"), index_var("e"), B, make_buffer("S", (n,), "int8"))))),
        "n, in the shape of S, must be a parameter",
    ),
    "two functions of a name": (IRModule((func(store()), func(store()))), "two functions of the module are called f"),
}


@pytest.mark.parametrize("case", ILLEGAL, ids=str)
def test_an_illegal_program_is_refused(case):
    program, message = ILLEGAL[case]
    with pytest.raises(VerificationError) as caught:
        verify(program)
    assert message in str(caught.value)


def test_the_message_names_the_stage_and_marks_the_statement():
    with pytest.raises(VerificationError) as caught:
        verify(func(seq(store(), loop(store(j)))), stage="unroll")
    assert str(caught.value).startswith("after unroll: f: j is used, but not bound here\n")
    assert [line for line in str(caught.value).splitlines() if "<--" in line] == ["        B[j] = 0.5  # <-- here"]


def test_the_message_says_what_to_do_with_a_program_made_by_hand_and_with_one_of_ours():
    with pytest.raises(VerificationError) as caught:
        verify(func(store(j)))
    last = str(caught.value).splitlines()[-1]
    assert last.startswith("If you built this program by hand, change what the message names. If loopwright made it, ")
    assert caught.value.problem in str(caught.value)
    assert "loopwright" not in caught.value.problem


def test_an_error_from_another_process_says_what_to_do_once():
    error = VerificationError("j is used, but not bound here")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.problem) == (VerificationError, str(error), error.problem)


def test_shared_expressions_take_linear_time():
    shared: Expr = i
    for _ in range(200):
        shared = shared + shared
    verify(func(loop(Evaluate(shared))))


def test_a_handle_is_the_dtype_of_addresses():
    assert A.data.dtype is HANDLE
    assert i.dtype is INDEX
