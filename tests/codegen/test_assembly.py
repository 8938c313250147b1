"""The machine code that schedules count on, for fixed x86-64 targets: tight loops, no spills, vectors only if asked."""

import re

import pytest

from loopwright.artifact.options import CodegenOptions
from loopwright.base.dtype import dtype
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import resolve_target
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Binary, Broadcast, Cast, Compare, Load, Ramp
from loopwright.ir.stmt import Allocate, For, IRModule, PrimFunc, Store, seq

ZERO, ONE = const(0, "index"), const(1, "index")


def idx(number):
    return const(number, "index")


def compiled(func, target):
    return compile_module(IRModule((func,)), resolve_target(target), CodegenOptions(cache=False))


def innermost_loop(assembly):
    """The instructions from the last label that is jumped back to, up to that jump."""
    lines = [line.strip() for line in assembly.splitlines()]
    for end in reversed(range(len(lines))):
        jump = re.fullmatch(r"j\w+\s+(\.L\w+)", lines[end])
        if jump and f"{jump.group(1)}:" in lines[:end]:
            start = lines.index(f"{jump.group(1)}:")
            return [line for line in lines[start + 1 : end + 1] if not line.startswith((".", "#"))]
    raise AssertionError(f"no loop in\n{assembly}")


def names(instructions):
    return [line.split()[0] for line in instructions]


def microkernel(rows, vectors, lanes):
    """C += A B for a tile of rows × (vectors · lanes), A and B packed in panels, the sums in registers."""
    width = vectors * lanes
    A = make_buffer("A", [64 * rows], "float32")
    B, C = (make_buffer(n, [s * width], "float32", alignment=64) for n, s in (("B", 64), ("C", rows)))
    acc = make_buffer("acc", [rows * vectors], dtype("float32").with_lanes(lanes), "register")
    k = index_var("k")
    places = [(m, n) for m in range(rows) for n in range(vectors)]

    def tile(m, n):
        return (Ramp(idx(m * width + n * lanes), ONE, lanes),)

    def slot(m, n):
        return (idx(m * vectors + n),)

    def product(m, n):
        a = Broadcast(Load(A, (k * rows + m,)), lanes)
        return a * Load(B, (Ramp(k * width + n * lanes, ONE, lanes),))

    first = [Store(acc, slot(*p), Load(C, tile(*p))) for p in places]
    steps = [Store(acc, slot(*p), Load(acc, slot(*p)) + product(*p)) for p in places]
    last = [Store(C, tile(*p), Load(acc, slot(*p))) for p in places]
    body = Allocate(acc, seq(*first, For(k, ZERO, idx(64), "serial", seq(*steps)), *last))
    return PrimFunc("microkernel", (A, B, C), body, (C,))


@pytest.mark.parametrize(
    ("target", "rows", "vectors", "lanes"),
    [("skylake-avx512", 12, 2, 16), ("skylake-avx512", 6, 4, 16), ("x86-64-v3", 6, 2, 8), ("x86-64-v3", 4, 3, 8)],
)
def test_a_register_tile_is_a_loop_of_fused_products_without_stack_traffic(target, rows, vectors, lanes):
    loop = innermost_loop(compiled(microkernel(rows, vectors, lanes), target).assembly)
    counts = {name: names(loop).count(name) for name in names(loop)}
    fused = sum(count for name, count in counts.items() if name.startswith("vfmadd") and name.endswith("ps"))
    assert fused == rows * vectors
    assert "sp)" not in " ".join(loop), "the stack is used in the loop"
    stores = [line for line in loop if line.startswith("vmov") and line.endswith(")")]
    assert stores == []
    assert len(loop) <= rows * vectors + rows + vectors + 4


