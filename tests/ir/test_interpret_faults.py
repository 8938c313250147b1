"""The interpreter reports a fault exactly where a plain model of memory finds one, in random faulty programs."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.base.errors import InterpretError, ScheduleError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ONE, ZERO, const
from loopwright.ir.expr import Broadcast, Expr, IfThenElse, Load, Ramp
from loopwright.ir.interpret import interpret
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify_func
from loopwright.ir.stmt import Allocate, For, If, PrimFunc, Store, seq
from loopwright.ir.verify import verify
from loopwright.lowering.passes.flatten_buffers import flatten_buffers
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.lowering.pipeline import passes

BOUNDS, UNWRITTEN, RACE = "out of bounds", "read of memory never written", "race"


@dataclass(frozen=True)
class Affine:
    """``a * i + b * j + c``."""

    a: int
    b: int
    c: int

    def __call__(self, i, j):
        return self.a * i + self.b * j + self.c


@dataclass(frozen=True)
class Condition:
    """``index % modulus != 0``."""

    index: Affine
    modulus: int

    def __call__(self, i, j):
        return self.index(i, j) % self.modulus != 0

    def expr(self, i, j) -> Expr:
        return self.index(i, j) % self.modulus != 0


@dataclass(frozen=True)
class Access:
    """``T[store] = T[load]``, where ``guard`` holds; the load only where ``lazy`` (of i alone) holds."""

    store: Affine
    load: Affine | None
    guard: Condition | None
    lazy: Condition | None


@dataclass(frozen=True)
class Spec:
    """Accesses of T in a loop over i of some kind, and in one over j inside, or in the lanes of vectors.

    T is an argument, or allocated around or inside the loop over i; then its first ``filled`` elements are written.
    """

    place: str
    kind: str
    extents: tuple[int, int]
    lanes: bool
    size: int
    filled: int
    accesses: tuple[Access, ...]


affine = st.builds(Affine, st.integers(-1, 2), st.integers(-1, 2), st.integers(0, 5))
conditions = st.none() | st.builds(Condition, affine, st.integers(2, 3))
specs = st.builds(
    Spec,
    st.sampled_from(["argument", "around", "inside"]),
    st.sampled_from(["parallel", "vectorized", "serial", "unrolled"]),
    st.tuples(st.integers(2, 4), st.integers(2, 3)),
    st.booleans(),
    st.integers(4, 14),
    st.integers(0, 14),
    st.lists(st.builds(Access, affine, st.none() | affine, conditions, conditions), min_size=1, max_size=2).map(tuple),
)


class FaultError(Exception):
    """What the model has found."""


class Model:
    """T as a set of written elements, and who touched each in the loop over i. Mutable."""

    def __init__(self, spec):
        self.spec = spec
        self.shared = spec.kind in ("parallel", "vectorized") and spec.place != "inside"
        self.touched = []  # (iteration, element, whether it was written)
        self.fill()

    def fill(self):
        everything = self.spec.place == "argument"
        self.written = set(range(self.spec.size if everything else min(self.spec.filled, self.spec.size)))

    def run(self):
        rows, columns = self.spec.extents
        order = range(rows) if self.spec.kind in ("serial", "unrolled") else reversed(range(rows))
        for i in order:
            if self.spec.place == "inside":
                self.fill()
            if self.spec.lanes:
                for access in self.spec.accesses:
                    self.access(access, i, range(columns))
            else:
                for j in range(columns):
                    for access in self.spec.accesses:
                        self.access(access, i, [j])

    def access(self, access, i, lanes):
        lanes = [j for j in lanes if access.guard is None or access.guard(i, j)]
        if access.load is not None and (access.lazy is None or access.lazy(i, 0)):
            elements = self.elements(access.load, i, lanes)
            if any(e not in self.written for e in elements):
                # The first element decides: it may also be one that another iteration has written.
                first = next(e for e in elements if e not in self.written or self.conflicts(i, e, write=False))
                raise FaultError(UNWRITTEN if first not in self.written else RACE)
            for e in elements:
                self.touch(i, e, write=False)
        elements = self.elements(access.store, i, lanes)
        for k, e in enumerate(elements):
            if e in elements[:k]:
                raise FaultError(RACE)
            self.touch(i, e, write=True)
            self.written.add(e)

    def elements(self, index, i, lanes):
        elements = [index(i, j) for j in lanes]
        if any(not 0 <= e < self.spec.size for e in elements):
            raise FaultError(BOUNDS)
        return elements

    def conflicts(self, i, element, write):
        return self.shared and any(e == element and k != i and (w or write) for k, e, w in self.touched)

    def touch(self, i, element, write):
        if self.conflicts(i, element, write):
            raise FaultError(RACE)
        self.touched.append((i, element, write))


def predicted(spec):
    try:
        Model(spec).run()
    except FaultError as fault:
        return str(fault)
    return None


def program(spec):
    """The same as loop IR."""
    T = make_buffer("T", (spec.size,), "int32", "global" if spec.place == "argument" else "local")
    i, j, k = index_var("i"), index_var("j"), index_var("k")
    rows, columns = spec.extents

    def place(index):
        return Ramp(index(i, 0) + ZERO, as_index(index.b), columns) if spec.lanes else index(i, j)

    def statement(access):
        lanes = Ramp(ZERO, ONE, columns)
        mask = None
        if access.guard is not None and spec.lanes:
            index = access.guard.index
            numbers = Broadcast(index(i, 0) + ZERO, columns) + Broadcast(as_index(index.b), columns) * lanes
            mask = numbers % Broadcast(as_index(access.guard.modulus), columns) != Broadcast(ZERO, columns)
        value = const(1, "int32")
        value = Broadcast(value, columns) if spec.lanes else value
        if access.load is not None:
            read = Load(T, (place(access.load),), mask)
            value = read if access.lazy is None else IfThenElse(access.lazy.expr(i, 0), read, value)
        store = Store(T, (place(access.store),), value, mask)
        return If(access.guard.expr(i, j), store) if access.guard is not None and not spec.lanes else store

    body = seq(*map(statement, spec.accesses))
    body = body if spec.lanes else For(j, ZERO, as_index(columns), "serial", body)
    fill = For(k, ZERO, as_index(min(spec.filled, spec.size)), "serial", Store(T, (k,), const(0, "int32")))
    if spec.place == "inside":
        body = Allocate(T, seq(fill, body))
    body = For(i, ZERO, as_index(rows), spec.kind, body)
    if spec.place == "around":
        body = Allocate(T, seq(fill, body))
    arguments = (T,) if spec.place == "argument" else ()
    return PrimFunc("f", arguments, body, arguments)


def found(func, spec):
    arrays = [np.zeros(spec.size, np.int32)] if spec.place == "argument" else []
    try:
        interpret(func)(*arrays)
    except InterpretError as error:
        kind, _, rest = str(error).partition(": ")
        assert "T[" in rest
        assert "i = " in rest or "lane" in rest
        return kind
    return None


@given(spec=specs)
@settings(max_examples=4 * settings().max_examples)
def test_faults_are_reported_exactly_where_they_are(spec):
    if spec.lanes and spec.kind == "vectorized":
        return  # vectors inside a vectorized loop are no program
    func = program(spec)
    verify(func)
    expected = predicted(spec)
    assert found(func, spec) == expected, f"{spec}\n{func}"
    flat = flatten_buffers(func)
    assert found(simplify_func(flat), spec) == expected, f"{spec}\n{flat}"


@given(spec=specs)
def test_what_is_right_is_right_in_the_chunks_of_a_launch(spec):
    """Iterations of one chunk count as one there, so not each race is seen; but nothing else is taken for a fault."""
    if spec.kind == "parallel" and predicted(spec) is None:
        assert found(outline_parallel(program(spec)), spec) is None


@given(spec=specs)
@settings(max_examples=4 * settings().max_examples)
def test_what_is_right_stays_right_through_the_passes(spec):
    func = program(spec)
    if (spec.lanes and spec.kind == "vectorized") or predicted(spec) is not None:
        return
    for name, run in passes(None):
        try:
            func = run(func)
        except ScheduleError:
            return  # vectorize sees no lane that stores alone under a condition on remainders
        assert found(func, spec) is None, f"{name}\n{func}"
