"""MLIR of lowered functions: it verifies, it runs, and computes what our own kernels do; equal programs, equal text."""

from typing import get_args

import mlir_programs as programs
import mlir_tools as tools
import numpy as np

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.compile import compile_module
from loopwright.ir.expr import Expr, Reduce, TensorRead
from loopwright.ir.stmt import Stmt
from loopwright.ir.visit import walk
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.runtime.kernel import Kernel

PROGRAMS = programs.programs()
TARGET = lw.resolve_target("native")


def same(found, wanted):
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
    else:
        tolerance = {2: 0.02, 4: 2e-5, 8: 1e-12}[wanted.dtype.itemsize]
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=tolerance, atol=tolerance)


def mlir_arguments(program):
    """The arrays, and of launched functions nothing else: dimensions are read off their shapes."""
    return [a.copy() for a in program.arrays]


def test_the_programs_have_every_node_of_the_loop_ir():
    found = {type(node) for p in PROGRAMS.values() for f in p.module.functions for node in walk(f.body)}
    assert found >= {*get_args(Expr), *get_args(Stmt)} - {TensorRead, Reduce}


@tools.needs_xdsl
def test_the_programs_verify_in_xdsl():
    from xdsl_tools import verify_by_xdsl

    verify_by_xdsl({name: lw.emit_mlir(p.emitted) for name, p in PROGRAMS.items()})


@tools.needs_mlir
def test_the_programs_compute_what_our_kernels_do(tmp_path):
    modules = {name: lw.emit_mlir(p.emitted) for name, p in PROGRAMS.items()}
    results = tools.run_all(modules, {name: mlir_arguments(p) for name, p in PROGRAMS.items()}, tmp_path)
    for name, program in PROGRAMS.items():
        kernel = Kernel(program.func, compile_module(outline_parallel(program.func), TARGET, CodegenOptions()))
        expected = [a.copy() for a in program.arrays]
        kernel(*expected)
        for found, wanted in zip(results[name], expected, strict=True):
            same(found, wanted)


def test_equal_programs_give_equal_text():
    for name, program in programs.programs().items():
        assert lw.emit_mlir(program.emitted) == lw.emit_mlir(PROGRAMS[name].emitted)


def test_names_come_from_the_schedule():
    text = lw.emit_mlir(PROGRAMS["matmul"].func)
    assert "func.func @matmul(%A: memref<37x24xf32>, %B: memref<24x45xf32>, %C: memref<37x45xf32>)" in text
    for name in ("^bb0(%i_outer: index)", "scf.for %j_outer = ", "scf.for %r_inner", "%A.local = memref.alloc"):
        assert name in text


def test_a_kernel_contracts_as_its_precision_and_target_say():
    schedule, args = programs.load(programs.TESTS / "end_to_end" / "example_kernels.py").matmul(8)
    fused = lw.build(schedule, args, target="llvm -mcpu=x86-64-v3").mlir
    strict = lw.build(schedule, args, target="llvm -mcpu=x86-64-v3", precision="strict").mlir
    assert "vector.fma" in fused
    assert "vector.fma" not in strict
    assert "vector.fma" not in lw.build(schedule, args, target="llvm -mcpu=x86-64").mlir
    assert strict == lw.emit_mlir(lw.lower(schedule, args, target="llvm -mcpu=x86-64-v3"), precision="strict")
