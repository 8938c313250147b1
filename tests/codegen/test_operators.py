"""Every operator on every dtype, scalar and vector, native code against the interpreter and numpy."""

import numpy as np
import pytest

from loopwright.base.dtype import dtype
from loopwright.codegen.host import host_target
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Binary, Cast, Compare, Const, IfThenElse, Let, Load, Logical, Ramp, Select, Unary, Var
from loopwright.ir.interpret import interpret
from loopwright.ir.intrinsics import call
from loopwright.ir.stmt import For, PrimFunc, Store, seq

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COUNT = 240
LANES = (1, 2, 3, 8, 16)
ON_X86 = pytest.mark.skipif(host_target().arch != "x86_64", reason="runs code for plain x86-64")
TARGETS = ["native", pytest.param("x86-64", marks=ON_X86)]
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def int_values(kind, rng):
    """Random values, and every pair of the interesting ones."""
    low, high = dtype(kind).int_range()
    edges = np.array([low, low + 1, 0, 1, 2, 3, 7, high - 1, high, -1 if low else 5, -3 if low else 9], kind)
    a, b = (m.ravel() for m in np.meshgrid(edges, edges))
    more = COUNT - len(a)
    random = rng.integers(low, high, (2, more), kind, endpoint=True)
    small = rng.integers(max(low, -9), 9, more).astype(kind)
    return np.concatenate([a, random[0]]), np.concatenate([b, np.where(np.arange(more) % 2, small, random[1])])


def float_values(kind, rng):
    numpy_kind = dtype(kind).to_numpy()
    tiny = {"float16": 6e-8, "bfloat16": 1e-40, "float32": 1e-45, "float64": 5e-324}[kind]
    edges = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, tiny, -tiny, 3.0e4, 0.1], np.float64)
    a, b = (m.ravel() for m in np.meshgrid(edges, edges))
    random = rng.normal(0, 1, (2, COUNT - len(a))) * 10.0 ** rng.integers(-6, 6, (2, COUNT - len(a)))
    with np.errstate(all="ignore"):
        return tuple(np.concatenate([e, r]).astype(numpy_kind) for e, r in zip((a, b), random, strict=True))


def values(kind, rng):
    if kind == "bool":
        return tuple(rng.integers(0, 2, (2, COUNT)).astype(bool))
    return int_values(kind, rng) if kind in INTS else float_values(kind, rng)


def elementwise(name, kind, lanes, makers):
    """A function of two arrays A, B and one output for each maker, which gets the loaded values."""
    buffers = [make_buffer(n, [COUNT], kind) for n in "AB"]
    i = index_var("i")
    index = i if lanes == 1 else Ramp(i * lanes, const(1, "index"), lanes)
    a, b = (Load(buffer, (index,)) for buffer in buffers)
    stores = []
    for number, make in enumerate(makers):
        value = make(a, b)
        out = make_buffer(f"O{number}", [COUNT], value.dtype.element)
        buffers.append(out)
        stores.append(Store(out, (index,), value))
    body = For(i, const(0, "index"), const(COUNT // lanes, "index"), "serial", seq(*stores))
    return PrimFunc(name, tuple(buffers), body, tuple(buffers[2:]))


def check(native, func, a, b, **options):
    """The outputs of native code, which are those of the interpreter."""
    outputs = [np.zeros(COUNT, buffer.dtype.to_numpy()) for buffer in func.outputs]
    expected = [out.copy() for out in outputs]
    assert native(func, **options)(a, b, *outputs) == 0
    interpret(func)(a, b, *expected)
    for number, (found, wanted) in enumerate(zip(outputs, expected, strict=True)):
        text = f"output {number} of\n{func}"
        if found.dtype.kind in "biu":
            np.testing.assert_array_equal(found, wanted, err_msg=text)
        else:
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), err_msg=text)
    return outputs


def binary(op):
    return lambda a, b: Binary(op, a, b)


def compare(op):
    return lambda a, b: Compare(op, a, b)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("kind", INTS)
def test_integer_operators(native, kind, lanes):
    a, b = int_values(kind, np.random.default_rng(1))
    makers = [binary(op) for op in ("+", "-", "*", "//", "%", "min", "max", "&", "|", "^", "<<", ">>")]
    makers += [lambda a, b: Unary("-", a), lambda a, b: Unary("~", a)]
    makers += [lambda a, b: call("abs", a), lambda a, b: call("popcount", a)]
    check(native, elementwise("integers", kind, lanes, makers), a, b)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("kind", INTS)
