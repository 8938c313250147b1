"""Candidates that are made to be bad, for tests of tuning: code of each kind, and a space and a bench of them."""

from dataclasses import fields, replace

import llvmlite.binding as llvm

import loopwright as lw
from loopwright.artifact.function_bytes import from_bytes, to_bytes
from loopwright.codegen.machine import linking_machine
from loopwright.lowering.decisions import Decision, nearest
from loopwright.tuning.bench import JobBench
from loopwright.tuning.candidate import TuningCandidate
from loopwright.tuning.outcome import Outcome, OutcomeKind
from loopwright.tuning.space import Settled
from loopwright.tuning.task import TuningTask

ILLEGAL, GOOD = "refused", "measured"
BODIES = {
    "crashed": "store i32 1, ptr null\n ret i32 0",
    "aborted": "call void @llvm.trap()\n unreachable",
    "hung": "br label %loop\n loop: br label %loop",
    "failed": "ret i32 77",
    "not finite": "ret i32 0",  # it writes nothing
    "wrong result": "call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 1024, i1 false)\n ret i32 0",
}
"""What code of a kind does; its results are 16 × 16 floats."""
OUTCOMES = {**{kind: kind for kind in BODIES}, "aborted": "crashed", ILLEGAL: ILLEGAL}


def code_of(compiled, body):
    """The code of a function with another body, of LLVM IR; ``%a``, ``%b`` and ``%out`` are addresses of its
    arguments."""
    function = from_bytes(compiled)
    text = f"""
        declare void @llvm.trap()
        define i32 @{function.symbol}(ptr %context, ptr %slots) {{
          %a = load ptr, ptr %slots
          %p1 = getelementptr i64, ptr %slots, i64 1
          %b = load ptr, ptr %p1
          %p2 = getelementptr i64, ptr %slots, i64 2
          %out = load ptr, ptr %p2
          {body}
        }}"""
    module = llvm.parse_assembly(text)
    machine = linking_machine(lw.resolve_target("native").triple)
    return to_bytes(replace(function, object=machine.emit_object(module)))


class NumberedSpace:
    """As many candidates as are asked for, told by a number alone."""

    implementations = ("matmul.paneled",)
    starts = ()

    def __init__(self, count):
        self.count = count

    def settle(self, implementation, wanted):
        own = Decision("number", tuple(range(self.count)), 0, 0)
        value = nearest(wanted["number"], own) if "number" in wanted else 0
        decisions = (Decision("number", own.legal, 0, value),)
        return Settled(TuningCandidate(implementation, (("number", value),)), decisions)


class AllInOrder:
    """A searcher that proposes each candidate of a ``NumberedSpace`` once."""

    def __init__(self, space, rng):
        self.left = [space.settle("matmul.paneled", {"number": k}).candidate for k in range(space.count)]

    def propose(self, count):
        found, self.left = self.left[:count], self.left[count:]
        return found

    def observe(self, results):
        pass


class NumberedTask(TuningTask):
    """A task of a ``NumberedSpace`` of ``count`` candidates."""

    __slots__ = ("count",)

    @classmethod
    def of(cls, task, count):
        made = cls(*(getattr(task, field.name) for field in fields(task)))
        object.__setattr__(made, "count", count)
        return made

    def space(self, records=None):
        return NumberedSpace(self.count)


class FaultyBench(JobBench):
    """Measures in workers, for real, code that ``kinds`` say of each number: bad code, or what another candidate is
    compiled to; what is illegal goes to the compiler, and is refused by it."""

    def __init__(self, workers, settings, kinds, good):
        super().__init__(workers, settings, lambda records: None, {})
        self.kinds, self.good, self.codes = kinds, good, {}

    def _compiled(self, task, candidates, number=0):
        kinds = [self.kinds[candidate.decided["number"]] for candidate in candidates]
        illegal = [TuningCandidate("matmul.paneled", (("rows", "many"),)) for kind in kinds if kind == ILLEGAL]
        refused = iter(super()._compiled(task, illegal, number))
        return [
            next(refused) if kind == ILLEGAL else self._made(task, kind, candidate, number)
            for kind, candidate in zip(kinds, candidates, strict=True)
        ]

    def _made(self, task, kind, candidate, number):
        if kind not in self.codes:
            if kind == GOOD:
                (made,) = super()._compiled(task, [self.good], number)
                self.codes[kind] = made.code
            else:
                self.codes[kind] = code_of(self._untuned.of(task, number).code, BODIES[kind])
        return Outcome(OutcomeKind.MEASURED, code=self.codes[kind], nest=f"{kind} {candidate.decided['number']}")

    def model(self, records):
        """As fast as may be: it is the candidates that are in doubt here."""
        return Outcome(OutcomeKind.MEASURED, 1.1, 1.1, 1.1, (1e-3,) * 15, (1.1,) * 15)
