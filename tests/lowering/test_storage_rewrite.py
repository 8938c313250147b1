"""storage_rewrite: allocations move out of loops, share memory, and go to the stack or the heap."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Load
from loopwright.ir.stmt import Allocate, For, If, Store, seq
from loopwright.ir.visit import walk
from loopwright.lowering.passes.storage_rewrite import storage_rewrite


def allocations(func):
    return [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]


def copy(nest, target, source, n):
    return nest.loop("i", n, lambda i: Store(target, (i,), Load(source, (i,)) + 1))


def chain(nest, length, n=100, kind="int32"):
    """Through ``length`` temporaries, each allocated around what follows."""
    A, B = make_buffer("A", (n,), kind), make_buffer("B", (n,), kind)
    temporaries = [make_buffer(f"T{i}", (n,), kind, scope="local") for i in range(length)]
    steps = [A, *temporaries, B]
    body = seq(*(copy(nest, target, source, n) for source, target in itertools.pairwise(steps)))
    for temporary in temporaries:
        body = Allocate(temporary, body)
    return nest.kernel((A, B), body)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_chain_needs_two_temporaries(nest, length):
    func = chain(nest, length)
    done = storage_rewrite(func)
    assert len(allocations(done)) == min(length, 2)
    assert all(b.scope == "local" for b in allocations(done))
    nest.same(func, done)


def test_large_memory_is_on_the_heap(nest):
    (large,) = allocations(storage_rewrite(chain(nest, 1, 4097)))
    assert large.scope == "global"
    (small,) = allocations(storage_rewrite(chain(nest, 1, 4096)))
    assert small.scope == "local"


def test_memory_of_unknown_size_is_on_the_heap_and_unshared(nest):
    n = index_var("n")
    func = chain(nest, 3, n)
    done = storage_rewrite(func)
    assert [b.scope for b in allocations(done)] == ["global"] * 3
    nest.same(func, done, n=4)


def test_allocations_leave_serial_loops(nest):
    B = make_buffer("B", (4, 6), "int32")

    def row(i):
        T = make_buffer("T", (6,), "int32", scope="local")
        fill = nest.loop("j", 6, lambda j: Store(T, (j,), const(3, "int32")))
        use = nest.loop("j", 6, lambda j: Store(B, (i, j), Load(T, (5 - j,))))
        return Allocate(T, seq(fill, use))

    func = nest.kernel((B,), nest.loop("i", 4, row))
    done = storage_rewrite(func)
    assert isinstance(done.body, Allocate)
    nest.same(func, done)


def test_parallel_iterations_keep_memory_of_their_own(nest):
    B = make_buffer("B", (4, 6), "int32")

    def row(i):
        T = make_buffer("T", (6,), "int32", scope="local")
        fill = nest.loop("j", 6, lambda j: Store(T, (j,), const(3, "int32")))
        use = nest.loop("j", 6, lambda j: Store(B, (i, j), Load(T, (5 - j,))))
        return nest.loop("k", 2, lambda k: Allocate(T, seq(fill, use)))

    func = nest.kernel((B,), nest.loop("i", 4, row, "parallel"))
    done = storage_rewrite(func)
    assert isinstance(done.body, For)
    assert isinstance(done.body.body, Allocate)
    nest.same(func, done)


def test_a_variant_that_needs_no_memory_allocates_none(nest):
    """What a function does for a few elements is not to pay for the heap memory of what it does for many."""
    n = index_var("n")
    A, B, T = (make_buffer(name, (n,), "int32") for name in "ABT")
    many = Allocate(T, seq(copy(nest, T, A, n), copy(nest, B, T, n)))
    func = nest.kernel((A, B), If(n <= 2, copy(nest, B, A, n), many))
    done = storage_rewrite(func)
    assert isinstance(done.body, If)
    assert not [node for node in walk(done.body.then) if isinstance(node, Allocate)]
    assert [buffer.name for buffer in allocations(done)] == ["T"]
    for size in (0, 2, 3, 9):
        nest.same(func, done, n=size)


def test_what_may_stay_in_registers_does_not_lie_in_larger_memory(nest):
    """LLVM keeps a few elements at constant places in registers only if they are an array of their own."""
    A, B = make_buffer("A", (100,), "int32"), make_buffer("B", (100,), "int32")
    few = make_buffer("few", (4,), "int32", scope="local")
    many = make_buffer("many", (100,), "int32", scope="local")
    first = seq(copy(nest, few, A, 4), copy(nest, B, few, 4))
    second = seq(copy(nest, many, B, 100), copy(nest, B, many, 100))
    func = nest.kernel((A, B), Allocate(few, seq(first, Allocate(many, second))))
    done = storage_rewrite(func)
    assert sorted(b.shape[0].value for b in allocations(done)) == [4, 100]
    nest.same(func, done)


@pytest.mark.parametrize("known", [True, False])
def test_more_may_stay_in_registers_where_it_is_known_what_is_accessed(nest, known):
    """As the sums of a tile, of which LLVM takes numbers of 256 bits apart where other elements lie in their memory."""
    A, B = make_buffer("A", (200,), "int32"), make_buffer("B", (200,), "int32")
    own, many = (make_buffer(name, (size,), "int32", scope="local") for name, size in (("own", 128), ("many", 200)))
    ends = [(const(k, "index"),) for k in (0, 127)]
    at_ends = [Store(to, k, Load(source, k)) for to, source in ((own, A), (B, own)) for k in ends]
    first = seq(*at_ends) if known else seq(copy(nest, own, A, 128), copy(nest, B, own, 128))
    second = seq(copy(nest, many, B, 200), copy(nest, B, many, 200))
    func = nest.kernel((A, B), seq(copy(nest, B, A, 200), Allocate(own, seq(first, Allocate(many, second)))))
    done = storage_rewrite(func)
    assert sorted(b.shape[0].value for b in allocations(done)) == ([128, 200] if known else [200])
    nest.same(func, done)


def test_what_may_stay_in_registers_shares_no_memory(nest):
    """LLVM would take it apart where any of those that share it ends."""
    func = chain(nest, 3, 16)
    done = storage_rewrite(func)
    assert len(allocations(done)) == 3
    nest.same(func, done)


def test_what_is_carried_over_a_loop_is_live_in_all_of_it(nest):
    """``kept`` is last accessed before ``fresh`` in the text, but read again in the next iteration."""
    B = make_buffer("B", (4,), "int32")
    kept, fresh = (make_buffer(name, (1,), "int32", scope="local") for name in ("kept", "fresh"))
    zero = (const(0, "index"),)

    def step(i):
        add = Store(kept, zero, Load(kept, zero) + 1)
        use = seq(Store(fresh, zero, const(50, "int32")), Store(B, (i,), Load(fresh, zero)))
        return seq(add, Allocate(fresh, use))

    last = Store(B, zero, Load(kept, zero))
    func = nest.kernel((B,), Allocate(kept, seq(Store(kept, zero, const(0, "int32")), nest.loop("i", 4, step), last)))
    done = storage_rewrite(func)
    assert len(allocations(done)) == 2
    nest.same(func, done)


def test_different_dtypes_do_not_share(nest):
    A, B = make_buffer("A", (6,), "int32"), make_buffer("B", (6,), "int32")
    S, T = make_buffer("S", (6,), "int32", scope="local"), make_buffer("T", (6,), "int64", scope="local")
    from loopwright.ir.makers import cast

    first = seq(copy(nest, S, A, 6), copy(nest, B, S, 6))
    second = seq(
        nest.loop("i", 6, lambda i: Store(T, (i,), cast("int64", Load(B, (i,))))),
        nest.loop("i", 6, lambda i: Store(B, (i,), cast("int32", Load(T, (i,))))),
    )
    func = nest.kernel((A, B), seq(Allocate(S, first), Allocate(T, second)))
    done = storage_rewrite(func)
    assert len(allocations(done)) == 2
    nest.same(func, done)


def test_sizes_that_depend_on_a_loop_stay_in_it(nest):
    B = make_buffer("B", (6,), "int32")

    def item(i):
        T = make_buffer("T", (i + 1,), "int32", scope="local")
        return Allocate(T, seq(Store(T, (i,), const(2, "int32")), Store(B, (i,), Load(T, (i,)))))

    func = nest.kernel((B,), nest.loop("i", 6, item))
    done = storage_rewrite(func)
    assert isinstance(done.body, For)
    nest.same(func, done)


def test_registers_stay_where_they_are(nest):
    B = make_buffer("B", (4,), "int32")
    R = make_buffer("R", (1,), "int32", scope="register")
    zero = (const(0, "index"),)
    step = lambda i: Allocate(R, seq(Store(R, zero, const(1, "int32")), Store(B, (i,), Load(R, zero))))  # noqa: E731
    func = nest.kernel((B,), nest.loop("i", 4, step))
    assert storage_rewrite(func) is func


@given(
    program=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
    sizes=st.lists(st.integers(2, 5), min_size=4, max_size=4),
    kind=st.sampled_from(["serial", "parallel"]),
)
def test_random_programs(nest, program, sizes, kind):
    """Copies between temporaries of different sizes, some in loops that carry values from iteration to iteration."""
    A, B = make_buffer("A", (2,), "int32"), make_buffer("B", (3, 2), "int32")
    temporaries = [make_buffer(f"T{i}", (size,), "int32", scope="local") for i, size in enumerate(sizes)]
    written = {0}
    stmts = [nest.loop("j", 2, lambda j: Store(temporaries[0], (j,), Load(A, (j,))))]
    for source, target, repeat in program:
        if source not in written:
            continue
        move = nest.loop(
            "j", 2, lambda j, s=source, t=target: Store(temporaries[t], (j,), Load(temporaries[s], (j,)) * 3 + 1)
        )
        stmts.append(nest.loop("r", 2, lambda _, move=move: move) if repeat else move)
        written.add(target)
    used = sorted(written)

    def body(i):
        total = nest.loop("j", 2, lambda j: Store(B, (i, j), sum(Load(temporaries[t], (j,)) for t in used)))
        inner = seq(*stmts, total)
        for temporary in temporaries:
            inner = Allocate(temporary, inner)
        return inner

    func = nest.kernel((A, B), nest.loop("i", 3, body, kind))
    nest.same(func, storage_rewrite(func))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_is_taken_out_of_a_loop_that_does_not_run_has_no_negative_size(n):
    """Inside the loop there is a row, so that rows at a stride of 11 take 11 n - 9 elements."""
    rows = te.var("n")
    A = te.placeholder((rows, 2), "int32", name="A")
    B = te.compute((rows, 2), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((rows, 2), lambda i, j: B[i, j] + B[rows - 1 - i, j], name="C")
    s = lw.create_schedule(C)
    s[B].storage_align(0, 11)
    s[B].compute_at(s[C], s[C].loops[0])
    func = lw.lower(s, [A, C])
    assert "max(n * 11 - 9, 0)" in str(func)
    a = np.arange(2 * n, dtype=np.int32).reshape(n, 2)
    for run in (lw.interpret(func), lw.build(s, [A, C])):
        c = np.zeros((n, 2), np.int32)
        run(a, c)
        np.testing.assert_array_equal(c, a + a[::-1] + 2)
