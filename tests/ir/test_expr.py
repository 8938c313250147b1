"""Expressions: one object for each structure, operators, dtype rules, and errors that say what to do."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import threading
import weakref

import numpy as np
import pytest

from loopwright.base.dtype import BOOL, FLOAT32, INDEX, INT32
from loopwright.base.errors import ExpressionError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import FALSE, ONE, TRUE, ZERO, const, const_int, is_const
from loopwright.ir.expr import (
    Axis,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Logical,
    Ramp,
    Select,
    Unary,
    Var,
)
from loopwright.ir.intrinsics import call
from loopwright.ir.makers import as_expr, as_index, cast, logical_and, maximum, minimum
from loopwright.ir.operand_types import MAX_LANES
from loopwright.ir.stmt import Store

x, y = Var("x", INT32), Var("y", INT32)
f, g = Var("f", FLOAT32), Var("g", FLOAT32)
i = index_var("i")
p = Var("p", BOOL)


def test_equal_structure_is_one_object():
    assert x + y is x + y
    assert (x + 1) * (y - 2) is (x + 1) * (y - 2)
    assert x + y is not y + x
    A = make_buffer("A", (4,), "float32")
    assert Load(A, (i + 1,)) is Load(A, (i + 1,), None) is Load(buffer=A, indices=(i + 1,))
    assert Load(A, (i,)) is not Load(make_buffer("A", (4,), "float32"), (i,))


def test_variables_are_unique_whatever_their_name():
    assert Var("x", INT32) is not Var("x", INT32)
    assert len({Var("x", INT32), Var("x", INT32), x, x}) == 3


def test_constants_are_told_apart_by_dtype_and_bits():
    values = [const(0.0, "float32"), const(-0.0, "float32"), const(0, "int32"), const(0, "bool"), const(0, "index")]
    assert len(set(values)) == len(values)
    assert const(1, "int32") is const(1, "int32")
    assert const(math.nan, "float32") is const(math.nan, "float32")
    assert const(1, "float32") is const(1.0, "float32")
    assert const(True, "bool") is TRUE is const(1, "bool")


def test_unused_nodes_are_forgotten():
    node = weakref.ref(x + 123_456)
    gc.collect()
    assert node() is None
    assert str(x + 123_456) == "x + int32(123456)"


def test_threads_that_make_the_same_nodes_share_them():
    made: list[list[Expr]] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        made.append([x * number + y for number in range(2000)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(set(same)) == 1 for same in zip(*made, strict=True))


def test_pickling_and_copying_keep_structure_and_sharing():
    closed = const(2, "int32") * 3 + const(2, "int32")
    assert pickle.loads(pickle.dumps(closed)) is closed
    assert copy.copy(x + y) is x + y
    assert copy.deepcopy(closed) is closed
    again = pickle.loads(pickle.dumps((x, x + y * x)))
    assert again[1].a is again[0] is again[1].b.b
    assert again[0] is not x
    copied = copy.deepcopy((x, x + y))
    assert copied[1].a is copied[0] is not x


def test_operators_build_the_nodes_they_look_like():
    for made, op in (
        (x + y, "+"),
        (x - y, "-"),
        (x * y, "*"),
        (x // y, "//"),
        (x % y, "%"),
        (x & y, "&"),
        (x | y, "|"),
    ):
        assert made is Binary(op, x, y)
    assert (x ^ y) is Binary("^", x, y)
    assert (x << y) is Binary("<<", x, y)
    assert (x >> y) is Binary(">>", x, y)
    assert f / g is Binary("/", f, g)
    assert -x is Unary("-", x)
    assert ~x is Unary("~", x)
    assert ~p is Unary("not", p)
    assert (p & TRUE) is Logical("and", p, TRUE)
    assert (p | TRUE) is Logical("or", p, TRUE)
    assert (p ^ TRUE) is Compare("!=", p, TRUE)
    for made, op in ((x == y, "=="), (x != y, "!="), (x < y, "<"), (x <= y, "<="), (x > y, ">"), (x >= y, ">=")):
        assert made is Compare(op, x, y)
        assert made.dtype is BOOL
    assert minimum(x, y) is Binary("min", x, y)
    assert maximum(x, 3) is Binary("max", x, const(3, "int32"))


def test_numbers_on_either_side_take_the_dtype_of_the_expression():
    assert 1 + x is Binary("+", const(1, "int32"), x)
    assert 1 - x is Binary("-", const(1, "int32"), x)
    assert 2 * f is Binary("*", const(2.0, "float32"), f)
    assert 1 / f is Binary("/", const(1.0, "float32"), f)
    assert 7 // x is Binary("//", const(7, "int32"), x)
    assert 7 % x is Binary("%", const(7, "int32"), x)
    assert 1 << x is Binary("<<", const(1, "int32"), x)
    assert 1 >> x is Binary(">>", const(1, "int32"), x)
    assert 6 & x is Binary("&", const(6, "int32"), x)
    assert 6 | x is Binary("|", const(6, "int32"), x)
    assert 6 ^ x is Binary("^", const(6, "int32"), x)
    assert np.float32(2) * f is 2 * f
    assert (x > 1) is Compare(">", x, const(1, "int32"))


def test_scalars_are_broadcast_against_vectors():
    vector = Ramp(i, ONE, 4)
    assert vector + 1 is Binary("+", vector, Broadcast(ONE, 4))
    assert (i < vector) is Compare("<", Broadcast(i, 4), vector)
    assert call("pow", Broadcast(f, 4), g) is call("pow", Broadcast(f, 4), Broadcast(g, 4))


def test_an_axis_stands_for_its_variable():
    axis = Axis(i, ZERO, const(8, "index"), "spatial")
    assert axis + 1 is i + 1
    assert (axis == 0) is (i == 0)
    assert as_expr(axis) is i


def test_the_truth_of_an_expression_is_not_known():
    for question in (lambda: bool(i == 0), lambda: 1 if i < 3 else 2, lambda: i == 0 and x == 1, lambda: not i):
        with pytest.raises(ExpressionError, match=r"not known while the program is being built: use te\.select"):
            question()


def test_expressions_cannot_be_iterated_over():
    with pytest.raises(ExpressionError, match="`i` cannot be iterated over"):
        list(i)


ILL_TYPED = {
    "mixed": (lambda: x + f, "`+` needs two values of one dtype, found int32 and float32"),
    "index and int32": (lambda: i + x, "found index and int32"),
    "lanes": (lambda: Binary("+", i, Ramp(i, ONE, 4)), "found index and indexx4"),
    "float // float": (lambda: f // g, "`//` does not apply to float32"),
    "int / int": (lambda: x / y, "use // for integers"),
    "float & float": (lambda: f & g, "`&` does not apply to float32"),
    "index << index": (lambda: i << 1, "`<<` does not apply to index"),
    "bool + bool": (lambda: p + p, "`+` does not apply to bool"),
    "float number": (lambda: x + 0.5, "0.5 meets a int32 value"),
    "too large": (lambda: Var("b", const(0, "int8").dtype) + 300, "300 does not fit int8 (-128 … 127)"),
    "negative": (lambda: const(-1, "uint8"), "-1 does not fit uint8"),
    "fraction": (lambda: const(1.5, "int32"), "1.5 is not an integer"),
    "bool": (lambda: const(2, "bool"), "2 is not a bool"),
    "not": (lambda: Unary("not", x), "`not` does not apply to a int32"),
    "complement": (lambda: ~f, "`~` does not apply to a float32"),
    "negated bool": (lambda: -p, "`-` does not apply to a bool"),
    "and": (lambda: Logical("and", x, y), "`and` applies to bool, not to int32"),
    "select": (lambda: Select(x, x, y), "the condition of select must be bool"),
    "select lanes": (lambda: Select(Broadcast(p, 2), Broadcast(x, 4), Broadcast(x, 4)), "2 lanes of condition"),
    "select sides": (lambda: Select(p, x, f), "`select` needs two values of one dtype"),
    "if_then_else": (lambda: IfThenElse(x, x, y), "the condition of if_then_else must be bool"),
    "cast": (lambda: Cast(INDEX, Ramp(i, ONE, 4)), "changes the number of lanes"),
    "let": (lambda: Let(x, f, x), "let x: int32 is bound to a float32"),
    "ramp of floats": (lambda: Ramp(f, f, 4), "a ramp needs scalar integers, not float32"),
    "one lane": (lambda: Ramp(i, ONE, 1), f"a vector has 2 to {MAX_LANES} lanes, not 1"),
    "many lanes": (lambda: Broadcast(i, MAX_LANES + 1), "a vector has 2 to"),
    "twice a vector": (lambda: Broadcast(Broadcast(i, 4), 4), "already a vector"),
    "string": (lambda: x + "1", "cannot use a str in an expression"),
    "numpy array": (lambda: as_expr(np.zeros(3)), "cannot use a ndarray in an expression"),
    "index": (lambda: as_index(f), "an index must be an integer, found the float32 `f`"),
    "intrinsic": (lambda: call("frob", f), "there is no intrinsic 'frob'; there are abs"),
    "arity": (lambda: call("exp", f, g), "exp takes 1 arguments, not 2"),
    "domain": (lambda: call("exp", x), "exp takes float values of one dtype, found int32"),
    "popcount": (lambda: call("popcount", i), "popcount takes int values"),
    "arguments": (lambda: call("pow", f, Var("d", const(0.0, "float64").dtype)), "found float64"),
}


@pytest.mark.parametrize("case", ILL_TYPED)
def test_ill_typed_expressions_are_refused(case):
    build, message = ILL_TYPED[case]
    with pytest.raises(ExpressionError) as caught:
        build()
    assert message in str(caught.value)


A = make_buffer("A", (4, 4), "float32")
LANES = Ramp(i, ONE, 4)
ILL_FORMED = {
    "rank": (lambda: Load(A, (i,)), "A has 2 dimensions, but is accessed with 1 indices"),
    "dtype": (lambda: Load(A, (i, x)), "an index of A is a int32, expected index: x"),
    "lanes": (lambda: Load(A, (LANES, Ramp(i, ONE, 8))), "the indices of A disagree in their lanes"),
    "mask": (lambda: Load(A, (i, LANES), TRUE), "the mask of an access of A is a bool, expected 4 lanes of bool"),
    "vectors": (
        lambda: Load(make_buffer("V", (4,), "float32x4"), (LANES,)),
        "V holds float32x4 elements: its index must be scalar",
    ),
    "stored": (lambda: Store(A, (i, i), x), "store of a int32 into A, which takes float32 here"),
    "stored lanes": (lambda: Store(A, (i, LANES), f), "store of a float32 into A, which takes float32x4 here"),
}


@pytest.mark.parametrize("case", ILL_FORMED)
def test_ill_formed_accesses_are_refused(case):
    build, message = ILL_FORMED[case]
    with pytest.raises(ExpressionError) as caught:
        build()
    assert message in str(caught.value)


def test_dtypes_are_derived():
    assert Load(A, (i, LANES)).dtype is FLOAT32.with_lanes(4)
    assert Load(make_buffer("V", (4,), "float32x4"), (i,)).dtype is FLOAT32.with_lanes(4)
    assert (LANES < 3).dtype is BOOL.with_lanes(4)
    assert call("isnan", Broadcast(f, 8)).dtype is BOOL.with_lanes(8)
    assert cast("float32", LANES).dtype is FLOAT32.with_lanes(4)
    assert cast("int32", x) is x
    assert as_index(x) is Cast(INDEX, x)
    assert as_expr(3).dtype is INDEX
    assert as_expr(3.0).dtype is FLOAT32
    assert as_expr(True) is TRUE
    assert as_expr(np.int8(3)).dtype is const(3, "int8").dtype


def test_constants_are_rounded_to_their_dtype():
    assert float(const(0.1, "float32")) == float(np.float32(0.1))
    assert float(const(1e300, "float32")) == math.inf
    assert float(const(-1e6, "float16")) == -math.inf
    assert float(const(2**53 + 1, "float64")) == 2.0**53
    assert float(const(2**24 + 1, "float32")) == 2.0**24
    assert int(const(7, "uint8")) == 7
    with pytest.raises(ExpressionError, match="is not an integer"):
        int(const(7.0, "float32"))


def test_constants_are_recognised():
    assert const_int(const(5, "int8")) == const_int(Broadcast(const(5, "index"), 4)) == 5
    assert const_int(const(5.0, "float32")) is const_int(x) is None
    assert is_const(Broadcast(const(0.0, "float32"), 4), 0.0)
    assert not is_const(const(-0.0, "float32"), 0.0)
    assert not is_const(x, 0)
    assert logical_and([]) is TRUE
    assert logical_and([p, FALSE]) is Logical("and", p, FALSE)
    assert isinstance(const(1, "int8"), Const)


def test_nodes_are_immutable():
    with pytest.raises(AttributeError):
        (x + y).a = y
