"""What instructions of a loop ask of a core: loads, stores, arithmetic, and sums that wait for each other."""

import pytest

from loopwright.codegen.report.assembly import read_assembly
from loopwright.codegen.report.loop_work import loop_work
from loopwright.codegen.report.x86 import reads_memory, stores_memory


def instructions(*lines):
    body = "".join(f"\t{line.replace(' ', chr(9), 1)}\n" for line in lines)
    (function,) = read_assembly(f"\t.type\tf,@function\nf:\n{body}\t.size\tf, 1\n")
    return tuple(function.instructions)


@pytest.mark.parametrize(
    ("line", "reads", "stores"),
    [
        ("vmovups (%rax), %zmm0", True, False),
        ("vmovups %zmm0, 64(%rax,%rcx,4)", False, True),
        ("vmovups %zmm0, (%rax) {%k1}", False, True),
        ("vfmadd231ps (%rax){1to16}, %zmm0, %zmm1", True, False),
        ("vbroadcastss .LCPI0_0(%rip), %ymm3", True, False),
        ("addl $1, (%rdi)", True, True),
        ("incq (%rdi)", True, True),
        ("movq $0, (%rdi)", False, True),
        ("cmpq $7, (%rdi)", True, False),
        ("leaq 8(%rdi), %rax", False, False),
        ("prefetcht0 (%rdi)", False, False),
        ("callq *(%rax)", False, False),
        ("vextractf128 $1, %ymm0, (%rax)", False, True),
        ("vpextrd $1, %xmm0, (%rax)", False, True),
        ("vaddps %ymm0, %ymm1, %ymm2", False, False),
        ("jne .LBB0_1", False, False),
        ("vzeroupper", False, False),
    ],
)
def test_instructions_load_and_store_by_the_place_of_their_operands(line, reads, stores):
    (instruction,) = instructions(line)
    assert (reads_memory(instruction), stores_memory(instruction)) == (reads, stores)


@pytest.mark.parametrize(
    ("lines", "chain"),
    [
        (["vfmadd231ps %ymm1, %ymm2, %ymm0"], 1),
        (["vfmadd231ps %ymm1, %ymm2, %ymm0", "vfmadd231ps %ymm3, %ymm4, %ymm5"], 1),
        (["vfmadd231ps %ymm1, %ymm2, %ymm0", "vfmadd231ps %ymm3, %ymm4, %ymm0"], 2),
        (["vmulps %ymm1, %ymm2, %ymm3", "vaddps %ymm3, %ymm0, %ymm0"], 1),  # the product waits for nothing
        (["vmulps %ymm0, %ymm2, %ymm3", "vaddps %ymm3, %ymm1, %ymm0"], 2),
        (["vxorps %xmm0, %xmm0, %xmm0", "vfmadd231ps %ymm1, %ymm2, %ymm0"], 0),  # begins anew each time
        (["vmovups (%rax), %ymm0", "vfmadd213ps %ymm1, %ymm2, %ymm0"], 0),
        (["vmovaps %ymm0, %ymm1", "vaddps %ymm1, %ymm2, %ymm0"], 1),  # through a copy
        (["addps %xmm1, %xmm0"], 1),
        (["mulps %xmm1, %xmm2", "movaps %xmm2, %xmm0"], 1),
        (["vaddps %zmm1, %zmm2, %zmm0 {%k1}"], 1),
        (["vaddps %zmm1, %zmm2, %zmm0 {%k1} {z}"], 0),
        (["vmaxss %xmm0, %xmm1, %xmm0"], 1),
        (["addq $4, %rax", "cmpq %rax, %rcx"], 0),
        (["vucomiss %xmm0, %xmm1"], 0),
    ],
)
def test_a_chain_is_what_waits_from_one_iteration_to_the_next(lines, chain):
    assert loop_work(instructions(*lines)).chain == chain


def test_the_work_of_a_loop_is_counted():
    work = loop_work(
        instructions(
            "vmovups (%rax), %zmm0",
            "vfmadd231ps (%rcx){1to16}, %zmm0, %zmm1",
            "vfmadd231ps %ymm3, %ymm4, %ymm5",
            "vaddss %xmm6, %xmm7, %xmm7",
            "vmovups %zmm1, (%rdx)",
            "addq $64, %rax",
            "jne .LBB0_1",
        )
    )
    assert (work.instructions, work.arithmetic, work.widest, work.bits) == (7, 3, 1, 512)
    assert (work.loads, work.stores, work.chain, work.beyond) == (2, 1, 1, ())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["callq expf@PLT"], "the call of expf"),
        (["vdivps %ymm0, %ymm1, %ymm2"], "divisions"),
        (["idivl %ecx"], "divisions"),
        (["vgatherdps (%rax,%ymm1,4), %ymm2 {%k1}"], "gathers"),
        (["vmovss (%rdi,%rcx,4), %xmm0", "vaddss %xmm1, %xmm0, %xmm0", "vmovss %xmm0, (%rdi,%rcx,4)"], "one iteration"),
    ],
)
def test_what_counts_do_not_tell_is_named(lines, said):
    (found,) = loop_work(instructions(*lines)).beyond
    assert said in found


@pytest.mark.parametrize("step", ["addq $4, %rcx", "incl %ecx"])
def test_what_moves_on_does_not_go_through_memory(step):
    lines = ["vmovss (%rdi,%rcx,4), %xmm0", "vaddss %xmm1, %xmm0, %xmm0", "vmovss %xmm0, (%rdi,%rcx,4)", step]
    assert loop_work(instructions(*lines)).beyond == ()
