"""A matrix product as MLIR, at both levels: what is computed, and how a schedule computes it. Where the tools of MLIR
are installed (Debian: mlir-19-tools), the loops go on to LLVM IR by them."""

import shutil
import subprocess

import loopwright as lw
from loopwright import te

PASSES = [
    "convert-scf-to-cf",
    "func.func(arith-expand{include-bf16=true})",
    "expand-strided-metadata",
    "lower-affine",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-vector-to-llvm{force-32bit-vector-indices=false}",
    "finalize-memref-to-llvm",
    "convert-arith-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
]

n = 64
A, B = te.placeholder((n, n), "float32", name="A"), te.placeholder((n, n), "float32", name="B")
r = te.reduce_axis((0, n), name="r")
C = te.compute((n, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

s = lw.create_schedule(C)
i, j = C.op.axis
i_outer, j_outer, i_inner, j_inner = s[C].tile(i, j, 4, 16)
s[C].reorder(r, i_inner, j_inner)
s[C].unroll(i_inner)
s[C].vectorize(j_inner)
s[C].parallel(i_outer)
func = lw.lower(s, [A, B, C], name="matmul")

print("What is computed:", lw.emit_mlir(func, level="linalg"), sep="\n", end="\n\n")
loops = lw.emit_mlir(func, level="loops")
print("How, by a register tile of 4 x 16:", loops, sep="\n", end="\n\n")


def tool(name: str) -> str | None:
    return shutil.which(f"{name}-19") or shutil.which(name)


opt, translate = tool("mlir-opt"), tool("mlir-translate")
if opt is None or translate is None:
    print("mlir-opt and mlir-translate are not here: no LLVM IR")
else:
    pipeline = f"--pass-pipeline=builtin.module({','.join(PASSES)})"
    lowered = subprocess.run([opt, pipeline], input=loops, capture_output=True, text=True, check=True).stdout
    translated = subprocess.run(
        [translate, "--mlir-to-llvmir"], input=lowered, capture_output=True, text=True, check=True
    ).stdout
    products = [line.strip() for line in translated.splitlines() if "@llvm.fmuladd" in line and "call" in line]
    print(
        f"LLVM IR by mlir-opt has {len(translated.splitlines())} lines; the tile's products begin:",
        *products[:4],
        sep="\n",
    )
