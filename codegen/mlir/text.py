"""Text of MLIR functions, as it is written: values and their names, constants at the top, helpers beside the function.

Equal programs give equal text: names and their numbers follow the order of appearance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from ...base.dataclass import dataclass
from ...base.dtype import BOOL, INDEX, DType
from ...base.errors import MlirError

WIDTH = 120

Lines: TypeAlias = "list[str | Lines]"
"""Lines of text; a list among them is a place where lines are put in later."""


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: its name with the ``%``, and its type."""

    name: str
    type: str


Build = Callable[["Writer", Sequence[Value]], Value]
"""Writes the body of a helper, and gives its result."""


def type_of(kind: DType) -> str:
    """The MLIR type of a value in a register: integers have no sign there, their operations do."""
    return shaped("vector", (kind.lanes,), kind.element) if kind.lanes > 1 else _element(kind)


def memory_type(kind: DType) -> str:
    """The type of an element in memory, where a bool takes a byte."""
    return type_of(DType("uint", 8, kind.lanes) if kind.is_bool else kind)


def shaped(container: str, extents: Sequence[int | None], element: DType | str) -> str:
    """``vector<4x8xf32>`` and the like; None is an extent that is known when the program runs."""
    dims = "".join(f"{'?' if extent is None else extent}x" for extent in extents)
    return f"{container}<{dims}{element if isinstance(element, str) else _element(element)}>"


def _element(kind: DType) -> str:
    match kind.kind:
        case "float":
            return f"f{kind.bits}"
        case "bfloat":
            return f"bf{kind.bits}"
        case "index":
            return "index"
        case "handle":
            raise MlirError("MLIR has no form for a value of dtype handle")
        case _:
            return f"i{kind.storage_bits if kind.is_narrow else kind.bits}"


