"""Reading assembly: functions, instructions with their lines, loops; and what instructions of x86-64 do."""

import pytest

from loopwright.codegen.report.assembly import Instruction, read_assembly
from loopwright.codegen.report.x86 import Counts, count

NESTED = """
	.text
	.p2align	4
	.type	outer,@function
outer:                                  # a comment
.Lfunc_begin0:
	.loc	0 3 1 prologue_end
	xorl	%eax, %eax
	.p2align	4
.LBB0_1:
	movq	%rdi, %r8                       # kept
	.loc	0 5 1 is_stmt 0
.LBB0_2:
	vmovups	(%rsi,%r8,4), %ymm0
	testq	%r9, %r9
	je	.LBB0_4
	.loc	0 7 1
	vmovups	%ymm0, 32(%rsp)
	jmp	.LBB0_5
.LBB0_4:
	vmovups	%ymm0, 64(%rsp)
.LBB0_5:
	.loc	0 5 1
	incq	%r8
	jne	.LBB0_2
	.loc	0 3 1
	incq	%rax
	cmpq	$8, %rax
	jne	.LBB0_1
	retq
.Lfunc_end0:
	.size	outer, .Lfunc_end0-outer
	.type	"strange name",@function
"strange name":
	jmp	outer
.Lfunc_end1:
	.size	"strange name", .Lfunc_end1-"strange name"
"""


def test_loops_are_found_with_their_nesting_and_their_own_instructions():
    outer, other = read_assembly(NESTED)
    assert [outer.name, other.name] == ["outer", "strange name"]
    assert [str(i) for i in other.straight] == ["jmp outer"]
    around, inside = outer.loops
    assert inside.parent is around
    assert around.parent is None
    assert [i.name for i in around.own] == ["movq", "incq", "cmpq", "jne"]
    assert [(i.name, i.line) for i in inside.own] == [
        *(("vmovups", 5), ("testq", 5), ("je", 5)),
        *(("vmovups", 7), ("jmp", 7), ("vmovups", 7), ("incq", 5), ("jne", 5)),
    ]
    assert (inside.back.line, around.back.line) == (5, 3)
    assert [str(i) for i in outer.straight] == ["xorl %eax, %eax", "retq "]
    assert inside.own[0].operands == ("(%rsi,%r8,4)", "%ymm0")


def test_a_loop_of_one_block_and_one_whose_test_comes_first():
    (function,) = read_assembly(
        "\t.type\tf,%function\nf:\n.LBB0_1:\n\tsubs\tx0, x0, #1\n\tb.ne\t.LBB0_1\n"
        ".LBB0_2:\n\tcbz\tx1, .LBB0_4\n\tfmla\tv0.4s, v1.4s, v2.4s\n\tb\t.LBB0_2\n.LBB0_4:\n\tret\n\t.size\tf, 1\n"
    )
    assert sorted([i.name for i in loop.own] for loop in function.loops) == [["cbz", "fmla", "b"], ["subs", "b.ne"]]
    assert [i.name for i in function.straight] == ["ret"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vfmadd231ps (%rax), %ymm1, %ymm2", {"ymm": 1, "fused": 1}),
        ("vfnmadd213sd %xmm0, %xmm1, %xmm2", {"scalar": 1}),
        ("vmulps %zmm0, %zmm1, %zmm2", {"zmm": 1, "products": 1}),
        ("addps %xmm0, %xmm1", {"xmm": 1, "sums": 1}),
        ("vaddss (%rsp), %xmm1, %xmm2", {"scalar": 1, "reloaded": 1}),
        ("vmovsd %xmm1, 8(%rsp)", {"scalar": 1, "stored": 1}),
        ("vpabsd %ymm0, %ymm1", {"ymm": 1}),
        ("vpdpbusd %zmm0, %zmm1, %zmm2", {"zmm": 1}),
        ("vcvtsi2ssl %eax, %xmm0, %xmm0", {"scalar": 1}),
        ("cvttss2si %xmm0, %rax", {"scalar": 1}),
        ("vcvtps2pd %xmm0, %ymm0", {"ymm": 1}),
        ("vmaskmovps %ymm0, %ymm1, (%rdi)", {"ymm": 1, "masked": 1}),
        ("vmovups (%rsi), %zmm0 {%k1} {z}", {"zmm": 1, "masked": 1}),
        ("vblendmps %zmm1, %zmm2, %zmm0 {%k1}", {"zmm": 1}),
        ("vgatherqps (%rdi,%zmm0,4), %ymm2 {%k2}", {"zmm": 1, "gathers": 1, "masked": 1}),
        ("vscatterdps %zmm0, (%rdi,%zmm1,4) {%k1}", {"zmm": 1, "scatters": 1, "masked": 1}),
        ("vinsertps $16, %xmm1, %xmm0, %xmm0", {"xmm": 1, "one_lane": 1}),
        ("vinsertf64x4 $1, %ymm2, %zmm0, %zmm0", {"zmm": 1}),
        ("idivl %ecx", {"divisions": 1}),
        ("movq 48(%rsp), %rax", {"reloaded": 1}),
        ("movq %rax, 48(%rsp)", {"stored": 1}),
        ("cmpq %rax, 48(%rsp)", {"reloaded": 1}),
        ("leaq 48(%rsp), %rax", {}),
        ("jne .LBB0_1", {"branches": 1}),
        ("jmp .LBB0_1", {}),
        ("callq sinf@PLT", {"calls": ("sinf",)}),
        ("jmp memcpy@PLT", {"calls": ("memcpy",)}),
        ("movq (%rbp), %rax", {}),
    ],
)
def test_what_an_instruction_of_x86_does(text, expected):
    name, _, rest = text.partition(" ")
    (function,) = read_assembly(f"\t.type\tf,@function\nf:\n\t{name}\t{rest}\n\t.size\tf, 1\n")
    assert count(function.straight, frame_pointer=False) == Counts(instructions=1, **expected)


def test_the_frame_pointer_reaches_the_stack_and_some_lines_use_the_stack_on_purpose():
    reload = Instruction("movq", ("-8(%rbp)", "%rax"), 4)
    assert count([reload], frame_pointer=True).reloaded == 1
    assert count([reload], frame_pointer=True, stack_lines={4}).reloaded == 0
    assert count([reload], frame_pointer=False).reloaded == 0
