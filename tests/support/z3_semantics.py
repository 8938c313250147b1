"""What operators mean, in terms of z3: mathematical integers, bit-vectors of one byte, IEEE halves, truth values."""

from __future__ import annotations

from typing import Any

import z3

BITS = 8
HALF = z3.Float16()
NEAREST = z3.RNE()


def operate(op: str, domain: str, a: Any, b: Any) -> Any:
    match domain, op:
        case "bool", "and":
            return z3.And(a, b)
        case "bool", "or":
            return z3.Or(a, b)
        case "float", "min" | "max":
            less = z3.fpLT(a, b) if op == "min" else z3.fpGT(a, b)
            return z3.If(z3.Or(z3.fpIsNaN(a), z3.fpIsNaN(b)), z3.fpNaN(HALF), z3.If(less, a, b))
        case "float", _:
            return {"+": z3.fpAdd, "-": z3.fpSub, "*": z3.fpMul, "/": z3.fpDiv}[op](NEAREST, a, b)
        case _, "+":
            return a + b
        case _, "-":
            return a - b
        case _, "*":
            return a * b
        case _, "min":
            return z3.If(compare("<=", domain, a, b), a, b)
        case _, "max":
            return z3.If(compare(">=", domain, a, b), a, b)
        case "index", "//":
            return z3.If(b > 0, a / b, -a / -b)  # z3 rounds so that the remainder is not negative
        case "index", "%":
            return a - b * operate("//", domain, a, b)
        case _:
            return operate_bits(op, domain, a, b)


def operate_bits(op: str, domain: str, a: Any, b: Any) -> Any:
    zero = z3.BitVecVal(0, BITS)
    match op:
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<<":
            return a << b
        case ">>":
            return a >> b if domain == "int" else z3.LShR(a, b)
        case "//" if domain == "uint":
            return z3.If(b == 0, zero, z3.UDiv(a, b))
        case "%" if domain == "uint":
            return z3.If(b == 0, zero, z3.URem(a, b))
        case "//":
            rest = z3.SRem(a, b)
            inexact = z3.And(rest != 0, (rest < 0) != (b < 0))
            return z3.If(b == 0, zero, z3.If(inexact, a / b - 1, a / b))
        case "%":
            rest = z3.SRem(a, b)
            return z3.If(b == 0, zero, z3.If(z3.And(rest != 0, (rest < 0) != (b < 0)), rest + b, rest))
    raise AssertionError(op)


def compare(op: str, domain: str, a: Any, b: Any) -> Any:
    if op in ("==", "!="):
        equal = z3.fpEQ(a, b) if domain == "float" else a == b
        return equal if op == "==" else z3.Not(equal)
    if domain == "float":
        return {"<": z3.fpLT, "<=": z3.fpLEQ, ">": z3.fpGT, ">=": z3.fpGEQ}[op](a, b)
    if domain == "uint":
        return {"<": z3.ULT, "<=": z3.ULE, ">": z3.UGT, ">=": z3.UGE}[op](a, b)
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def decide(premises: list[Any], claim: Any, milliseconds: int) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.set("timeout", milliseconds)
    solver.add(*premises, z3.Not(claim))
    return solver.check()
