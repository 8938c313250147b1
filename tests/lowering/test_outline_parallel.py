"""outline_parallel: bodies of parallel loops become functions of their own."""

import pytest

from loopwright.ir.buffer import Buffer
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Load
from loopwright.ir.stmt import Allocate, For, If, Launch, Store, seq
from loopwright.lowering.passes.outline_parallel import outline_parallel


def test_text(nest):
    n = index_var("n")
    A, B = make_buffer("A", (n,), "float32"), make_buffer("B", (n,), "float32")
    func = nest.kernel((A, B), nest.loop("i", n, lambda i: Store(B, (i,), Load(A, (i,))), "parallel"), "copy")
    module = outline_parallel(func)
    assert str(module) == (
        "def copy(A: float32[n], B: float32[n]):\n"
        "    launch(copy_parallel_0, n, [B, A, n])\n"
        "\n"
        "def copy_parallel_0(begin: index, end: index, B: float32[n], A: float32[n], n: index):\n"
        "    for i in range(begin, end):\n"
        "        B[i] = A[i]"
    )
    task = module.functions[1]
    assert task.outputs == (B,)
    for size in (0, 1, 7):
        nest.same(func, module, n=size)


@pytest.mark.parametrize("low", [0, 3])
def test_loops_that_do_not_start_at_zero(nest, low):
    B = make_buffer("B", (10,), "int32")
    func = nest.kernel((B,), nest.loop("i", 6, lambda i: Store(B, (i,), const(5, "int32")), "parallel", low=low))
    nest.same(func, outline_parallel(func))


def test_captures_variables_of_surrounding_loops_and_of_layouts(nest):
    n, m = index_var("n"), index_var("m")
    A, B = make_buffer("A", (n, m), "int32"), make_buffer("B", (n, m), "int32")

    def row(i):
        return nest.loop("j", m, lambda j: Store(B, (i, j), Load(A, (i, j)) + Load(B, (i, j))), "parallel", low=0)

    func = nest.kernel((A, B), nest.loop("i", n, row))
    module = outline_parallel(func)
    captured = [p.name for p in module.functions[1].params]
    assert captured[:4] == ["begin", "end", "B", "A"]
    assert sorted(captured[4:]) == ["i", "m", "n"]
    nest.same(func, module, n=3, m=5)


def test_one_launch_a_nest(nest):
    B = make_buffer("B", (3, 4), "int32")
    inner = lambda i: nest.loop("j", 4, lambda j: Store(B, (i, j), const(1, "int32")), "parallel")  # noqa: E731
    func = nest.kernel((B,), seq(nest.loop("i", 3, inner, "parallel"), nest.loop("k", 3, inner, "parallel")))
    module = outline_parallel(func)
    assert [f.name for f in module.functions] == ["kernel", "kernel_parallel_0", "kernel_parallel_1"]
    assert nest.count(module.entry, Launch) == 2
    assert all(nest.count(f, For, kind="parallel") == 0 for f in module.functions)
    nest.same(func, module)


def test_memory_allocated_outside_is_captured_once(nest):
    T, B = make_buffer("T", (4, 2), "int32"), make_buffer("B", (8,), "int32")
    flat = make_buffer("T", (8,), "int32", data=T.data)
    fill = nest.loop("i", 4, lambda i: nest.loop("j", 2, lambda j: Store(T, (i, j), const(1, "int32"))), "parallel")
    use = nest.loop("i", 8, lambda i: Store(B, (i,), Load(flat, (i,)) + 1), "parallel")
    func = nest.kernel((B,), Allocate(T, seq(fill, use)))
    module = outline_parallel(func)
    assert [len([p for p in f.params if isinstance(p, Buffer)]) for f in module.functions] == [1, 1, 2]
    nest.same(func, module)


def test_private_memory_is_allocated_once_a_chunk(nest):
    B = make_buffer("B", (6,), "int32")
    T = make_buffer("T", (1,), "int32", scope="local")
    zero = (const(0, "index"),)
    body = nest.loop(
        "i", 6, lambda i: Allocate(T, seq(Store(T, zero, const(2, "int32")), Store(B, (i,), Load(T, zero)))), "parallel"
    )
    func = nest.kernel((B,), body)
    module = outline_parallel(func)
    assert isinstance(module.functions[1].body, Allocate)
    nest.same(func, module)


def test_private_memory_of_symbolic_size_is_allocated_once_a_chunk(nest):
    n = index_var("n")
    B = make_buffer("B", (6, n), "int32")
    T = make_buffer("T", (n,), "int32")

    def item(i):
        fill = nest.loop("j", n, lambda j: Store(T, (j,), const(2, "int32")))
        return Allocate(T, seq(fill, nest.loop("j", n, lambda j: Store(B, (i, j), Load(T, (j,))))))

    func = nest.kernel((B,), nest.loop("i", 6, item, "parallel"))
    module = outline_parallel(func)
    assert isinstance(module.functions[1].body, Allocate)
    nest.same(func, module, n=3)


def test_memory_whose_size_depends_on_the_iteration_stays_inside(nest):
    B = make_buffer("B", (6,), "int32")

    def item(i):
        T = make_buffer("T", (i + 1,), "int32", scope="local")
        return Allocate(T, seq(Store(T, (i,), const(2, "int32")), Store(B, (i,), Load(T, (i,)))))

    func = nest.kernel((B,), nest.loop("i", 6, item, "parallel"))
    module = outline_parallel(func)
    assert isinstance(module.functions[1].body, For)
    nest.same(func, module)


def test_conditional_launch(nest):
    n = index_var("n")
    B = make_buffer("B", (n,), "int32")
    func = nest.kernel((B,), If(n > 2, nest.loop("i", n, lambda i: Store(B, (i,), const(1, "int32")), "parallel")))
    for size in (2, 3):
        nest.same(func, outline_parallel(func), n=size)
