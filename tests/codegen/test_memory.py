"""Accesses of memory: contiguous, strided, gathered, scattered, masked, of views and of buffers of vectors."""

import numpy as np
import pytest

from loopwright.base.dtype import dtype
from loopwright.codegen.allocation import STACK_LIMIT
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Broadcast, Cast, Compare, Load, Logical, Ramp, Var
from loopwright.ir.interpret import interpret
from loopwright.ir.stmt import Allocate, For, LetStmt, PrimFunc, Seq, Store, seq

KINDS = ["bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
ZERO, ONE = const(0, "index"), const(1, "index")
SIZE = 200


def idx(number):
    return const(number, "index")


def sample(kind, count, seed=0):
    values = np.random.default_rng(seed).integers(0, 100, count)
    return (values % 2 == 0) if kind == "bool" else values.astype(dtype(kind).to_numpy())


def agree(kernel, func, *arrays):
    """Runs both; the arrays of native code, which are those of the interpreter."""
    expected = [a.copy() for a in arrays]
    assert kernel(*arrays) == 0
    interpret(func)(*expected)
    for found, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), err_msg=str(func))


@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_strided_loads_and_stores_touch_what_they_name_and_no_more(native, kind, lanes):
    """The buffers are exactly as long as the last element needs."""
    for stride in (1, -1, 2, -2, 3, 4, -4, 5, 0):
        span = abs(stride) * (lanes - 1) + 1
        A, B = make_buffer("A", [span], kind), make_buffer("B", [span], kind)
        C = make_buffer("C", [lanes], kind)
        at = Ramp(idx(span - 1 if stride < 0 else 0), idx(stride), lanes)
        load = Store(C, (Ramp(ZERO, ONE, lanes),), Load(A, (at,)))
        store = Store(B, (at,), Load(A, (Ramp(ZERO, ONE, lanes),))) if span >= lanes and stride else Seq(())
        func = PrimFunc("strided", (A, B, C), seq(load, store), (B, C))
        agree(native(func, opt_level=1), func, sample(kind, span), sample(kind, span, 1), sample(kind, lanes, 2))


