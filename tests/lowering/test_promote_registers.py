"""promote_registers: accumulators leave memory, and nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Broadcast, Compare, Load, Ramp
from loopwright.ir.makers import maximum, minimum
from loopwright.ir.simplify import FunctionSimplifier
from loopwright.ir.stmt import Allocate, For, If, PrimFunc, Store, seq
from loopwright.ir.visit import walk
from loopwright.lowering.passes.flatten_buffers import flatten_buffers
from loopwright.lowering.passes.promote_registers import promote_registers
from loopwright.lowering.passes.unroll import unroll
from loopwright.lowering.passes.vectorize import vectorize

ZERO = (const(0, "index"),)
PLACES = [const(j, "index") for j in range(4)]


def gemm(nest, n, m, k, rows, vectors, lanes, init=True):
    """A register tile of ``rows`` times ``vectors`` vectors, k split in two loops."""
    width = vectors * lanes
    A, C = make_buffer("A", (n, k), "float32"), make_buffer("C", (n, m), "float32")
    B = make_buffer("Bp", (m // width, k, width), "float32")

    def tile(i, j, value):
        def element(ii, jj, ji):
            at = (i * rows + ii, (j * vectors + jj) * lanes + ji)
            return Store(C, at, value(at, ii, jj * lanes + ji))

        def column(ii, jj):
            return nest.loop("ji", lanes, lambda ji: element(ii, jj, ji), "vectorized")

        return nest.loop(
            "ii", rows, lambda ii: nest.loop("jj", vectors, lambda jj: column(ii, jj), "unrolled"), "unrolled"
        )

    def update(i, j, kk):
        return tile(i, j, lambda at, ii, c: Load(C, at) + Load(A, (i * rows + ii, kk)) * Load(B, (j, kk, c)))

    def block(i, j):
        reduction = nest.loop("ko", k // 4, lambda ko: nest.loop("ki", 4, lambda ki: update(i, j, ko * 4 + ki)))
        return seq(tile(i, j, lambda *_: const(0, "float32")) if init else None, reduction)

    body = nest.loop("i", n // rows, lambda i: nest.loop("j", m // width, lambda j: block(i, j)))
    return unroll(vectorize(flatten_buffers(nest.kernel((A, B, C), body))))


def loops_around_memory(func, name):
    """The loops in which memory of this name is loaded or stored, but no register buffer."""
    return [
        node.var.name
        for node in walk(func.body)
        if isinstance(node, For)
        for inner in walk(node.body)
        if isinstance(inner, (Load, Store)) and inner.buffer.name == name
    ]


def registers(func):
    return [
        (str(node.buffer.dtype), int(node.buffer.shape[0]))
        for node in walk(func.body)
        if isinstance(node, Allocate) and node.buffer.scope == "register"
    ]


def test_gemm_tile_of_24_vectors(nest):
    func = gemm(nest, 24, 64, 8, 12, 2, 16)
    done = promote_registers(func)
    assert registers(done) == [("float32x16", 24)]
    assert set(loops_around_memory(done, "C")) == {"i", "j"}
    assert (
        nest.count(
            done,
            Load,
        )
        - nest.count(func, Load)
        < 48
    )
    text = str(done).splitlines()
    start = next(n for n, line in enumerate(text) if "for ko" in line)
    assert sum("C_reg[" in line and "broadcast(0.0, 16)" in line for line in text[:start]) == 24
    assert sum(line.strip().startswith("C[") for line in text[start:]) == 24
    assert not any(line.strip().startswith("C[") for line in text[:start])


def test_gemm_without_init_loads_before_and_stores_after(nest):
    done = promote_registers(gemm(nest, 12, 32, 8, 12, 2, 16, init=False))
    assert registers(done) == [("float32x16", 24)]
    text = str(done).splitlines()
    start = next(n for n, line in enumerate(text) if "for ko" in line)
    assert sum("C_reg[" in line and "= C[" in line for line in text[:start]) == 24


@pytest.mark.parametrize("init", [True, False])
@pytest.mark.parametrize("size", [(4, 8, 8), (2, 16, 4), (0, 8, 4), (4, 8, 0)])
def test_gemm_means_the_same(nest, size, init):
    func = gemm(nest, *size, 2, 2, 4, init)
    nest.same(func, promote_registers(func))


@pytest.mark.parametrize("init", [True, False])
def test_gemm_of_symbolic_size(nest, init):
    """Rows are apart because the tile loop runs only where a row is at least as long as the tile is wide."""
    func = gemm(nest, index_var("n"), index_var("m"), index_var("k"), 2, 2, 4, init)
    done = promote_registers(func)
    assert registers(done) == [("float32x4", 4)]
    for n, m, k in [(4, 16, 8), (5, 17, 9), (2, 8, 0), (0, 8, 4), (2, 7, 4)]:
        nest.same(func, done, n=n, m=m, k=k)


def test_the_budget_is_kept(nest):
    func = gemm(nest, 4, 16, 8, 2, 2, 4)
    assert registers(promote_registers(func, max_registers=3)) == []
    assert registers(promote_registers(func, max_registers=4)) == [("float32x4", 4)]


def accumulate(nest, out, at, extent, value):
    return nest.loop("k", extent, lambda k: Store(out, at(k), Load(out, at(k)) + value(k)))


@pytest.mark.parametrize("k", [0, 1, 5])
def test_a_loop_that_may_not_run_touches_no_memory(nest, k):
    """``C`` has no element when k is 0, so there must be no load before the loop."""
    extent = index_var("k")
    A, C = make_buffer("A", (extent,), "int32"), make_buffer("C", (extent,), "int32")
    func = nest.kernel((A, C), accumulate(nest, C, lambda _: ZERO, extent, lambda k: Load(A, (k,))))
    done = promote_registers(func)
    assert registers(done) == [("int32", 1)]
    nest.same(func, done, k=k)


def test_overlapping_elements_stay_in_memory(nest):
    C = make_buffer("C", (9,), "int32")
    low, high = (Ramp(const(0, "index"), const(1, "index"), 8),), (Ramp(const(1, "index"), const(1, "index"), 8),)
    one = Broadcast(const(1, "int32"), 8)
    body = nest.loop("k", 3, lambda k: seq(Store(C, low, Load(C, high) + one), Store(C, high, Load(C, low) + one)))
    func = nest.kernel((C,), body)
    assert promote_registers(func) is func


def test_interleaved_vectors_are_disjoint(nest):
    C = make_buffer("C", (8,), "int32")
    even, odd = ((Ramp(const(s, "index"), const(2, "index"), 4),) for s in (0, 1))
    body = nest.loop("k", 3, lambda k: seq(Store(C, even, Load(C, odd) * Load(C, even)), Store(C, odd, Load(C, even))))
    func = nest.kernel((C,), body)
    done = promote_registers(func)
    assert registers(done) == [("int32x4", 2)]
    nest.same(func, done)


def test_moving_accesses_keep_all_of_the_memory_where_it_is(nest):
    C = make_buffer("C", (6,), "int32")
    func = nest.kernel((C,), nest.loop("k", 6, lambda k: Store(C, ZERO, Load(C, ZERO) + Load(C, (k,)))))
    assert promote_registers(func) is func


def test_conditional_stores_stay_unless_the_memory_was_just_written(nest):
    A, C = make_buffer("A", (6,), "int32"), make_buffer("C", (2,), "int32")

    def update(k):
        return If(Load(A, (k,)) > 0, Store(C, ZERO, Load(C, ZERO) + Load(A, (k,))))

    reduction = nest.loop("k", 6, update)
    func = nest.kernel((A, C), reduction)
    assert promote_registers(func) is func
    func = nest.kernel((A, C), seq(Store(C, ZERO, const(0, "int32")), reduction))
    done = promote_registers(func)
    assert registers(done) == [("int32", 1)]
    nest.same(func, done)


@pytest.mark.parametrize("begins_alike", [True, False])
def test_sums_that_begin_under_the_condition_of_all_their_accesses(nest, begins_alike):
    """Those of the last tile of a row: the interpreter would report those that are no sums of it."""
    A, C = make_buffer("A", (5,), "int32"), make_buffer("C", (3, 4), "int32")
    T = make_buffer("T", (4,), "int32", scope="local")

    def tile(i):
        def ends(j):
            return Compare("<", i + j, const(4, "index"))

        def add(j, k):
            return If(ends(j), Store(T, (j,), Load(T, (j,)) + Load(A, (k,))))

        begin = [If(ends(j if begins_alike else ZERO[0]), Store(T, (j,), const(0, "int32"))) for j in PLACES]
        total = nest.loop("k", 5, lambda k: seq(*(add(j, k) for j in PLACES)))
        write = nest.loop("j", 4 - i, lambda j: Store(C, (i, j), Load(T, (j,))))
        return Allocate(T, seq(*begin, total, write))

    func = nest.kernel((A, C), nest.loop("i", 3, tile))
    done = promote_registers(func)
    assert registers(done) == ([("int32", 4)] if begins_alike else [])
    nest.same(func, done)
    (terms,) = (node for node in walk(done.body) if isinstance(node, For) and node.var.name.startswith("k"))
    depths = [depth_of(store, terms.body) for store in walk(terms.body) if isinstance(store, Store)]
    assert depths == ([1, 2, 3, 4] if begins_alike else [1, 1, 1, 1])


def depth_of(stmt, root):
    """In how many conditions a statement stands."""
    return sum(isinstance(around, If) and any(each is stmt for each in walk(around)) for around in walk(root))


def test_conditions_stand_inside_each_other_only_where_one_implies_the_other(nest):
    """Of ends that do not follow each other, each is tested by itself; what begins under two conditions is added to
    under both."""
    A, C = make_buffer("A", (5,), "int32"), make_buffer("C", (4, 4), "int32")
    T = make_buffer("T", (4,), "int32", scope="local")
    order = [1, 3, 0, 2]

    def tile(i):
        def both(j, stmt):
            return If(Compare("<", i + j, const(4, "index")), If(Compare("<", j, i), stmt))

        def add(j, k):
            return both(j, Store(T, (j,), Load(T, (j,)) + Load(A, (k,))))

        begin = [both(PLACES[j], Store(T, (PLACES[j],), const(0, "int32"))) for j in order]
        total = nest.loop("k", 5, lambda k: seq(*(add(PLACES[j], k) for j in order)))
        write = [both(j, Store(C, (i, j), Load(T, (j,)))) for j in PLACES]
        return Allocate(T, seq(*begin, total, *write))

    func = nest.kernel((A, C), nest.loop("i", 4, tile))
    done = promote_registers(func)
    assert registers(done) == [("int32", 4)]
    nest.same(func, done)


def test_two_outputs_with_interleaved_inits(nest):
    A, C = make_buffer("A", (7,), "int32"), make_buffer("C", (2,), "int32")
    best, where = (make_buffer(n, (1,), "int32", scope="local") for n in ("best", "where"))

    def update(k):
        return If(
            Load(A, (k,)) > Load(best, ZERO), seq(Store(best, ZERO, Load(A, (k,))), Store(where, ZERO, Load(A, ZERO)))
        )

    init = seq(Store(best, ZERO, const(-100, "int32")), Store(where, ZERO, const(0, "int32")))
    last = seq(Store(C, ZERO, Load(best, ZERO)), Store(C, (const(1, "index"),), Load(where, ZERO)))
    func = nest.kernel((A, C), Allocate(best, Allocate(where, seq(init, nest.loop("k", 7, update), last))))
    done = promote_registers(func)
    assert registers(done) == [("int32", 1), ("int32", 1)]
    nest.same(func, done)


def test_two_outputs_accumulate_side_by_side(nest):
    A = make_buffer("A", (7,), "int32")
    C, D = make_buffer("C", (1,), "int32"), make_buffer("D", (1,), "int32")
    init = seq(Store(C, ZERO, const(0, "int32")), Store(D, ZERO, const(1, "int32")))
    update = nest.loop(
        "k",
        7,
        lambda k: seq(Store(C, ZERO, Load(C, ZERO) + Load(A, (k,))), Store(D, ZERO, Load(D, ZERO) * Load(C, ZERO))),
    )
    func = PrimFunc("kernel", (A, C, D), seq(init, update), (C, D))
    done = promote_registers(func)
    assert registers(done) == [("int32", 1), ("int32", 1)]
    nest.same(func, done)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_masked_tiles(nest, n):
    size = index_var("n")
    A, C = make_buffer("A", (5, size), "float32"), make_buffer("C", (size,), "float32")

    def lane(v):
        return If(v < size, Store(C, (v,), Load(C, (v,)) + 1.0))

    body = nest.loop("k", 5, lambda k: nest.loop("v", 4, lane, "vectorized"))
    func = vectorize(nest.kernel((A, C), body))
    done = promote_registers(func)
    assert registers(done) == [("float32x4", 1)]
    nest.same(func, done, n=n)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("width", [5, 6, 8])
def test_vectors_that_end_before_the_next_row_are_apart(nest, rows, width):
    """Rows of a tile that is wider than they are: the last vector of each would reach into the next row."""
    A, C = make_buffer("A", (4,), "float32"), make_buffer("C", (rows, width), "float32")

    def lane(i, v, k):
        return If(v < width, Store(C, (i, v), Load(C, (i, v)) + Load(A, (k,))))

    def row(i, k):
        return nest.loop(
            "v", 2, lambda v: nest.loop("l", 4, lambda lanes: lane(i, v * 4 + lanes, k), "vectorized"), "unrolled"
        )

    body = nest.loop("k", 4, lambda k: nest.loop("i", rows, lambda i: row(i, k), "unrolled"))
    simplify = FunctionSimplifier()
    func = simplify(unroll(simplify(vectorize(simplify(flatten_buffers(nest.kernel((A, C), body)))))))
    done = promote_registers(func, simplify.facts_of(func))
    assert registers(done) == [("float32x4", 2 * rows)]
    nest.same(func, done)


def test_vectors_that_end_at_a_symbolic_limit_before_the_next_row_are_apart(nest):
    size, zero, one = index_var("n"), const(0, "index"), const(1, "index")
    A, C, row_of = (make_buffer(n, s, "float32") for n, s in (("A", (4, 4)), ("C", (2 * size,)), ("row", (size,))))
    mask = Ramp(zero, one, 4) < Broadcast(size, 4)

    def row(first, k):
        at = (Ramp(first, one, 4),)
        return Store(C, at, Load(C, at, mask) + Load(A, (k, Ramp(zero, one, 4))), mask)

    body = nest.loop("k", 4, lambda k: seq(row(zero, k), row(size, k)))
    func = PrimFunc("kernel", (A, C, row_of), body, (C,))
    done = promote_registers(func)
    assert registers(done) == [("float32x4", 2)]
    nest.same(func, done, n=3)


@pytest.mark.parametrize("limit", [lambda n, m: maximum(minimum(n // 8, m), 0), lambda n, m: maximum(n // 8, 0)])
def test_rows_of_a_symbolic_width_are_apart_where_loops_over_them_run_at_all(nest, limit):
    size, other, zero, one = index_var("n"), index_var("m"), const(0, "index"), const(1, "index")
    rows = size // 8
    A, C = make_buffer("A", (4, 4), "float32"), make_buffer("C", (2 * rows * 8,), "float32")
    sizes = [make_buffer(name, (extent,), "float32") for name, extent in (("row", size), ("column", other))]

    def row(first, k):
        at = (Ramp(first, one, 4),)
        return Store(C, at, Load(C, at) + Load(A, (k, Ramp(zero, one, 4))))

    tile = nest.loop("k", 4, lambda k: seq(row(zero, k), row(rows * 8, k)))
    func = PrimFunc("kernel", (A, C, *sizes), nest.loop("j", limit(size, other), lambda j: tile), (C,))
    done = promote_registers(func)
    assert registers(done) == [("float32x4", 2)]
    nest.same(func, done, n=8, m=1)
    nest.same(func, done, n=8, m=0)


def masked_run(nest, width, count):
    """Stores to the first lanes of a vector, again and again, without a loop."""
    zero, one = const(0, "index"), const(1, "index")
    A, C = make_buffer("A", (count, width), "float32"), make_buffer("C", (width,), "float32")
    lanes = Ramp(zero, one, 4)
    mask = lanes < Broadcast(const(width, "index"), 4) if width < 4 else None
    steps = [
        Store(C, (lanes,), Load(C, (lanes,), mask) * Load(A, (const(k, "index"), lanes), mask), mask)
        for k in range(count)
    ]
    return flatten_buffers(nest.kernel((A, C), seq(*steps)))


def test_masked_stores_that_follow_each_other_are_kept_in_registers(nest):
    func = masked_run(nest, 3, 5)
    done = promote_registers(func)
    assert registers(done) == [("float32x4", 1)]
    assert [node.buffer.name for node in walk(done.body) if isinstance(node, Store)].count("C") == 1
    nest.same(func, done)


@pytest.mark.parametrize(("width", "count"), [(4, 5), (3, 1)])
def test_what_llvm_forwards_or_is_stored_once_stays(nest, width, count):
    func = masked_run(nest, width, count)
    assert promote_registers(func) is func


def test_lanes_that_are_off_still_read_as_zero(nest):
    size = index_var("n")
    C, D = make_buffer("C", (size,), "int32"), make_buffer("D", (5, 4), "int32")
    ramp = Ramp(const(0, "index"), const(1, "index"), 4)
    mask = ramp < Broadcast(size, 4)
    one = Broadcast(const(1, "int32"), 4)

    def step(k):
        return seq(Store(C, (ramp,), Load(C, (ramp,), mask) + one, mask), Store(D, (k, ramp), Load(C, (ramp,), mask)))

    func = PrimFunc("kernel", (C, D), nest.loop("k", 5, step), (C, D))
    done = promote_registers(func)
    assert registers(done) == [("int32x4", 1)]
    nest.same(func, done, n=2)


def test_temporaries_at_fixed_places_need_no_memory(nest):
    A, C = make_buffer("A", (6,), "int32"), make_buffer("C", (6,), "int32")
    T = make_buffer("T", (2,), "int32", scope="local")
    second = (const(1, "index"),)

    def item(i):
        fill = seq(Store(T, ZERO, Load(A, (i,))), Store(T, second, Load(T, ZERO) * 2))
        return seq(fill, Store(C, (i,), Load(T, second) - Load(T, ZERO)))

    func = nest.kernel((A, C), Allocate(T, nest.loop("i", 6, item)))
    done = promote_registers(func)
    assert registers(done) == [("int32", 2)]
    assert nest.count(done, Allocate) == 1
    nest.same(func, done)


def test_memory_that_is_stored_before_it_is_loaded_is_not_read_first(nest):
    """The interpreter reports reads of memory that was never written."""
    A, C = make_buffer("A", (6,), "int32"), make_buffer("C", (6,), "int32")
    T = make_buffer("T", (6,), "int32", scope="local")

    def item(i):
        return nest.loop("k", 3, lambda k: seq(Store(T, (i,), Load(A, (k,))), Store(C, (i,), Load(T, (i,)))))

    func = nest.kernel((A, C), Allocate(T, nest.loop("i", 6, item)))
    nest.same(func, promote_registers(func))


def sums_that_begin_in(T, A, i, k, first):
    begin = If(Compare("==", k, const(first, "index")), Store(T, (i,), const(0, "int32")))
    return begin, Store(T, (i,), Load(T, (i,)) * 2 + Load(A, (k,)))


def test_memory_that_the_first_iteration_stores_to_is_not_read_before_it(nest):
    A, C = make_buffer("A", (6,), "int32"), make_buffer("C", (6,), "int32")
    T = make_buffer("T", (6,), "int32", scope="local")

    def item(i):
        total = nest.loop("k", 4, lambda k: seq(*sums_that_begin_in(T, A, i, k, 2)), low=2)
        return seq(total, Store(C, (i,), Load(T, (i,))))

    func = nest.kernel((A, C), Allocate(T, nest.loop("i", 6, item)))
    done = promote_registers(func)
    assert registers(done) == [("int32", 1)]
    nest.same(func, done)


@pytest.mark.parametrize("before", [0, 2])
def test_memory_that_counts_before_a_later_iteration_stores_to_it_is_read(nest, before):
    """Sums that begin in the second iteration, or after what was there is read."""
    A, C = make_buffer("A", (6,), "int32"), make_buffer("C", (2, 6), "int32")
    T, zero = make_buffer("T", (6,), "int32"), const(0, "index")

    def step(i, k):
        found = Store(C, (zero, i), Load(C, (zero, i)) + Load(T, (i,)))
        return seq(found, *sums_that_begin_in(T, A, i, k, 2))

    loops = nest.loop("i", 6, lambda i: nest.loop("k", 6 - before, lambda k: step(i, k), low=before))
    func = PrimFunc("kernel", (A, C, T), loops, (C, T))
    done = promote_registers(func)
    assert registers(done) == [("int32", 1), ("int32", 1)]
    nest.same(func, done)


def test_parallel_loops_inside_cannot_see_registers(nest):
    A, C = make_buffer("A", (4,), "int32"), make_buffer("C", (4,), "int32")
    T = make_buffer("T", (1,), "int32")
    copy = nest.loop("p", 4, lambda p: Store(C, (p,), Load(A, (p,)) + Load(T, ZERO)), "parallel")
    func = nest.kernel((A, C), Allocate(T, nest.loop("k", 3, lambda k: seq(Store(T, ZERO, Load(A, (k,))), copy))))
    assert registers(promote_registers(func)) == []


@given(
    offsets=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    sources=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    guard=st.booleans(),
    init=st.booleans(),
    extent=st.integers(0, 3),
    lanes=st.integers(1, 3),
    limits=st.lists(st.integers(0, 4), min_size=10, max_size=10),
    unrolled=st.booleans(),
    ends=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
)
def test_random_accumulations(nest, offsets, sources, guard, init, extent, lanes, limits, unrolled, ends):
    """``ends`` are the first rows that have no elements: one for what begins there, another one for what is added."""
    C, A = make_buffer("C", (16,), "int32"), make_buffer("A", (4,), "int32")

    def at(offset):
        start = const(offset, "index")
        return (start if lanes == 1 else Ramp(start, const(1, "index"), lanes),)

    def on(offset):
        """A vector at an offset has so many lanes on, all of them at some."""
        if lanes == 1 or limits[offset] >= lanes:
            return None
        return Ramp(const(0, "index"), const(1, "index"), lanes) < Broadcast(const(limits[offset], "index"), lanes)

    def put(offset, value):
        return Store(C, at(offset), value if lanes == 1 else Broadcast(value, lanes), on(offset))

    def get(offset):
        return Load(C, at(offset), on(offset))

    def in_row(i, number, which, stmt):
        return If(i < ends[number][which], stmt) if number < len(ends) else stmt

    def step(i, k):
        stores = [
            in_row(i, number, 1, Store(C, at(to), get(to) * 3 + get(source), on(to)))
            for number, (to, source) in enumerate(zip(offsets, sources, strict=False))
        ]
        return If(Load(A, (k,)) > 0, seq(*stores)) if guard else seq(*stores)

    def row(i):
        before = [in_row(i, number, 0, put(to, const(number, "int32"))) for number, to in enumerate(offsets)]
        total = nest.loop("k", extent, lambda k: step(i, k), "unrolled" if unrolled else "serial")
        return seq(*(before if init else []), total)

    func = nest.kernel((A, C), nest.loop("i", 3, row))
    nest.same(func, promote_registers(unroll(func)))