def over(count, lanes, make, kind="float32"):
    A, B = make_buffer("A", [count], kind), make_buffer("B", [count], kind)
    i = index_var("i")
    at = Ramp(i * lanes, ONE, lanes) if lanes > 1 else i
    store = Store(B, (at,), make(Load(A, (at,)), Load(B, (at,))))
    return PrimFunc("over", (A, B), For(i, ZERO, idx(count // lanes), "serial", store), (B,))


def test_scalar_code_stays_scalar():
    code = compiled(over(1024, 1, lambda a, b: a * 2.0 + b), "skylake-avx512")
    assert re.search(r"[xyz]mm", code.assembly)
    assert not re.search(r"[yz]mm|[a-z]ps\b", "\n".join(innermost_loop(code.assembly)))
    assert "x float>" not in code.llvm_ir_optimized
    assert len(innermost_loop(code.assembly)) <= 7


@pytest.mark.parametrize(
    ("lanes", "kind"), [(8, "float32"), (16, "float32"), (4, "float64"), (8, "int16"), (4, "float32")]
)
def test_a_mask_takes_no_wider_vectors_than_what_it_masks(lanes, kind):
    """Cores of Intel close a unit to vectors of 256 bits while one of 512 is on its way."""
    A, B = make_buffer("A", [1024], kind), make_buffer("B", [1024], kind)
    i, where = index_var("i"), Ramp(index_var("j"), ONE, lanes)
    inside = Compare(">=", where, Broadcast(idx(3), lanes))
    store = Store(B, (Ramp(i * lanes, ONE, lanes),), Load(A, (Ramp(i * lanes + where.base, ONE, lanes),), inside))
    nest = For(where.base, ZERO, idx(7), "serial", For(i, ZERO, idx(100), "serial", store))
    code = compiled(PrimFunc("masked", (A, B), nest, (B,)), "skylake-avx512").assembly
    assert "{%k1}" in code
    assert ("zmm" in code) == (lanes * dtype(kind).storage_bits == 512)


def test_vectors_of_16_are_one_register_wide_with_avx512():
    loop = innermost_loop(compiled(over(1024, 16, lambda a, b: a * 2.0 + b), "skylake-avx512").assembly)
    assert "ymm" not in " ".join(loop)
    assert len(loop) <= 6


@pytest.mark.parametrize(("target", "lanes"), [("skylake-avx512", 16), ("x86-64-v3", 8), ("x86-64-v2", 4)])
def test_parts_of_what_is_stored_as_one_vector_are_registers(target, lanes):
    """As of a row of exponentials, which are summed, and read again in a loop: as bits of an integer they were slow."""
    A, B = (make_buffer(name, [1024 * lanes], "float32") for name in "AB")
    S = make_buffer("S", [4 * lanes], "float32")
    row = make_buffer("row", [4 * lanes], "float32", alignment=64)
    i, j = index_var("i"), index_var("j")

    def part(buffer, at):
        return Load(buffer, (Ramp(at * lanes, ONE, lanes),))

    fill = Store(row, (Ramp(ZERO, ONE, 4 * lanes),), Load(A, (Ramp(i * (4 * lanes), ONE, 4 * lanes),)) * 2.0)
    total = Store(S, (Ramp(ZERO, ONE, lanes),), part(row, idx(0)) + part(row, idx(1)) + part(row, idx(2)))
    scaled = part(row, j) * part(S, idx(0))
    again = For(j, ZERO, idx(4), "serial", Store(B, (Ramp((i * 4 + j) * lanes, ONE, lanes),), scaled))
    body = For(i, ZERO, idx(256), "serial", Allocate(row, seq(fill, total, again)))
    code = compiled(PrimFunc("rows", (A, S, B), body, (S, B)), target).assembly
    assert not re.search(r"p?extr[qd]|\bshr|movq\s+%xmm", code)


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("swap", [False, True])
def test_minimum_and_maximum_with_a_constant_are_one_instruction(op, swap):
    def clamp(a, b):
        bound = const(0.0, "float32x8")
        return Binary(op, bound, a) if swap else Binary(op, a, bound)

    loop = innermost_loop(compiled(over(1024, 8, clamp), "x86-64-v3").assembly)
    assert names(loop).count(f"v{op}ps") == 1
    assert not any(name.startswith(("vcmp", "vblend")) for name in names(loop))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize(("target", "bits"), [("x86-64", 128), ("x86-64-v3", 256), ("skylake-avx512", 512)])
def test_minimum_and_maximum_of_registers_take_one_comparison_more_for_nan(target, bits, op, kind):
    lanes = bits // dtype(kind).bits
    loop = names(innermost_loop(compiled(over(1024, lanes, lambda a, b: Binary(op, a, b), kind), target).assembly))
    assert len([name for name in loop if re.match(f"v?{op}p", name)]) == 1
    assert len([name for name in loop if "cmp" in name and name.endswith(("ps", "pd"))]) == 1
    assert not any(name.startswith("kor") for name in loop)


def test_index_division_by_constants_needs_no_division():
    A = make_buffer("A", [64], "float32")
    B = make_buffer("B", [640], "float32")
    i = index_var("i")
    load = Load(A, (Binary("//", i, idx(16)) + Binary("%", i, idx(8)) + Binary("//", i, idx(10)) * 0,))
    func = PrimFunc("divide", (A, B), For(i, ZERO, idx(640), "serial", Store(B, (i,), load)), (B,))
    text = compiled(func, "x86-64-v3").llvm_ir
    assert "lshr i64" in text
    assert "sdiv" not in text
    assert "srem" not in text


def test_half_floats_convert_by_instructions_where_there_are_some():
    func = over(1024, 8, lambda a, b: Cast(dtype("float16x8"), Cast(dtype("float32x8"), a) * 2.0), "float16")
    with_f16c = names(innermost_loop(compiled(func, "x86-64-v3").assembly))
    assert "vcvtph2ps" in with_f16c
    assert "vcvtps2ph" in with_f16c
