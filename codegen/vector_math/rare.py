"""Code for rare arguments: a function of its own, which a module has once and which takes one register of lanes.

Written out for all lanes of a tile it would be most of the code of sines and cosines, and most of the time of their
compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir as llvm_ir

from ..lanes import Float, Lanes, float_type
from .pieces import joined, pieces


def beyond(
    x: Float, limit: float, near: Sequence[Float], name: str, far: Callable[[Float], Sequence[Float]]
) -> list[Float]:
    """``near`` where |x| is below a limit, else what ``far`` makes of x, in a branch taken if some lane needs it.

    ``name`` says what ``far`` computes; for one name, width of x and number of lanes a module has one function.
    """
    inside = x.abs() < limit
    builder = x.lanes.builder
    before = builder.block
    with builder.if_then((~inside).any(), likely=False):
        chosen = [inside.select(a, b) for a, b in zip(near, _called(x, near, name, far), strict=True)]
        branch = builder.block
    merged = []
    for straight, branched in zip(near, chosen, strict=True):
        phi = builder.phi(straight.value.type)
        phi.add_incoming(straight.value, before)
        phi.add_incoming(branched.value, branch)
        merged.append(Float(x.lanes, phi, straight.bits))
    return merged


def _called(x: Float, near: Sequence[Float], name: str, far: Callable[[Float], Sequence[Float]]) -> list[Float]:
    """What ``far`` makes of x, by calls for a register of float64 at a time, or for one number."""
    builder, target = x.lanes.builder, x.lanes.target
    width = 1 if x.lanes.count == 1 else target.lanes("float64")
    bits = [value.bits for value in near]
    function = _function(Lanes(builder, target, width), x.bits, bits, name, far)
    found = [builder.call(function, [piece]) for piece in pieces(x, width)]
    results = ([builder.extract_value(one, number) for one in found] for number in range(len(near)))
    return [Float(x.lanes, joined(x.lanes, parts, width), kind) for parts, kind in zip(results, bits, strict=True)]


def _function(
    around: Lanes, bits: int, results: Sequence[int], name: str, far: Callable[[Float], Sequence[Float]]
) -> llvm_ir.Function:
    """The module's function of that name for numbers of ``bits`` bits on so many lanes, made on first use."""
    module, symbol = around.builder.module, f"lw_{name}_f{bits}x{around.count}"
    known = module.globals.get(symbol)
    if known is not None:
        return known
    result = llvm_ir.LiteralStructType([around.type_of(float_type(kind)) for kind in results])
    function = llvm_ir.Function(module, llvm_ir.FunctionType(result, [around.type_of(float_type(bits))]), symbol)
    function.linkage = "internal"
    for attribute in ("cold", "noinline", "nounwind"):
        function.attributes.add(attribute)
    builder = llvm_ir.IRBuilder(function.append_basic_block("entry"))
    found: llvm_ir.Value = llvm_ir.Constant(result, llvm_ir.Undefined)
    for number, value in enumerate(far(Float(Lanes(builder, around.target, around.count), function.args[0], bits))):
        found = builder.insert_value(found, value.value, number)
    builder.ret(found)
    return function
