"""Memory whose size runs choose: formulas that machine code computes, and places that do not meet."""

import ctypes
import random

from llvmlite import ir as llvm_ir

from loopwright.artifact.block import Intermediate, RunStage
from loopwright.artifact.extents import Formula, evaluate
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.compile import compile_text
from loopwright.codegen.formulas import FormulaEmitter
from loopwright.codegen.host import host_target
from loopwright.codegen.jit import load
from loopwright.codegen.stage_memory import plan_stage
from loopwright.codegen.types import I32, I64, PTR

NAMES = ("n", "m")
OPERATORS = ("+", "-", "*", "//", "%", "min", "max")


def random_formula(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([*NAMES, rng.randrange(-5, 70)])
    op = rng.choice(OPERATORS)
    left = random_formula(rng, depth - 1)
    return Formula(op, left, rng.randrange(1, 65) if op in ("//", "%") else random_formula(rng, depth - 1))


def compiled(formulas):
    """``f(n, m, results)``: writes the values, and gives whether any went wrong."""
    module = llvm_ir.Module("formulas", context=llvm_ir.Context())
    module.triple = host_target().triple
    function = llvm_ir.Function(module, llvm_ir.FunctionType(I32, [I64, I64, PTR]), "formulas")
    builder = llvm_ir.IRBuilder(function.append_basic_block("entry"))
    *dims, results = function.args
    emitter = FormulaEmitter(builder, dict(zip(NAMES, dims, strict=True)))
    for number, formula in enumerate(formulas):
        place = builder.gep(results, [llvm_ir.Constant(I64, number)], source_etype=I64)
        place.type = PTR
        builder.store(emitter.value(formula), place)
    builder.ret(builder.zext(emitter.wrong, I32))
    code = load(compile_text(str(module), "formulas", (), host_target(), CodegenOptions(cache=False)))
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address())

    def run(n, m):
        memory = (ctypes.c_int64 * len(formulas))()
        wrong = call(n, m, memory)
        return list(memory), bool(wrong), code

    return run


def test_machine_code_computes_formulas_as_python_does():
    rng = random.Random(8)
    formulas = [random_formula(rng, 4) for _ in range(200)]
    run = compiled(formulas)
    for dims in ({"n": 0, "m": 1}, {"n": 7, "m": 3}, {"n": 64, "m": 1000}):
        found, wrong, _ = run(**dims)
        assert found == [evaluate(formula, dims) for formula in formulas]
        assert not wrong


def test_what_leaves_64_bits_or_divides_by_0_is_noted():
    run = compiled([Formula("//", Formula("*", "n", "n"), "m")])
    assert run(1 << 31, 1)[1] is False
    assert run(1 << 32, 1)[1] is True
    assert run(1, 0)[1] is True


def test_values_that_live_together_do_not_share_a_place():
    rng = random.Random(3)
    for _ in range(30):
        values = []
        for slot in range(rng.randrange(1, 12)):
            first = rng.randrange(10)
            size = rng.choice([0, 12, 4096, "n", Formula("*", "n", 4), Formula("+", "m", "n")])
            values.append(Intermediate(slot, size, first, rng.randrange(first, 10)))
        plan = plan_stage(RunStage((), (), (), (), tuple(values), (), (), ()))
        for dims in ({"n": 1, "m": 1}, {"n": 640, "m": 3}, {"n": 5, "m": 100_000}):
            begins = [evaluate(plan.offsets[value.slot], dims) for value in values]
            sizes = [evaluate(value.size, dims) for value in values]
            assert evaluate(plan.size, dims) >= max(map(sum, zip(begins, sizes, strict=True)))
            for i, a in enumerate(values):
                for j, b in enumerate(values[:i]):
                    together = a.first <= b.last and b.first <= a.last
                    assert not together or begins[i] + sizes[i] <= begins[j] or begins[j] + sizes[j] <= begins[i]
            assert all(begin % 64 == 0 for begin in begins)