@pytest.mark.parametrize("lanes", [2, 6, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_at_known_distances_are_one_load_and_touch_nothing_beyond(native, kind, lanes):
    """Repeated and wrapped around, behind a base that varies; A ends with the last element that is named."""
    times, i, lane = 3, index_var("i"), Ramp(ZERO, ONE, lanes)

    def loop(A, C, place):
        value = Load(A, (Broadcast(i * 5, lanes) + place,))
        return For(i, ZERO, idx(times), "serial", Store(C, (Ramp(i * lanes, ONE, lanes),), value))

    for place, span in (
        (Ramp(ONE, ONE, lanes) // Broadcast(idx(2), lanes), lanes // 2 + 1),
        (Ramp(ZERO, ONE, lanes) % Broadcast(idx(3), lanes), min(3, lanes)),
        (lane // Broadcast(idx(lanes), lanes), 1),
    ):
        length = (times - 1) * 5 + span
        A, C = make_buffer("A", [length], kind), make_buffer("C", [times * lanes], kind)
        func = PrimFunc("repeated", (A, C), loop(A, C, place), (C,))
        kernel = native(func, opt_level=1)
        assert "masked.gather" not in kernel.code.llvm_ir
        agree(kernel, func, sample(kind, length), sample(kind, times * lanes, 2))


@pytest.mark.parametrize("lanes", [2, 4, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_from_a_few_vectors_in_turn_are_whole_loads_and_shuffles(native, kind, lanes):
    """Three vectors interleaved; where the place is not known, all that lies between is loaded at once."""
    span, i = 3 * lanes, index_var("i")
    A, C = make_buffer("A", [2 * span], kind), make_buffer("C", [2 * span], kind)

    def interleaved(part, base):
        at = Ramp(idx(part * lanes), ONE, lanes)
        place = at % Broadcast(idx(3), lanes) * Broadcast(idx(lanes), lanes) + at // Broadcast(idx(3), lanes)
        return Store(C, (Ramp(base + part * lanes, ONE, lanes),), Load(A, (Broadcast(base, lanes) + place,)))

    known = seq(*(interleaved(part, idx(span)) for part in range(3)))
    varying = For(i, ZERO, ONE, "serial", seq(*(interleaved(part, i * span) for part in range(3))))
    func = PrimFunc("interleaved", (A, C), seq(varying, known), (C,))
    kernel = native(func, opt_level=1)
    assert "masked.gather" not in kernel.code.llvm_ir
    agree(kernel, func, sample(kind, 2 * span), sample(kind, 2 * span, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_masked_lanes_are_loaded_under_masks_where_not_all_that_the_mask_hides_is_there_to_read(native, kind):
    """Two vectors interleaved, of the second half more and more lanes, of a buffer that has all of them, or not."""
    lanes, used, i = 8, 5, index_var("i")
    at = Ramp(idx(lanes), ONE, lanes)
    place = at % Broadcast(idx(2), lanes) * Broadcast(idx(lanes), lanes) + at // Broadcast(idx(2), lanes)
    mask = Compare("<", Ramp(ZERO, ONE, lanes), Broadcast(i, lanes))
    for length, masked in ((2 * lanes, False), (2 * lanes - 1, True)):
        A, C = make_buffer("A", [length], kind), make_buffer("C", [used * lanes], kind)
        store = Store(C, (Ramp(i * lanes, ONE, lanes),), Load(A, (place,), mask))
        func = PrimFunc("hidden", (A, C), For(i, ZERO, idx(used), "serial", store), (C,))
        kernel = native(func, opt_level=1)
        assert ("masked.load" in kernel.code.llvm_ir) is masked
        assert "masked.gather" not in kernel.code.llvm_ir
        agree(kernel, func, sample(kind, length), sample(kind, used * lanes, 2))


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64"])
def test_masked_lanes_near_each_other_touch_only_what_lanes_that_are_on_read(native, kind, lanes, target):
    """Every second or third element, each element twice, backwards: the lanes from one to another are on."""
    first, last = (make_buffer(name, [1], "int64") for name in ("first", "last"))
    low, high = (Cast(dtype("index"), Load(limit, (ZERO,))) for limit in (first, last))
    lane = Ramp(ZERO, ONE, lanes)
    between = (Compare(">=", lane, Broadcast(low, lanes)), Compare("<", lane, Broadcast(high, lanes)))
    down = Ramp(idx(2 * lanes - 2), idx(-2), lanes)
    for place in (Ramp(ZERO, idx(2), lanes), Ramp(ZERO, idx(3), lanes), lane // Broadcast(idx(2), lanes), down):
        for condition in (*between, Logical("and", *between)):
            A, C = make_buffer("A", [3 * lanes - 2], kind), make_buffer("C", [lanes], kind)
            store = Store(C, (lane,), Load(A, (place,), condition))
            func = PrimFunc("near", (A, first, last, C), store, (C,))
            kernel = native(func, target, opt_level=1)
            assert "masked.gather" not in kernel.code.llvm_ir
            for bounds in ((0, lanes), (1, lanes - 1), (2, 2), (-5, 1), (lanes - 1, 99)):
                limits = (np.array([bound]) for bound in bounds)
                agree(kernel, func, sample(kind, 3 * lanes - 2), *limits, sample(kind, lanes, 2))


@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
@pytest.mark.parametrize("lanes", [2, 8, 16, 64])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_lanes_are_compared_with_what_is_near_and_what_is_far(native, op, lanes, target):
    limit, C = make_buffer("limit", [1], "int64"), make_buffer("C", [2, lanes], "bool")
    bound = Broadcast(Cast(dtype("index"), Load(limit, (ZERO,))), lanes)
    up, down = Ramp(idx(3), ONE, lanes), Ramp(ZERO, idx(-2), lanes)
    compared = (Compare(op, values, bound) for values in (up, down))
    body = seq(*(Store(C, (idx(at), Ramp(ZERO, ONE, lanes)), mask) for at, mask in enumerate(compared)))
    func = PrimFunc("compared", (limit, C), body, (C,))
    kernel = native(func, target, opt_level=1)
    for number in (*range(-2 * lanes - 1, lanes + 5), -(1 << 40), 1 << 40, (1 << 32) + 4, -(1 << 62), 1 << 62):
        agree(kernel, func, np.array([number]), np.zeros((2, lanes), bool))


@pytest.mark.parametrize("kind", KINDS)
def test_lanes_of_a_known_mask_are_shuffled_from_no_more_than_it_shows(native, kind):
    """The last elements twice each, or every second one: the buffer ends with the last that is shown."""
    lanes, used, i = 8, 5, index_var("i")
    lane = Ramp(ZERO, ONE, lanes)
    mask = Compare("<", lane, Broadcast(idx(used), lanes))
    for place, span in ((lane // Broadcast(idx(2), lanes), 3), (Ramp(ZERO, idx(2), lanes), 9)):
        length = 4 + span
        A, C = make_buffer("A", [length], kind), make_buffer("C", [5 * lanes], kind)
        load = Load(A, (Broadcast(i, lanes) + place,), mask)
        store = Store(C, (Ramp(i * lanes, ONE, lanes),), load)
        func = PrimFunc("ends", (A, C), For(i, ZERO, idx(5), "serial", store), (C,))
        kernel = native(func, opt_level=1)
        assert "masked.gather" not in kernel.code.llvm_ir
        agree(kernel, func, sample(kind, length), sample(kind, 5 * lanes, 2))


@pytest.mark.parametrize("lanes", [2, 3, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_gather_and_scatter_with_and_without_masks(native, kind, lanes):
    A, P = make_buffer("A", [64], kind), make_buffer("P", [lanes], "int64")
    B, C = make_buffer("B", [64], kind), make_buffer("C", [lanes], kind)
    D, E = make_buffer("D", [64], kind), make_buffer("E", [lanes], kind)
    lane = Ramp(ZERO, ONE, lanes)
    where = Cast(dtype("index").with_lanes(lanes), Load(P, (lane,)))
    mask = Compare("<", where, Broadcast(idx(32), lanes))
    body = seq(
        Store(C, (lane,), Load(A, (where,))),
        Store(E, (lane,), Load(A, (where,), mask)),
        Store(B, (where,), Load(C, (lane,))),
        Store(D, (where,), Load(C, (lane,)), mask),
    )
    func = PrimFunc("gathered", (A, P, B, C, D, E), body, (B, C, D, E))
    positions = np.random.default_rng(3).permutation(64)[:lanes].astype(np.int64)
    arrays = [sample(kind, 64), positions, *(sample(kind, n, n) for n in (64, lanes, 64, lanes))]
    agree(native(func), func, *arrays)


@pytest.mark.parametrize("lanes", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_masked_accesses_beyond_the_buffer_touch_nothing(native, kind, lanes):
    """A loop over 16 columns in steps of the lanes, of which 13 exist; and the same backwards."""
    n = 13
    A, B, C = (make_buffer(name, [n], kind) for name in "ABC")
    i = index_var("i")
    base = i * lanes
    lane = Ramp(base, ONE, lanes) if lanes > 1 else base
    down = Ramp(idx(n - 1) - base, idx(-1), lanes) if lanes > 1 else idx(n - 1) - base
    limit, zero = (Broadcast(idx(v), lanes) if lanes > 1 else idx(v) for v in (n, 0))
    inside, above = Compare("<", lane, limit), Compare(">=", down, zero)
    body = seq(
        Store(B, (lane,), Load(A, (lane,), inside), inside),
        Store(C, (down,), Load(A, (down,), above), above),
    )
    func = PrimFunc("masked", (A, B, C), For(i, ZERO, idx(-(-n // lanes)), "serial", body), (B, C))
    agree(native(func), func, sample(kind, n), sample(kind, n, 1), sample(kind, n, 2))


def test_lanes_switched_off_read_as_zero(native):
    A, B = make_buffer("A", [8], "float32"), make_buffer("B", [8], "float32")
    lane = Ramp(ZERO, ONE, 8)
    mask = Compare("<", lane, Broadcast(idx(5), 8))
    func = PrimFunc("zeros", (A, B), Store(B, (lane,), Load(A, (lane,), mask)), (B,))
    out = np.full(8, 7, np.float32)
    assert native(func)(np.arange(1, 9, dtype=np.float32), out) == 0
    np.testing.assert_array_equal(out, [1, 2, 3, 4, 5, 0, 0, 0])


def test_views_with_strides_and_offset(native):
    """A transposed window of a matrix, addressed with scalars and with a vector in each place."""
    data = make_buffer("M", [8, 10], "float32")
    window = make_buffer("W", [4, 5], "float32", strides=[1, 10], elem_offset=12, data=data.data)
    O = make_buffer("O", [4, 5], "float32")
    i, j = index_var("i"), index_var("j")
    rows = For(i, ZERO, idx(4), "serial", Store(O, (i, Ramp(ZERO, ONE, 5)), Load(window, (i, Ramp(ZERO, ONE, 5)))))
    more = Load(window, (Ramp(ZERO, ONE, 4), Broadcast(j, 4))) + Load(O, (Ramp(ZERO, ONE, 4), j))
    columns = For(j, ZERO, idx(5), "serial", Store(O, (Ramp(ZERO, ONE, 4), j), more))
    func = PrimFunc("views", (data, O), seq(rows, columns), (O,))
    m, o = np.arange(80, dtype=np.float32).reshape(8, 10), np.zeros((4, 5), np.float32)
    assert native(func)(m, o) == 0
    np.testing.assert_array_equal(o, 2 * m[1:6, 2:6].T)


def test_symbolic_shapes_come_from_the_slots_behind_the_addresses(native):
    n, m = index_var("n"), index_var("m")
    A, B = make_buffer("A", [n, m], "float32"), make_buffer("B", [m, n], "float32")
    i, j = index_var("i"), index_var("j")
    body = For(i, ZERO, n, "serial", For(j, ZERO, m, "serial", Store(B, (j, i), Load(A, (i, j)))))
    kernel = native(PrimFunc("transpose", (A, B), body, (B,)))
    for shape in ((3, 7), (1, 1), (0, 4), (5, 0)):
        a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        b = np.zeros(shape[::-1], np.float32)
        assert kernel(a, b) == 0
        np.testing.assert_array_equal(b, a.T)


@pytest.mark.parametrize("scope", ["register", "local", "global"])
@pytest.mark.parametrize("kind", ["float32", "float32x16", "int16x3", "bool"])
def test_allocations_of_each_scope(native, kind, scope):
    """Fill in a loop, read back in another order; so the index is not constant and slots do not apply."""
    element = dtype(kind)
    A, B = make_buffer("A", [6, element.lanes], element.element), make_buffer("B", [6, element.lanes], element.element)
    T = make_buffer("T", [6], element, scope=scope)
    i, j = index_var("i"), index_var("j")
    lane = Ramp(ZERO, ONE, element.lanes) if element.lanes > 1 else ZERO
    fill = For(i, ZERO, idx(6), "serial", Store(T, (i,), Load(A, (i, lane))))
    back = For(j, ZERO, idx(6), "serial", Store(B, (idx(5) - j, lane), Load(T, (j,))))
    func = PrimFunc("local", (A, B), Allocate(T, seq(fill, back)), (B,))
    a = sample(str(element.element), 6 * element.lanes).reshape(6, -1)
    b = np.zeros_like(a)
    kernel = native(func)
    assert kernel(a, b) == 0
    np.testing.assert_array_equal(b, a[::-1])
    assert ("aligned_alloc" in kernel.code.llvm_ir) == (scope == "global")


@pytest.mark.parametrize("form", ["elements", "vectors", "ramps"])
def test_register_buffers_with_constant_indices_leave_no_stack(native, form):
    """Whatever way they are addressed: as scalars, as elements that are vectors, as ramps over scalars."""
    lanes = 1 if form == "elements" else 8
    A, B = make_buffer("A", [4 * lanes], "float32"), make_buffer("B", [4 * lanes], "float32")
    T = make_buffer("T", [4] if form != "ramps" else [32], "float32x8" if form == "vectors" else "float32", "register")
    i = index_var("i")

    def wide(n):
        return Ramp(idx(n * lanes), ONE, lanes) if lanes > 1 else idx(n)

    def slot(n):
        return wide(n) if form == "ramps" else idx(n)

    load = [Store(T, (slot(n),), Load(A, (wide(n),))) for n in range(4)]
    step = [Store(T, (slot(n),), Load(T, (slot(n),)) + Load(A, (wide(n),))) for n in range(4)]
    back = [Store(B, (wide(n),), Load(T, (slot(n),))) for n in range(4)]
    func = PrimFunc("tile", (A, B), Allocate(T, seq(*load, For(i, ZERO, idx(9), "serial", seq(*step)), *back)), (B,))
    kernel = native(func)
    a, b = np.arange(4 * lanes, dtype=np.float32), np.zeros(4 * lanes, np.float32)
    assert kernel(a, b) == 0
    np.testing.assert_array_equal(b, 10 * a)
    assert "alloca" not in kernel.code.llvm_ir_optimized


def test_masked_accesses_of_register_buffers_leave_no_stack(native):
    A, B = make_buffer("A", [8], "float32"), make_buffer("B", [16], "float32")
    T = make_buffer("T", [16], "float32", "register")
    i = index_var("i")
    lane, high = Ramp(ZERO, ONE, 8), Ramp(idx(8), ONE, 8)
    mask = Compare("<", Load(A, (lane,)), Broadcast(const(3.0, "float32"), 8))
    first = [Store(T, (at,), Load(A, (lane,))) for at in (lane, high)]
    step = Store(T, (lane,), Load(T, (lane,)) * 2.0, mask)
    last = [Store(B, (lane,), Load(T, (lane,))), Store(B, (high,), Load(T, (high,), mask))]
    func = PrimFunc("tail", (A, B), Allocate(T, seq(*first, For(i, ZERO, idx(3), "serial", step), *last)), (B,))
    kernel = native(func)
    agree(kernel, func, np.arange(8, dtype=np.float32), np.zeros(16, np.float32))
    assert "alloca" not in kernel.code.llvm_ir_optimized


def test_large_and_symbolic_allocations_are_on_the_heap_and_freed(native):
    n = index_var("n")
    A, B = make_buffer("A", [n], "float64"), make_buffer("B", [n], "float64")
    T = make_buffer("T", [n], "float64", scope="local")
    U = make_buffer("U", [STACK_LIMIT // 8 + 1], "float64", scope="local")
    i = index_var("i")
    body = seq(
        Store(T, (i,), Load(A, (i,)) * 3.0), Store(U, (ZERO,), Load(T, (i,))), Store(B, (i,), Load(U, (ZERO,)) + 1.0)
    )
    func = PrimFunc("heap", (A, B), Allocate(T, Allocate(U, For(i, ZERO, n, "serial", body))), (B,))
    kernel = native(func)
    for count in (0, 1, 5000):
        a, b = np.random.default_rng(0).normal(size=count), np.zeros(count)
        assert kernel(a, b) == 0
        np.testing.assert_array_equal(b, a * 3 + 1)
    assert kernel.code.llvm_ir.count("call ptr") == 2
    assert kernel.code.llvm_ir.count('call void @"free"') == 3  # T again where U cannot be had


def test_no_memory_is_an_error_code(native):
    n = index_var("n")
    A = make_buffer("A", [n], "uint8")
    T = make_buffer("T", [n * (1 << 45)], "uint8", scope="global")
    pos = Cast(dtype("index"), Load(A, (ZERO,)))
    body = seq(Store(T, (pos,), Load(A, (ZERO,))), Store(A, (ZERO,), Load(T, (pos,))))
    func = PrimFunc("huge", (A,), Allocate(T, body), (A,))
    assert native(func)(np.zeros(7, np.uint8)) == -1


def test_loads_are_not_reused_across_stores(native):
    A = make_buffer("A", [4], "int32")
    value = Load(A, (ZERO,)) + 1
    body = seq(Store(A, (ZERO,), value), Store(A, (ZERO,), value), Store(A, (ONE,), value))
    func = PrimFunc("again", (A,), body, (A,))
    a = np.zeros(4, np.int32)
    assert native(func)(a) == 0
    np.testing.assert_array_equal(a, [2, 3, 0, 0])


def test_loads_are_not_reused_across_stores_inside_loops_and_branches(native):
    A = make_buffer("A", [4], "int32")
    i, x = index_var("i"), Var("x", dtype("int32"))
    value = Load(A, (ZERO,)) + 1
    inner = LetStmt(x, value, seq(Store(A, (ZERO,), x), Store(A, (ONE,), value + x)))
    func = PrimFunc("loops", (A,), seq(Store(A, (ZERO,), value), For(i, ZERO, idx(3), "serial", inner)), (A,))
    agree(native(func), func, np.zeros(4, np.int32))


def test_alignment_is_stated_only_where_proved(native):
    A = make_buffer("A", [SIZE], "float32", alignment=64)
    B = make_buffer("B", [SIZE], "float32", alignment=64)
    i = index_var("i")
    stores = [
        Store(B, (Ramp(i * 16, ONE, 16),), Load(A, (Ramp(i * 16, ONE, 16),))),
        Store(B, (Ramp(i * 4 + 2, ONE, 4),), Load(A, (Ramp(i * 8, ONE, 4),))),
    ]
    func = PrimFunc("aligned", (A, B), seq(*(For(i, ZERO, idx(10), "serial", s) for s in stores)), (B,))
    text = native(func).code.llvm_ir
    found = [line.split("align ")[1] for line in text.splitlines() if "load <" in line or "store <" in line]
    assert found == ["64", "64", "32", "8"]
