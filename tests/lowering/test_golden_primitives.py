"""The nest before and after each primitive, to the letter; and what runs after it computes what ran before."""

import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.pipeline import realized_function
from loopwright.lowering.primitives import primitives

TWO_STAGES = """
    B: float32[6, 8] = allocate('local')
    for i in range(6):
        for j in range(8):
            B[i, j] = A[i, j] + 1.0
    for i_1 in range(6):
        for j_1 in range(8):
            C[i_1, j_1] = B[i_1, j_1] * 2.0
"""
INLINED = """
    for i in range(6):
        for j in range(8):
            C[i, j] = (A[i, j] + 1.0) * 2.0
"""
TILED = """
    B: float32[6, 8] = allocate('local')
    for i_outer in range(2):
        for i_inner in range(4):
            if i_outer * 4 + i_inner < 6:
                for j in range(8):
                    B[i_outer * 4 + i_inner, j] = A[i_outer * 4 + i_inner, j] + 1.0
    for i in range(6):
        for j_1 in range(8):
            C[i, j_1] = B[i, j_1] * 2.0
"""


PADDED = """
    A.local: float32[6, 8] = allocate('local')
    for ax0 in range(6):
        for ax1 in range(8):
            A.local[ax0, ax1] = A[ax0, ax1]
    B: float32[6, 8] = allocate('local')
    for i in range(6):
        for j in range(8):
            B[i, j] = A.local[i, j] + 1.0
    for i_1 in range(6):
        for j_1 in range(8):
            C[i_1, j_1] = B[i_1, j_1] * 2.0
"""


def pad(s):
    s.cache_read("A", "local", ["B"], pad=0)


def inline(s):
    s["B"].compute_inline()


def tile(s):
    s["B"].split("B#0", factor=4)


GOLDEN = {
    "decide": (inline, lambda s: s.decide("rows", [1, 2, 4], 2, value=4), INLINED, INLINED),
    "split": (
        inline,
        lambda s: s["C"].split("C#0", factor=4),
        INLINED,
        """
        for i_outer in range(2):
            for i_inner in range(4):
                if i_outer * 4 + i_inner < 6:
                    for j in range(8):
                        C[i_outer * 4 + i_inner, j] = (A[i_outer * 4 + i_inner, j] + 1.0) * 2.0
        """,
    ),
    "round_up": (
        pad,
        lambda s: s["B"].round_up("B#0", factor=4),
        PADDED,
        """
        A.local: float32[8, 8] = allocate('local')
        for ax0 in range(8):
            for ax1 in range(8):
                A.local[ax0, ax1] = if_then_else(ax0 < 6, A[ax0, ax1], 0.0)
        B: float32[8, 8] = allocate('local')
        for i in range(8):
            for j in range(8):
                B[i, j] = A.local[i, j] + 1.0
        for i_1 in range(6):
            for j_1 in range(8):
                C[i_1, j_1] = B[i_1, j_1] * 2.0
        """,
    ),
    "fuse": (
        inline,
        lambda s: s["C"].fuse("C#0", "C#1"),
        INLINED,
        """
        for i_j_fused in range(48):
            C[i_j_fused // 8, i_j_fused % 8] = (A[i_j_fused // 8, i_j_fused % 8] + 1.0) * 2.0
        """,
    ),
    "reorder": (
        inline,
        lambda s: s["C"].reorder("C#1", "C#0"),
        INLINED,
        """
        for j in range(8):
            for i in range(6):
                C[i, j] = (A[i, j] + 1.0) * 2.0
        """,
    ),
    "vectorize": (
        inline,
        lambda s: s["C"].vectorize("C#1"),
        INLINED,
        """
        for i in range(6):
            for j in vectorized(8):
                C[i, j] = (A[i, j] + 1.0) * 2.0
        """,
    ),
    "unroll": (
        inline,
        lambda s: s["C"].unroll("C#0"),
        INLINED,
        """
        for i in unrolled(6):
            for j in range(8):
                C[i, j] = (A[i, j] + 1.0) * 2.0
        """,
    ),
    "parallel": (
        inline,
        lambda s: s["C"].parallel("C#0"),
        INLINED,
        """
        for i in parallel(6):
            for j in range(8):
                C[i, j] = (A[i, j] + 1.0) * 2.0
        """,
    ),
    "compute_at": (
        None,
        lambda s: s["B"].compute_at(s["C"], "C#0"),
        TWO_STAGES,
        """
        for i in range(6):
            B: float32[1, 8] = allocate('local')
            for j in range(8):
                B[0, j] = A[i, j] + 1.0
            for j_1 in range(8):
                C[i, j_1] = B[0, j_1] * 2.0
        """,
    ),
    "compute_inline": (None, inline, TWO_STAGES, INLINED),
    "compute_root": (inline, lambda s: s["B"].compute_root(), INLINED, TWO_STAGES),
    "reverse_compute_at": (
        tile,
        lambda s: s["C"].reverse_compute_at(s["B"], "B#2"),
        TILED,
        """
        for i_outer in range(2):
            B: float32[4, 8] = allocate('local')
            for i_inner in range(4):
                if i_outer * 4 + i_inner < 6:
                    for j in range(8):
                        B[i_inner, j] = A[i_outer * 4 + i_inner, j] + 1.0
            for i in range(4):
                if i_outer * 4 + i < 6:
                    for j_1 in range(8):
                        C[i_outer * 4 + i, j_1] = B[i, j_1] * 2.0
        """,
    ),
    "cache_read": (
        inline,
        lambda s: s.cache_read("A", "local", ["B"]),
        INLINED,
        """
        A.local: float32[6, 8] = allocate('local')
        for ax0 in range(6):
            for ax1 in range(8):
                A.local[ax0, ax1] = A[ax0, ax1]
        for i in range(6):
            for j in range(8):
                C[i, j] = (A.local[i, j] + 1.0) * 2.0
        """,
    ),
    "cache_write": (
        inline,
        lambda s: s.cache_write("C", "local"),
        INLINED,
        """
        C.local: float32[6, 8] = allocate('local')
        for i in range(6):
            for j in range(8):
                C.local[i, j] = (A[i, j] + 1.0) * 2.0
        for i_1 in range(6):
            for j_1 in range(8):
                C[i_1, j_1] = C.local[i_1, j_1]
        """,
    ),
}
"""For each primitive: what is done first, the step, the nest before it, and the nest after it."""


@pytest.mark.parametrize("primitive", GOLDEN)
def test_before_and_after(primitive):
    first, act, before, after = GOLDEN[primitive]
    A = te.placeholder((6, 8), name="A")
    B = te.compute((6, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((6, 8), lambda i, j: B[i, j] * 2.0, name="C")
    s = lw.create_schedule(C)
    if first is not None:
        first(s)
    assert str(s) == dedent(before).strip()
    act(s)
    assert s.trace[-1].primitive == primitive
    assert str(s) == dedent(after).strip()
    a, c = np.arange(48, dtype=np.float32).reshape(6, 8), np.zeros((6, 8), np.float32)
    lw.interpret(realized_function(s, [A, C]))(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)


def test_every_primitive_has_its_nests_here_or_in_a_file_of_its_own():
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    elsewhere = set(re.findall(r"def test_(\w+)_before_and_after\(", tests))
    assert set(primitives()) == GOLDEN.keys() | elsewhere
