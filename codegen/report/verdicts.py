"""The verdict on each loop of a schedule: from the nest, over the lowered module, to the machine's instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...artifact.options import CodegenOptions
from ...base.quantities import count_text
from ...base.target import Target
from ...ir.origin import Nest, NestLoop
from ...ir.stmt import PLAIN_TAIL, IRModule
from ..abi import LIBC_SYMBOLS, PARALLEL_FOR
from ..compile import texts_with_lines
from .access import costly_accesses, is_contiguous_store, step_of
from .lowered import PlacedLoop, PlacedStore, read_lowered
from .machine import CodeOfLoop, Machine
from .report import CodeLoop, LoopReport, VectorReport
from .x86 import Counts

_MEMORY_FUNCTIONS = ("memset", "memcpy", "memmove")


def vector_report(
    nest: Nest,
    module: IRModule,
    target: Target,
    options: CodegenOptions,
    assembly: str | None = None,
    warnings: tuple[str, ...] = (),
) -> VectorReport:
    """The report on a module whose loops and stores are numbered as in the nest. It is read from the assembly with line
    tables; the module is compiled for that, unless it is given. ``warnings`` are of the schedule."""
    reporter = _Reporter(nest, module, target, options, assembly)
    loops = tuple(reporter.report(loop) for loop in nest.loops.values())
    name = target.cpu or target.arch
    line = f"{name}: {target.vector_registers} vector registers of {target.vector_bits} bits"
    note = "" if reporter.machine else f"(the assembly of {target.arch} is not read: what follows is from the loop IR)"
    if options.debug:
        note = "(a debug build: it has no vectors, and keeps nothing in registers)"
    return VectorReport(module.entry.name, line, loops, tuple(reporter.code_loops()), note, warnings)


class _Reporter:
    def __init__(
        self, nest: Nest, module: IRModule, target: Target, options: CodegenOptions, assembly: str | None
    ) -> None:
        self.nest = nest
        self.target = target
        self.options = options
        self.entry = module.entry.name
        self.lowered = read_lowered(module)
        self.machine = None
        if target.arch == "x86_64":
            self.machine = Machine(assembly or texts_with_lines(module, target, options).assembly, self.lowered)

    def report(self, loop: NestLoop) -> LoopReport:
        placed = [p for p in self.lowered.loops if p.number == loop.number]
        stores = [s for s in self.lowered.stores if loop.number in self.nest.stores.get(s.number, ())]
        if loop.kind == "vectorized" and not self.options.debug:
            code = self._on_lines(stores)
            became, costs = self._vector(stores, code)
        else:
            codes = [code for p in placed for code in (self.machine.of_loop(p) if self.machine else ())]
            code = sum((c.counts for c in codes), Counts()) if codes else None
            costs = [*self._spills(codes), *self._scalar(loop, placed, stores)]
            if any(PLAIN_TAIL in p.loop.notes for p in placed):
                costs.append("its tail is plain: unrolled, it would make too many statements")
            became = self._loop(loop, placed, codes, stores) + ", scalar" * any(c.startswith("scalar") for c in costs)
        unique = tuple(dict.fromkeys(costs))
        return LoopReport(loop.id, loop.name, loop.kind, loop.extent, len(loop.around), became, unique, code)

    def code_loops(self) -> Iterator[CodeLoop]:
        for code in self.machine.loops if self.machine else ():
            loop = self.nest.loops.get(code.source.number) if code.source else None
            name, number = (loop.name, loop.id) if loop else ("", "")
            tail = code.source is not None and code.source.is_border
            origin = code.source.number if code.source is not None else 0
            function = code.function.removesuffix(".body")
            yield CodeLoop(number, name, function, code.innermost, tail, code.counts, origin, code.machine.own)

    # Vectorized loops.

    def _on_lines(self, stores: Sequence[PlacedStore]) -> Counts | None:
        lines = [line for s in stores for line in s.lines]
        return self.machine.on_lines(lines) if self.machine and lines else None

    def _vector(self, stores: list[PlacedStore], code: Counts | None) -> tuple[str, list[str]]:
        vectors = [s for s in stores if s.lanes > 1]
        scalars = [s for s in stores if s.lanes == 1]
        if not vectors:
            return ("one iteration: scalar code" if scalars else "gone: it stores nothing that is used"), []
        masked = [s for s in vectors if s.is_masked]
        called = _memory_functions(code)
        if called:
            return f"done by {called}", []
        parts = [self._width(vectors[0], code)]
        if code is not None and code.fused:
            parts.append("fma")
        if masked:
            parts.append("masked tail" if len(masked) < len(vectors) else "masked")
        if scalars:
            parts.append("scalar tail")
        costs = [*self._vector_costs(vectors, code), *self._mask_costs(masked)]
        if scalars:
            costs.append("scalar tail: what does not fill a vector runs one element at a time")
        return ", ".join(parts), costs

    def _width(self, placed: PlacedStore, code: Counts | None) -> str:
        kind = placed.store.value.dtype
        text = f"{placed.lanes} lanes of {kind.element}"
        if code is None:
            return text
        if not code.registers:
            return f"{text}, in scalar code" if code.scalar else f"{text}, no instructions of their own"
        bits = {"zmm": 512, "ymm": 256, "xmm": 128}[code.registers]
        several = -(-placed.lanes * kind.element.storage_bits // bits)
        return f"{text} in {f'{several} ' if several > 1 else ''}{code.registers}"

    def _vector_costs(self, vectors: list[PlacedStore], code: Counts | None) -> Iterator[str]:
        accesses = dict.fromkeys(cost for placed in vectors for cost in costly_accesses(placed))
        for cost in accesses:
            wanted = "gathers" if cost.startswith("gather") else "scatters" if cost.startswith("scatter") else None
            lacking = self.machine is not None and wanted is not None and not getattr(self.machine.total, wanted)
            yield f"{cost}, one at a time" if lacking else cost
        if code is None:
            return
        odd = next((s.lanes for s in vectors if s.lanes & (s.lanes - 1) and not s.is_masked), None)
        if odd is not None:
            yield f"{odd} lanes are no power of two: they are loaded and stored in pieces"
        foreign = [name for name in code.calls if name not in (PARALLEL_FOR, *LIBC_SYMBOLS)]
        if foreign:
            yield f"no vector form: calls {', '.join(dict.fromkeys(foreign))} for each lane"
        if code.divisions:
            yield f"no vector form: integer division, {code.divisions} times one lane"
        if code.products and code.sums and not code.fused and (reason := self._against_fma(vectors)) is not None:
            yield f"products and sums are not fused: {reason}"
        if code.scalar and not code.vectors:
            yield "the instructions are scalar, though the loop IR is in vectors"

    def _against_fma(self, vectors: list[PlacedStore]) -> str | None:
        """Why no product goes into a sum; None if none is one's operand."""
        if not self.target.has_fma:
            return "the target has no fma"
        if self.options.precision == "strict":
            return "precision is strict"
        return "several places read a product" if any(placed.is_fenced for placed in vectors) else None

    def _mask_costs(self, masked: list[PlacedStore]) -> Iterator[str]:
        stores = [s for s in masked if s.store.mask is not None and is_contiguous_store(s)]
        code = self._on_lines(stores)
        if code is not None and code.branches and not code.masked:
            kind = stores[0].store.buffer.dtype.element
            yield f"scalar tail: the target has no masked stores of {kind}, so each lane is stored behind a branch"

    # Other loops.

    def _loop(
        self, loop: NestLoop, placed: list[PlacedLoop], codes: list[CodeOfLoop], stores: list[PlacedStore]
    ) -> str:
        if not placed:
            if loop.kind == "unrolled":
                return f"written out {loop.extent} times"
            return "one iteration: no loop" if loop.extent == "1" else "no loop: its parts stand one after the other"
        if self.machine is not None and not codes:
            called = _memory_functions(self._on_lines(stores))
            return f"done by {called}" if called else "a loop in the loop IR, which LLVM has removed or written out"
        tails = sum(p.is_border for p in placed)
        parts = ["a loop" if len(placed) == 1 else f"{len(placed)} loops"]
        if tails and tails < len(placed):
            parts.append(f"{tails} of them for the borders")
        if loop.kind == "parallel":
            spread = all(p.outer is None and p.function != self.entry for p in placed)
            parts.append("spread over threads" if spread else "serial, inside another parallel loop")
        return ", ".join([*parts, *self._accumulators([code for code in codes if code.innermost])])

    def _accumulators(self, codes: list[CodeOfLoop]) -> Iterator[str]:
        tiles = [(self._tile(code), code.counts.stored) for code in codes]
        size = max((sum(registers for registers, _ in tile) for tile, _ in tiles), default=0)
        if size:
            vectors = any(lanes > 1 for tile, _ in tiles for _, lanes in tile)
            spilled = any(tile and stored for tile, stored in tiles)
            what = f"register tile of {count_text(size, 'vector')}" if vectors else "sum"
            yield f"{what} {'spilled' if spilled else 'kept in registers'}"

    def _tile(self, code: CodeOfLoop) -> list[tuple[int, int]]:
        """The accumulators of a loop: of each, how many vector registers it takes, and its lanes."""
        kinds = {
            (s.store.buffer.data, *s.store.indices): s.store.value.dtype
            for s in self.lowered.stores
            if s.loop is code.source and s.store.buffer.scope == "register"
        }
        bits = self.target.vector_bits
        return [(-(-kind.lanes * kind.element.storage_bits // bits), kind.lanes) for kind in kinds.values()]

    def _spills(self, codes: list[CodeOfLoop]) -> Iterator[str]:
        for code in codes:
            if not code.innermost or not code.counts.stack or PARALLEL_FOR in code.counts.calls:
                continue
            where = "a tail" if code.source is not None and code.source.is_border else "each iteration"
            if not code.counts.stored:
                loads = f"{count_text(code.counts.reloaded, 'load')} from the stack"
                yield f"spills: {loads} in {where}, of what does not change"
                continue
            stores = f"{count_text(code.counts.stored, 'store')} to the stack"
            text = f"spills: {stores} and {count_text(code.counts.reloaded, 'load')} in {where}"
            tile = sum(registers for registers, _ in self._tile(code))
            each = self._registers_of_a_vector(code)
            if tile:
                taken = count_text(tile, "vector register")
                text += f"; its tile takes {taken}, of which there are {self.target.vector_registers}"
            elif each > 1:
                text += f"; each of its vectors takes {each} registers: shorter ones take fewer"
            yield text

    def _registers_of_a_vector(self, code: CodeOfLoop) -> int:
        bits = [
            s.lanes * s.store.value.dtype.element.storage_bits for s in self.lowered.stores if s.loop is code.source
        ]
        return -(-max(bits, default=1) // self.target.vector_bits)

    def _scalar(self, loop: NestLoop, placed: list[PlacedLoop], stores: list[PlacedStore]) -> Iterator[str]:
        """Why the statements directly in this loop are scalar: the first one, for all are alike."""
        found = self.options.debug  # where nothing is vectorized
        for store in stores:
            around = self.nest.stores[store.number]
            if around[-1] != loop.number or store.loop not in placed or store.loop is None:
                continue
            if any(p.outer is store.loop for p in self.lowered.loops):
                continue  # what stands beside an inner loop runs seldom
            if store.lanes == 1 and not found:
                found = True
                yield self._why_scalar(store, store.loop)
            if store.conditions:
                yield f"a test in each iteration: if {store.conditions[-1]}"

    def _why_scalar(self, store: PlacedStore, placed: PlacedLoop) -> str:
        name = store.store.buffer.name
        step = step_of(store, placed.loop.var)
        if step == 0:
            kept = store.store.buffer.scope == "register"
            where = "in a register" if kept else f"of {name} in memory"
            return f"scalar: all iterations add to one element {where}: rfactor it, or vectorize a loop around"
        if step == 1:
            lanes = self.target.lanes(store.store.buffer.dtype)
            return (
                f"scalar: not vectorized, though its stores to {name} are contiguous: split by {lanes}, vectorize that"
            )
        how = "at computed indices" if step is None else f"at a stride of {step}"
        return f"scalar: its iterations store to {name} {how}: let the contiguous loop be innermost, and vectorize it"


def _memory_functions(code: Counts | None) -> str:
    """The functions of the C library that LLVM calls in the place of loops which copy or fill memory."""
    calls = code.calls if code is not None else ()
    return " and ".join(dict.fromkeys(name for name in calls if name in _MEMORY_FUNCTIONS))