class Helpers:
    """The private functions that a module's functions call, and the declarations of those from outside. Mutable."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.texts: dict[str, str] = {}
        self._taken = frozenset(taken)

    def function(self, name: str, types: Sequence[str], result: str, build: Build) -> str:
        """The symbol of the helper ``name`` with parameters of these types, written when first asked for."""
        symbol = f"{name}_{re.sub(r'vector<|>', '', types[0])}"
        while symbol in self._taken:
            symbol += "_"
        if symbol not in self.texts:
            writer = Writer(self)
            args = [Value(writer.name(n), kind) for n, kind in zip("abc", types, strict=False)]
            made = build(writer, args)
            writer.line(f"return {made.name} : {made.type}")
            params = ", ".join(f"{arg.name}: {arg.type}" for arg in args)
            self.texts[symbol] = writer.function(f"func.func private @{symbol}({params}) -> {result}")
        return symbol

    def declare(self, symbol: str, types: Sequence[str]) -> None:
        """A function from outside, which gives nothing back."""
        self.texts.setdefault(symbol, f"func.func private @{symbol}({', '.join(types)}) -> ()")


class Writer:
    """Writes the body of one function. Mutable: the lines so far, the names taken, the constants used."""

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers
        self._lines: Lines = []
        self._indent = "  "
        self._constants: dict[str, Value] = {}
        self._constant_lines: Lines = []
        self._taken: set[str] = set()
        self._anonymous = 0

    def name(self, hint: str = "") -> str:
        """A name with its ``%``, not given before: the hint, with a number behind it where it is taken."""
        if not hint:
            self._anonymous += 1
            return f"%{self._anonymous - 1}"
        base = re.sub(r"[^A-Za-z0-9_$.]", "_", hint)
        base = base if base[0].isalpha() else f"_{base}"
        candidate, number = base, 0
        while candidate in self._taken:
            candidate, number = f"{base}_{number}", number + 1
        self._taken.add(candidate)
        return f"%{candidate}"

    def line(self, text: str) -> None:
        """A line, in several if it is long."""
        if len(self._indent) + len(text) <= WIDTH or '"' in text:
            self._lines.append(self._indent + text)
        else:
            self._lines += _wrapped(text, self._indent)

    def label(self, name: str, args: Sequence[Value]) -> None:
        """The arguments of the block that the region begins with."""
        self._lines.append(f"{self._indent[:-2]}^{name}({', '.join(f'{a.name}: {a.type}' for a in args)}):")

    def op(self, text: str, kind: str, hint: str = "") -> Value:
        """An operation with one result of the type ``kind``."""
        made = Value(self.name(hint), kind)
        self.line(f"{made.name} = {text}")
        return made

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """``op %a, %b : type``, whose result has the type of its operands."""
        return self.op(f"{op} {a.name}, {b.name} : {a.type}", a.type)

    def unary(self, op: str, a: Value) -> Value:
        """``op %a : type``, whose result has the type of its operand."""
        return self.op(f"{op} {a.name} : {a.type}", a.type)

    def convert(self, op: str, value: Value, to: str) -> Value:
        """``op %value : type to other``, whose result has the other type."""
        return self.op(f"{op} {value.name} : {value.type} to {to}", to)

    def compare(self, op: str, a: Value, b: Value, result: DType) -> Value:
        """``op`` with its predicate, as in ``arith.cmpi slt``."""
        return self.op(f"{op}, {a.name}, {b.name} : {a.type}", type_of(result))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``arith.select``: one of two values of a type, lane by lane where the condition has lanes."""
        types = a.type if condition.type == "i1" else f"{condition.type}, {a.type}"
        return self.op(f"arith.select {condition.name}, {a.name}, {b.name} : {types}", a.type)

    def generic(self, op: str, operands: Sequence[Value], result: str = "", attributes: str = "") -> Value:
        """An operation in the form that all readers take, also those that have no syntax for it."""
        names, types = (", ".join(getattr(v, part) for v in operands) for part in ("name", "type"))
        text = f'"{op}"({names}){attributes} : ({types}) -> {result or "()"}'
        if result:
            return self.op(text, result)
        self.line(text)
        return Value("", "")

    def call(self, helper: str, args: Sequence[Value], result: str, build: Build) -> Value:
        """A call of a helper, for what takes too many operations to stand where it is used."""
        types = [a.type for a in args]
        symbol = self.helpers.function(helper, types, result, build)
        names = ", ".join(a.name for a in args)
        return self.op(f"func.call @{symbol}({names}) : ({', '.join(types)}) -> {result}", result)

    def constant(self, kind: DType, number: bool | int | float) -> Value:
        """A constant, the same in each lane; each stands once, at the top of the function."""
        literal = _literal(kind.element, number)
        text = f"dense<{literal}>" if kind.lanes > 1 else literal
        return self.constant_text(text, type_of(kind), _constant_hint(kind, number))

    def constant_text(self, text: str, kind: str, hint: str) -> Value:
        """An ``arith.constant`` of the type ``kind``, written as ``text``, at the top of the function; equal ones are
        one value."""
        key = text if text in ("true", "false") else f"{text} : {kind}"
        if key not in self._constants:
            made = self._constants[key] = Value(self.name(hint), kind)
            self._constant_lines.append(f"  {made.name} = arith.constant {key}")
        return self._constants[key]

    def index(self, number: int) -> Value:
        """A constant of the type ``index``."""
        return self.constant(INDEX, number)

    def steps(self, kind: DType, start: int, stride: int) -> Value:
        """The vector constant ``start, start + stride, …``."""
        numbers = [start + stride * lane for lane in range(kind.lanes)]
        low, high = kind.element.int_range() or (-(1 << 63), (1 << 63) - 1)
        wrapped = [(n - low) % (high - low + 1) + low for n in numbers]
        return self.constant_text(f"dense<[{', '.join(map(str, wrapped))}]>", type_of(kind), "lanes")

    def ends_generic(self) -> bool:
        """Whether the last line is an operation in the form that needs no syntax, and without a result."""
        last = self._lines[-1] if self._lines else ""
        return isinstance(last, str) and last.lstrip().startswith(('"', "})"))

    @contextmanager
    def region(self, head: str, end: str = "}") -> Iterator[None]:
        """The lines of a region between its first line and its last; no first line where another region just ended."""
        if head:
            self.line(head)
        outside, self._indent = self._indent, self._indent + "  "
        yield
        self._indent = outside
        self.line(end)

    def place(self) -> Place:
        """The place where the next line would stand, for lines that turn out to be needed there later."""
        lines: Lines = []
        self._lines.append(lines)
        return Place(lines, self._indent)

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """What is written meanwhile stands at the place."""
        outside = self._lines, self._indent
        self._lines, self._indent = place.lines, place.indent
        yield
        self._lines, self._indent = outside

    def function(self, head: str) -> str:
        """The whole function."""
        return "\n".join([f"{head} {{", *_flat(self._constant_lines), *_flat(self._lines), "}"])


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the text, made by ``Writer.place``."""

    lines: Lines
    indent: str


def module_text(functions: Sequence[str], helpers: Helpers) -> str:
    """The module of these functions, with their helpers behind them."""
    texts = [re.sub(r"^", "  ", text, flags=re.MULTILINE) for text in (*functions, *helpers.texts.values())]
    return "\n".join(["module {", *texts, "}"])


def _wrapped(text: str, indent: str) -> Iterator[str]:
    """The text in lines, broken behind commas."""
    line = indent
    for part in re.split(r"(?<=, )", text):
        if len(line) + len(part) > WIDTH + 1 and line.strip():
            yield line.rstrip()
            line = indent + " " * 6
        line += part
    yield line


def quoted(text: str) -> str:
    """A string as MLIR reads it: what is not plain ASCII stands as the hexadecimal digits of its bytes."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else _escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def _flat(lines: Lines) -> Iterator[str]:
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from _flat(line)


def _literal(kind: DType, number: bool | int | float) -> str:
    if kind.is_bool:
        return "true" if number else "false"
    if not kind.is_float and not kind.is_narrow:
        return str(int(number))
    made = np.asarray(number).astype(kind.to_numpy())
    if kind.is_narrow:
        return str(int(made.view(np.uint8)))
    if not np.isfinite(made):
        bits = int(made.view(f"u{kind.storage_bytes}"))
        return f"0x{bits:0{kind.bits // 4}X}"
    text = str(made[()])
    if np.asarray(float(text)).astype(kind.to_numpy()) != made:  # readers round to a double first
        text = repr(float(number))
    mantissa, e, exponent = text.partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent


def _constant_hint(kind: DType, number: bool | int | float) -> str:
    if kind is INDEX:
        return f"c{number}" if number >= 0 else f"c_minus{-number}"
    if kind.element is BOOL:
        return "true" if number else "false"
    word = "zero" if str(number) in ("0", "0.0") else "one" if number == 1 else "cst"
    return f"{word}_{re.sub(r'vector<|>', '', type_of(kind))}"