def test_division_and_shifts_by_constants(native, kind, lanes):
    a, b = int_values(kind, np.random.default_rng(2))
    low, high = dtype(kind).int_range()
    numbers = [n for n in (0, 1, 2, 3, 7, 8, 64, high, low, -1, -2, -3, -8) if low <= n <= high]
    makers = [
        lambda a, b, op=op, n=n: Binary(op, a, const(n, a.dtype)) for op in ("//", "%", "<<", ">>") for n in numbers
    ]
    makers += [lambda a, b, op=op: Binary(op, const(high, a.dtype), b) for op in ("//", "%", "<<", ">>")]
    check(native, elementwise("constants", kind, lanes, makers), a, b)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("target", TARGETS)
def test_float_operators(native, kind, lanes, target):
    a, b = float_values(kind, np.random.default_rng(3))
    makers = [binary(op) for op in ("+", "-", "*", "/", "min", "max")]
    makers += [lambda a, b: Unary("-", a), lambda a, b: call("abs", a), lambda a, b: call("isnan", a)]
    for number in (0.0, -2.5, float("inf"), float("nan")):
        for op in ("min", "max"):
            makers.append(lambda a, b, op=op, n=number: Binary(op, a, const(n, a.dtype)))
            makers.append(lambda a, b, op=op, n=number: Binary(op, const(n, a.dtype), b))
    check(native, elementwise("floats", kind, lanes, makers), a, b, target=target)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_float_arithmetic_is_that_of_numpy(native, kind):
    a, b = float_values(kind, np.random.default_rng(4))
    makers = [binary(op) for op in ("+", "-", "*", "/", "min", "max")]
    found = check(native, elementwise("floats", kind, 8, makers), a, b)
    with np.errstate(all="ignore"):
        for function, out in zip(
            (np.add, np.subtract, np.multiply, np.divide, np.minimum, np.maximum), found, strict=True
        ):
            np.testing.assert_array_equal(out, function(a, b))


@pytest.mark.parametrize("lanes", [1, 3, 8])
@pytest.mark.parametrize("kind", [*INTS, *FLOATS])
def test_comparisons_and_choices(native, kind, lanes):
    a, b = values(kind, np.random.default_rng(5))
    makers = [compare(op) for op in COMPARISONS]
    makers += [
        lambda a, b: Select(Compare("<", a, b), a, b),
        lambda a, b: Select(const(True, "bool"), a, b),
        lambda a, b: Logical("and", Compare("<", a, b), Compare("!=", a, const(1, a.dtype))),
        lambda a, b: Logical("or", Compare(">", a, b), Unary("not", Compare(">=", a, const(0, a.dtype)))),
        lambda a, b: Select(Compare("==", a, a), *(const(n, dtype("int32").with_lanes(lanes)) for n in (1, 2))),
    ]
    check(native, elementwise("comparisons", kind, lanes, makers), a, b)


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_bool_values(native, lanes):
    a, b = values("bool", np.random.default_rng(6))
    makers = [compare(op) for op in COMPARISONS]
    makers += [lambda a, b: Logical("and", a, b), lambda a, b: Logical("or", a, b), lambda a, b: Unary("not", a)]
    makers += [lambda a, b, to=to: Cast(dtype(to).with_lanes(lanes), a) for to in (*INTS, *FLOATS)]
    check(native, elementwise("bools", "bool", lanes, makers), a, b)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("kind", [*INTS, *FLOATS])
