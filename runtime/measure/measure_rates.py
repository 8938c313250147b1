"""What the machine gives at best at this moment: multiplications with additions, and bytes read from each memory.

Two loops of LLVM IR that do nothing else, in vectors of the target, spread over threads by the pool. What a kernel
reaches is measured against them.
"""

from __future__ import annotations

import ctypes
import functools
import time

import numpy as np

from ...artifact.machine_rates import MachineRates
from ...artifact.options import CodegenOptions
from ...base.aligned import aligned_empty
from ...base.target import Target
from ...codegen.compile import compile_text
from ...codegen.jit import LoadedCode
from ...codegen.machine import data_layout
from ..threads.thread_pool import thread_pool_symbols

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_ROUNDS = 10_000
_READ_SUMS = 16
_LARGEST = 1 << 27
_PASS_BYTES = 1 << 23
_REPEATS = 3


def measure_rates(target: Target, threads: int) -> MachineRates:
    """The rates of ``threads`` threads, the best of a few runs each: a tenth of a second altogether."""
    loops = _load(target)
    lanes, sums = target.lanes("float32"), _sums(target)
    caches = (target.l2_bytes // 2 * threads, 16 * target.l2_bytes)
    footprints = sorted({*(min(size, _LARGEST) for size in caches), _LARGEST})
    data = aligned_empty((footprints[-1] // 4,), np.dtype(np.float32))
    data.fill(1)
    out = np.empty(threads * lanes, np.float32)
    seconds = _least_seconds(loops, "fma_peak", threads, [data.ctypes.data, out.ctypes.data, _ROUNDS])
    bandwidths = []
    for footprint in footprints:
        steps = footprint // (4 * lanes * _READ_SUMS * threads)
        passes = max(1, _PASS_BYTES // footprint)
        taken = _least_seconds(loops, "read_all", threads, [data.ctypes.data, out.ctypes.data, steps, passes])
        bandwidths.append((footprint, passes * steps * 4 * lanes * _READ_SUMS * threads / taken))
    return MachineRates(2 * _ROUNDS * sums * lanes * threads / seconds, tuple(bandwidths))


def _sums(target: Target) -> int:
    """The number of accumulators: as many as hide the latency of an fma on two units, and leave registers for its
    factors."""
    return target.vector_registers - 4


def _least_seconds(loops: LoadedCode, name: str, threads: int, arguments: list[int]) -> float:
    entry = _ENTRY(loops.address(name))
    context = (ctypes.c_int64 * 1)(threads)
    slots = (ctypes.c_int64 * (len(arguments) + 1))(*arguments, threads)
    best = float("inf")
    for _ in range(_REPEATS + 1):  # the first run wakes the threads
        start = time.perf_counter()
        entry(context, slots)
        best = min(best, time.perf_counter() - start)
    return best


@functools.lru_cache(maxsize=1)
def _load(target: Target) -> LoadedCode:
    code = compile_text(_loops(target), "fma_peak", (), target, CodegenOptions(cache=False))
    return LoadedCode("fma_peak", [code.object], target, thread_pool_symbols(), exports=("read_all",))


def _loops(target: Target) -> str:
    lanes = target.lanes("float32")
    return f"""
target triple = "{target.triple}"
target datalayout = "{data_layout(target)}"
declare i32 @lw_parallel_for(ptr, ptr, ptr, i64)

{_fma_loop(lanes, _sums(target))}

{_read_loop(lanes)}
"""


def _fma_loop(lanes: int, sums: int) -> str:
    """Multiplies and adds in registers; the arguments are data, results, rounds and threads."""
    vector = f"<{lanes} x float>"
    return f"""declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})

{_on_threads("fma_peak", 3)}

define internal void @fma_peak.part(ptr %args, i64 %part) {{
entry:
  %data = load ptr, ptr %args
  %out.slot = getelementptr i64, ptr %args, i64 1
  %out = load ptr, ptr %out.slot
  %rounds.slot = getelementptr i64, ptr %args, i64 2
  %rounds = load i64, ptr %rounds.slot
  %x = load {vector}, ptr %data, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i.next, %loop]
{_each(sums, f"  %s# = phi {vector} [zeroinitializer, %entry], [%n#, %loop]")}
{_each(sums, f"  %n# = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %x, {vector} %x, {vector} %s#)")}
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %rounds
  br i1 %more, label %loop, label %done
done:
{_total(sums, vector)}
}}"""


def _read_loop(lanes: int) -> str:
    """Adds up what it reads; the arguments are data, results, steps of a pass, passes and threads."""
    vector = f"<{lanes} x float>"
    return f"""{_on_threads("read_all", 4)}

define internal void @read_all.part(ptr %args, i64 %part) {{
entry:
  %data = load ptr, ptr %args
  %out.slot = getelementptr i64, ptr %args, i64 1
  %out = load ptr, ptr %out.slot
  %steps.slot = getelementptr i64, ptr %args, i64 2
  %steps = load i64, ptr %steps.slot
  %passes.slot = getelementptr i64, ptr %args, i64 3
  %passes = load i64, ptr %passes.slot
  %own = mul i64 %part, %steps
  br label %pass
pass:
  %p = phi i64 [0, %entry], [%p.next, %pass.end]
{_each(_READ_SUMS, f"  %a# = phi {vector} [zeroinitializer, %entry], [%n#, %pass.end]")}
  br label %loop
loop:
  %i = phi i64 [0, %pass], [%i.next, %loop]
{_each(_READ_SUMS, f"  %s# = phi {vector} [%a#, %pass], [%n#, %loop]")}
  %step = add i64 %own, %i
  %first = mul i64 %step, {_READ_SUMS}
{_each(_READ_SUMS, "  %k# = add i64 %first, #")}
{_each(_READ_SUMS, f"  %v.at# = getelementptr {vector}, ptr %data, i64 %k#")}
{_each(_READ_SUMS, f"  %v# = load {vector}, ptr %v.at#, align 4")}
{_each(_READ_SUMS, f"  %n# = fadd {vector} %s#, %v#")}
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %steps
  br i1 %more, label %loop, label %pass.end
pass.end:
  %p.next = add i64 %p, 1
  %again = icmp ult i64 %p.next, %passes
  br i1 %again, label %pass, label %done
done:
{_total(_READ_SUMS, vector)}
}}"""


def _on_threads(name: str, count: int) -> str:
    """A loop's function, which runs a part on each of as many threads as the argument behind the first ``count`` says;
    and what the pool calls: the parts of a chunk, which are all where it has no thread to spare."""
    return f"""define i32 @{name}(ptr %ctx, ptr %args) {{
  %slot = getelementptr i64, ptr %args, i64 {count}
  %threads = load i64, ptr %slot
  %code = call i32 @lw_parallel_for(ptr %ctx, ptr @{name}.task, ptr %args, i64 %threads)
  ret i32 %code
}}

define internal i32 @{name}.task(ptr %ctx, ptr %args, i64 %begin, i64 %end) {{
entry:
  br label %loop
loop:
  %part = phi i64 [%begin, %entry], [%next, %loop]
  call void @{name}.part(ptr %args, i64 %part)
  %next = add i64 %part, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}}"""


def _each(count: int, line: str) -> str:
    """The line once for each number, which stands for ``#``."""
    return "\n".join(line.replace("#", str(k)) for k in range(count))


def _total(count: int, vector: str) -> str:
    """Stores the sum of all accumulators, so that none is in vain, where the part's own result belongs."""
    adds = (f"  %t{k + 1} = fadd {vector} {f'%t{k}' if k else '%n0'}, %n{k + 1}" for k in range(count - 1))
    store = (
        f"  %place = getelementptr {vector}, ptr %out, i64 %part\n  store {vector} %t{count - 1}, ptr %place, align 4"
    )
    return "\n".join((*adds, store, "  ret void"))
