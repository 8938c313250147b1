"""Features of a lowered loop nest, by which trees tell where the analytic model errs.

Most are shares of the cycles that are predicted, so that they mean the same for small computes and large ones; sizes
are logarithms to base 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....base.target import Target
from ....ir.buffer import Buffer
from ....ir.constants import const_int
from ....ir.expr import Binary, Load, Ramp
from ....ir.stmt import Allocate, If, PrefetchStmt, Store
from ....ir.visit import walk
from ...machine import CORE
from ..cost.footprint import LINE, LinearAccess, access_of
from ..cost.instructions import BodyWork
from ..cost.nest import LoopNode, accesses_of, bytes_of, expressions_of
from ..cost.predict import NestAnalysis

PAGE = 4096


def nest_features(analysis: NestAnalysis) -> dict[str, float]:
    """The features of a function that was analysed, by their names."""
    return {
        **_of_target(analysis.target),
        **_of_cost(analysis),
        **_of_bodies(analysis),
        **_of_accesses(analysis),
        **_of_loops(analysis),
    }


def _log(value: float) -> float:
    return math.log2(max(value, 0.0) + 1.0)


def _of_target(target: Target) -> dict[str, float]:
    return {
        "target.lanes": math.log2(target.vector_bits / 32),
        "target.registers": float(target.vector_registers),
        "target.fma": float(target.has_fma),
        "target.threads": float(target.threads),
    }


def _of_cost(analysis: NestAnalysis) -> dict[str, float]:
    cost, target = analysis.cost, analysis.target
    whole = max(cost.cycles, 1.0)
    size = analysis.arrays.whole
    found = {
        "cost.cycles": _log(cost.cycles),
        "cost.computing": cost.computing / whole,
        "cost.fetching": cost.fetching / whole,
        "size.first cache": _log(size / target.l1_bytes),
        "size.second cache": _log(size / target.l2_bytes),
    }
    for name, capacity in (("first", target.l1_bytes), ("second", target.l2_bytes)):
        traffic = [analysis.arrays.traffic(nest, float(capacity)) for nest in analysis.root.inner]
        for part in ("lines", "runs", "written"):
            found[f"traffic.{name} {part}"] = sum(getattr(each, part) for each in traffic) / whole
    return found


def _weighted(analysis: NestAnalysis) -> Iterator[tuple[LoopNode, BodyWork, float]]:
    """The loops that have a body, each with the part of the cycles that goes to it."""
    registers = analysis.target.vector_registers
    cycles = {node: node.iterations * work.cycles(registers) for node, work in analysis.work.items()}
    total = sum(cycles.values()) or 1.0
    for node, work in analysis.work.items():
        if cycles[node]:
            yield node, work, cycles[node] / total


def _of_bodies(analysis: NestAnalysis) -> dict[str, float]:
    found = dict.fromkeys(
        ("operations", "loads", "stores", "other", "chain", "issued", "kept", "spilled", "trips", "length", "bound"),
        0.0,
    )
    code, registers = 0.0, analysis.target.vector_registers
    for node, work, part in _weighted(analysis):
        each = work.cycles(registers)
        issued = work.operations + work.loads + work.stores + work.instructions
        found["operations"] += part * work.operations / CORE.full_rate / each
        found["loads"] += part * work.loads / CORE.loads / each
        found["stores"] += part * work.stores / each
        found["other"] += part * work.instructions / CORE.issued / each
        found["chain"] += part * work.chain / each
        found["issued"] += part * issued / CORE.issued / each
        found["kept"] += part * work.kept / registers
        found["spilled"] += part * max(0.0, work.kept - registers) / each
        found["trips"] += part * _log(node.trips)
        found["length"] += part * _log(issued)
        found["bound"] = max(found["bound"], part)
        code += issued if node.iterations else 0.0
    return {**{f"body.{name}": value for name, value in found.items()}, "body.code": _log(code)}


def _of_loops(analysis: NestAnalysis) -> dict[str, float]:
    loops = [node for node in analysis.root.all_inside() if node.iterations]
    whole = max(analysis.cost.cycles, 1.0)
    buffers = [stmt.buffer for stmt in walk(analysis.func.body) if isinstance(stmt, Allocate)]
    memory = [buffer for buffer in buffers if buffer.scope != "register"]
    depths = [sum(1 for _ in node.around()) - 1 for node in loops if not node.inner]
    tests = sum(runs for node in loops for stmt, runs in node.parts if isinstance(stmt, If))
    digits = sum(
        runs
        for node in loops
        for stmt, runs in node.parts
        for e in expressions_of(stmt)
        for each in walk(e)
        if isinstance(each, Binary) and each.op in ("//", "%", "/")
    )
    fetched = sum(runs for node in loops for stmt, runs in node.parts if isinstance(stmt, PrefetchStmt))
    return {
        "loops.count": float(len(loops)),
        "loops.nests": float(len(analysis.root.inner)),
        "loops.depth": float(max(depths, default=0)),
        "loops.entries": sum(node.entries for node in loops) / whole,
        "loops.tests": tests / whole,
        "loops.divisions": digits / whole,
        "loops.prefetches": fetched / whole,
        "loops.launches": _log(sum(node.entries for node in loops if node.launches)),
        "memory.count": float(len(memory)),
        "memory.bytes": _log(sum(map(bytes_of, memory))),
        "memory.registers": float(len(buffers) - len(memory)),
    }


def _of_accesses(analysis: NestAnalysis) -> dict[str, float]:
    names = ("vectors", "crossing", "scattered", "masked", "repeated", "far", "aliasing", "broadcast", "type")
    found = dict.fromkeys((f"access.{kind} {name}" for kind in ("loads", "stores") for name in names), 0.0)
    width = analysis.target.vector_bits // 8
    total, streams = {"loads": 1e-9, "stores": 1e-9}, 0.0
    for node, _, part in _weighted(analysis):
        touched: set[int] = set()
        for stmt, runs in node.parts:
            for buffer, index, lanes, writes in accesses_of(stmt):
                kind = "stores" if writes else "loads"
                access = access_of(index, lanes, buffer.dtype.storage_bytes)
                total[kind] += runs
                for name, holds in _traits(buffer, access, node, width, lanes).items():
                    found[f"access.{kind} {name}"] += runs * holds
                if isinstance(index, Ramp) and const_int(index.stride) != 1:
                    found[f"access.{kind} scattered"] += runs * lanes
                touched.add(id(buffer.data))
            for each in (stmt, *(node for e in expressions_of(stmt) for node in walk(e))):
                if isinstance(each, (Store, Load)) and each.mask is not None:
                    found["access.stores masked" if isinstance(each, Store) else "access.loads masked"] += runs
        streams += part * len(touched)
    shares = {name: value / total[name.split()[0].removeprefix("access.")] for name, value in found.items()}
    return {**shares, "access.streams": streams}


def _traits(buffer: Buffer, access: LinearAccess, node: LoopNode, width: int, lanes: int) -> dict[str, float]:
    """What is true of an access, as 0 or 1: it is a whole vector, which may cross cache lines; the innermost loop lets
    it stay, or moves it by more than a line, or by whole pages."""
    size = buffer.dtype.storage_bytes
    own = 0 if node.var is None else access.strides.get(node.var, 0)
    moves = [s for s in access.strides.values() if s is not None]
    crossing = lanes * size >= min(width, LINE) and (access.offset % width or any(s % width for s in moves))
    return {
        "vectors": min(1.0, lanes * size / width),
        "crossing": float(bool(crossing)),
        "repeated": float(own == 0),
        "far": float(own is None or abs(own) > LINE),
        "aliasing": float(any(s and s % PAGE == 0 for s in moves)),
        "broadcast": float(lanes == 1),
        "type": math.log2(size),
    }