@pytest.mark.parametrize("target", TARGETS)
def test_casts(native, kind, lanes, target):
    a, b = values(kind, np.random.default_rng(7))
    makers = [lambda a, b, to=to: Cast(dtype(to).with_lanes(lanes), a) for to in (*INTS, *FLOATS, "bool")]
    if kind in INTS:
        index = dtype("index").with_lanes(lanes)
        makers.append(lambda a, b: Cast(a.dtype, Cast(index, a)))
    check(native, elementwise("casts", kind, lanes, makers), a, b, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_all_halves_convert_exactly_with_and_without_instructions(native, target):
    """All 65,536 bit patterns of float16 through float32 and back, and all rounding positions between them."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16)
    A, B = make_buffer("A", [1 << 16], "float16"), make_buffer("B", [1 << 16], "float32")
    C = make_buffer("C", [1 << 16], "float16")
    i = index_var("i")
    at = Ramp(i * 16, const(1, "index"), 16)
    wide = Cast(dtype("float32x16"), Load(A, (at,)))
    body = seq(
        Store(B, (at,), wide),
        Store(C, (at,), Cast(dtype("float16x16"), wide * const(1.000488, "float32x16"))),
    )
    func = PrimFunc("halves", (A, B, C), For(i, const(0, "index"), const(4096, "index"), "serial", body), (B, C))
    wide, narrow = np.zeros(1 << 16, np.float32), np.zeros(1 << 16, np.float16)
    assert native(func, target)(halves, wide, narrow) == 0
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wide, halves.astype(np.float32))
        np.testing.assert_array_equal(narrow, (halves.astype(np.float32) * np.float32(1.000488)).astype(np.float16))


def test_index_arithmetic(native):
    n = 61
    makers = []
    for divisor in (1, 2, 3, 8, -3):
        for op in ("//", "%"):
            makers.append(lambda i, op=op, d=divisor: Binary(op, i - 30, const(d, "index")))
            makers.append(lambda i, op=op, d=divisor: Binary(op, i, const(d, "index")))
    makers += [
        lambda i: Binary("//", const(100, "index"), i + 1),
        lambda i: Binary("%", const(-100, "index"), i + 1),
        lambda i: Binary("min", i * 3, const(50, "index")) - Binary("max", i, const(7, "index")),
        lambda i: Unary("-", i),
        lambda i: call("abs", i - 30),
    ]
    O = make_buffer("O", [len(makers), n], "int64")
    i = index_var("i")
    stores = [Store(O, (const(k, "index"), i), Cast(dtype("int64"), make(i))) for k, make in enumerate(makers)]
    func = PrimFunc("indices", (O,), For(i, const(0, "index"), const(n, "index"), "serial", seq(*stores)), (O,))
    found, wanted = np.zeros((len(makers), n), np.int64), np.zeros((len(makers), n), np.int64)
    assert native(func)(found) == 0
    interpret(func)(wanted)
    np.testing.assert_array_equal(found, wanted)


def test_lazy_choice_does_not_evaluate_the_other_side(native):
    """The guarded access would fault: it is far outside the buffer."""
    A, O = make_buffer("A", [8], "float32"), make_buffer("O", [16], "float32")
    i = index_var("i")
    inside = Compare("<", i, const(8, "index"))
    far = Binary("*", i, const(1 << 40, "index"))
    where = Select(inside, i, far)
    value = IfThenElse(inside, Load(A, (where,)) * 2.0, const(-1.0, "float32")) + IfThenElse(
        inside, Load(A, (where,)), const(0.0, "float32")
    )
    func = PrimFunc(
        "lazy", (A, O), For(i, const(0, "index"), const(16, "index"), "serial", Store(O, (i,), value)), (O,)
    )
    a, o = np.arange(8, dtype=np.float32), np.zeros(16, np.float32)
    assert native(func)(a, o) == 0
    np.testing.assert_array_equal(o, np.concatenate([a * 3, np.full(8, -1, np.float32)]))


def test_let_and_shared_nodes(native):
    A, O = make_buffer("A", [8], "float32"), make_buffer("O", [8], "float32")
    i = index_var("i")
    v = Var("v", dtype("float32"))
    shared = Load(A, (i,)) * 2.0
    value = Let(v, shared + 1.0, v * v + shared)
    func = PrimFunc("lets", (A, O), For(i, const(0, "index"), const(8, "index"), "serial", Store(O, (i,), value)), (O,))
    a, o = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel = native(func)
    assert kernel(a, o) == 0
    np.testing.assert_array_equal(o, (2 * a + 1) ** 2 + 2 * a)
    assert kernel.code.llvm_ir.count("load float,") == 1


def test_deep_expressions_do_not_meet_the_recursion_limit(native):
    A, O = make_buffer("A", [1], "int32"), make_buffer("O", [1], "int32")
    zero = const(0, "index")
    value = Load(A, (zero,))
    for n in range(1500):
        value = Binary("^", value, const(n, "int32")) + 1
    func = PrimFunc("deep", (A, O), Store(O, (zero,), value), (O,))
    a, o = np.array([12345], np.int32), np.zeros(1, np.int32)
    assert native(func, opt_level=1)(a, o) == 0
    wanted = 12345
    for n in range(1500):
        wanted = (wanted ^ n) + 1
    assert o[0] == wanted


def test_constants_of_each_dtype_keep_their_bits(native):
    special = (0.1, -0.0, float("inf"), float("nan"), 1e-40, 65504.0)
    for kind in FLOATS:
        O = make_buffer("O", [len(special)], kind)
        stores = [
            Store(O, (const(k, "index"),), Const(float(np.asarray(x).astype(dtype(kind).to_numpy())), dtype(kind)))
            for k, x in enumerate(special)
        ]
        with np.errstate(all="ignore"):
            wanted = np.array(special).astype(dtype(kind).to_numpy())
        found = np.zeros(len(special), wanted.dtype)
        assert native(PrimFunc("constants", (O,), seq(*stores), (O,)))(found) == 0
        assert np.array_equal(found.astype(np.float64), wanted.astype(np.float64), equal_nan=True)
        assert np.array_equal(np.signbit(found[1:2].astype(np.float64)), [True])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", FLOATS)
def test_fma_rounds_once_with_and_without_the_instruction(native, kind, target):
    a, b = float_values(kind, np.random.default_rng(8))
    check(native, elementwise("fused", kind, 8, [lambda a, b: call("fma", a, b, Unary("-", a))]), a, b, target=target)
