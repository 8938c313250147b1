"""Every rule of the simplifier is a theorem, and z3 proves it.

The test reads the rule files: each ``case pattern if guard: return result`` becomes the statement "the operator applied
to what the pattern matches equals the result, given the guard", about mathematical integers (index), bit-vectors (data
integers), IEEE floats or truth values. A new rule is proved without any change here. Helpers that a rule calls are
taken at their word: ``Contracts`` states what their docstrings say; they, and all else of the simplifier that is code
and no pattern, are proved on instances by test_simplify_instances.py.

Where z3 cannot decide a statement about all constants (products of unknowns), it is proved for all values of the
variables and a set of values of the constants.
"""

# ruff: noqa: E731, PT018

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import z3
from z3_semantics import BITS, HALF, compare, decide, operate

from loopwright.ir import simplify
from loopwright.ir.facts import NEGATED
from loopwright.ir.simplify import add_sub, cast, choice, logical, table

SAMPLES = {
    "index": (-4, -3, -1, 0, 1, 2, 3, 4, 6, 8),
    "int": (-128, -3, -1, 0, 1, 2, 3, 4, 127),
    "uint": (0, 1, 2, 3, 4, 128, 255),
}
DIVISORS = (-3, -2, -1, 1, 2, 3, 4, 7)
DTYPES = {
    name: SimpleNamespace(is_float=name == "float", is_index=name == "index")
    for name in ("index", "int", "uint", "float", "bool")
}


@dataclass
class Number:
    """A term of one domain with Python's operators; ``a`` and ``b`` are its operands if a pattern took it apart."""

    term: Any
    domain: str
    a: Any = None
    b: Any = None

    @property
    def dtype(self) -> Any:
        return DTYPES[self.domain]

    def of(self, value: Any) -> Any:
        """The term of a constant, in the domain of this number."""
        if isinstance(value, Number):
            return value.term
        match self.domain:
            case "index":
                return z3.IntVal(value)
            case "float":
                return z3.FPVal(value, HALF)
            case "bool":
                return z3.BoolVal(value)
            case _:
                return z3.BitVecVal(value, BITS)

    def wide(self, term: Any) -> Any:
        """A data integer in enough bits that nothing wraps."""
        return z3.SignExt(BITS + 2, term) if self.domain == "int" else z3.ZeroExt(BITS + 2, term)

    def operate(self, op: str, other: Any) -> Number:
        return Number(operate(op, self.domain, self.term, self.of(other)), self.domain)

    def compare(self, op: str, other: Any) -> Number:
        return Number(compare(op, self.domain, self.term, self.of(other)), "bool")

    __add__ = lambda self, other: self.operate("+", other)
    __radd__ = __add__
    __sub__ = lambda self, other: self.operate("-", other)
    __rsub__ = lambda self, other: Number(self.of(other), self.domain) - self
    __mul__ = lambda self, other: self.operate("*", other)
    __rmul__ = __mul__
    __floordiv__ = lambda self, other: self.operate("//", other)
    __rfloordiv__ = lambda self, other: Number(self.of(other), self.domain) // self
    __mod__ = lambda self, other: self.operate("%", other)
    __and__ = lambda self, other: self.operate("and" if self.domain == "bool" else "&", other)
    __or__ = lambda self, other: self.operate("or" if self.domain == "bool" else "|", other)
    __neg__ = lambda self: (
        Number(self.of(0), self.domain).operate("-", self)
        if self.domain != "float"
        else Number(z3.fpNeg(self.term), "float")
    )
    __invert__ = lambda self: Number(z3.Not(self.term) if self.domain == "bool" else ~self.term, self.domain)
    __lt__ = lambda self, other: self.compare("<", other)
    __le__ = lambda self, other: self.compare("<=", other)
    __gt__ = lambda self, other: self.compare(">", other)
    __ge__ = lambda self, other: self.compare(">=", other)
    __eq__ = lambda self, other: self.compare("==", other)  # type: ignore[assignment]
    __ne__ = lambda self, other: self.compare("!=", other)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Skip(Exception):  # noqa: N818
    """These constants do not fit the pattern or the guard."""


@dataclass
class Contracts:
    """What rules may call. A call adds what its result promises to the premises."""

    domain: str
    constants: Callable[[str, tuple[int, ...]], Any]
    premises: list[Any] = field(default_factory=list)
    made: int = 0

    def fresh(self, domain: str | None = None) -> Number:
        self.made += 1
        kind = domain or self.domain
        name = f"v{self.made}"
        sorts = {"index": z3.Int, "bool": z3.Bool, "float": lambda n: z3.FP(n, HALF)}
        return Number(sorts.get(kind, lambda n: z3.BitVec(n, BITS))(name), kind)

    def assume(self, condition: Any) -> bool:
        if isinstance(condition, Number):
            condition = condition.term
        if condition is False:
            raise Skip
        if condition is not True:
            self.premises.append(condition)
        return True

    def namespace(self) -> dict[str, Any]:
        names = [n for n in dir(Contracts) if not n.startswith("_")]
        space = {n: getattr(self, n) for n in names if n not in ("fresh", "assume", "namespace", "constants")}
        facts = SimpleNamespace(not_less=self.not_less, less=self.less, within=self.within)
        true, false = Number(z3.BoolVal(True), "bool"), Number(z3.BoolVal(False), "bool")
        return {**space, "facts": facts, "TRUE": true, "FALSE": false, "NEGATED": NEGATED, "min": self.minimum,
                "max": self.maximum}  # fmt: skip

    # Facts.

    def not_less(self, x: Any, y: Any) -> bool:
        return self.assume(x >= y)

    def less(self, x: Any, y: Any) -> bool:
        return self.assume(x < y)

    def within(self, x: Any, low: Any, high: Any) -> bool:
        return (low is None or self.assume(x >= low)) and (high is None or self.assume(x <= high))

    # Makers.

    def like(self, x: Number, value: Any) -> Number:
        return Number(x.of(value), x.domain)

    def minimum(self, a: Any, b: Any) -> Any:
        return self._extreme("min", a, b)

    def maximum(self, a: Any, b: Any) -> Any:
        return self._extreme("max", a, b)

    def _extreme(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(a, Number):
            return a.operate(op, b)
        return Number(b.of(a), b.domain).operate(op, b) if isinstance(b, Number) else {"min": min, "max": max}[op](a, b)

    def negate(self, a: Number) -> Number:
        return ~a

    def Compare(self, op: str, a: Number, b: Number) -> Number:
        return a.compare(op, b)

    def Equation(self, left: Number, right: Number) -> Any:
        return SimpleNamespace(left=left, right=right)

    # Helpers of the rules.

    def is_const(self, x: Any, value: Any) -> Any:
        same = x.term == x.of(value)  # of floats: the same bits
        return Number(same, "bool")

    def wrapped(self, x: Number, value: Any) -> Any:
        return value if self.domain == "index" else (value if self.domain == "uint" else (value + 128) % 256 - 128)

    def fits(self, x: Number, value: Any) -> Any:
        return True if self.domain == "index" else min(SAMPLES[self.domain]) <= value <= max(SAMPLES[self.domain])

    def all_ones(self, x: Number) -> int:
        return -1 if self.domain == "int" else 255

    def split(self, x: Number, y: Any) -> Any:
        quotient, rest = self.fresh(), self.fresh()
        self.assume(x.term == (quotient * y + rest).term)
        return SimpleNamespace(quotient=quotient, rest=rest)

    def only_quotient(self, x: Number, c: Any, facts: Any) -> Any:
        result = self.fresh()
        if self.domain == "index":
            self.assume(z3.And((result * c <= x).term, (x < (result + 1) * c).term))
        else:
            wide = z3.BitVecVal(c, 2 * BITS + 2)
            quotient, value = x.wide(result.term), x.wide(x.term)
            self.assume(z3.And(quotient * wide <= value, value < (quotient + 1) * wide))
        return result

    def known_rest(self, x: Number, c: Any, facts: Any) -> Number:
        result = self.fresh()
        self.assume(result == x % c)
        return result

    def without_remainders(self, x: Number, c: Any) -> Number:
        return x + self.fresh() * c

    def grouped(self, x: Number, c: Any, facts: Any) -> Any:
        factor, quotient, rest = self.constants("factor", (2, 3, 4, 8)), self.fresh(), self.fresh()
        self.assume(c % factor == 0)
        self.assume(factor > 1)
        self.assume(x == quotient * factor + rest)
        self.assume((rest >= 0) & (rest < factor))
        return SimpleNamespace(factor=factor, quotient=quotient, rest=rest)

    def common_part(self, x: Number, y: Number) -> Any:
        common, a, b = self.fresh(), self.fresh(), self.fresh()
        self.assume((x == common + a) & (y == common + b))
        return SimpleNamespace(common=common, a=a, b=b)

    def balanced(self, x: Number, y: Number) -> Any:
        factor, constant = self.constants("factor", (1, 2, 3, 7)), self.constants("constant", SAMPLES["index"])
        a, b = self.fresh(), self.fresh()
        self.assume(factor > 0)
        self.assume(x - y == (a - b) * factor + constant)
        return SimpleNamespace(factor=factor, a=a, b=b, constant=constant)

    def chooses_larger(self, condition: Number, x: Number, y: Number) -> Any:
        return (condition & (x >= y)) | (~condition & (x <= y))

    def flipped(self, x: Number, y: Number) -> Any:
        return self.balanced(y, x)


class Operators(ast.NodeTransformer):
    """``and``, ``or``, ``not`` and ``is`` cannot be overloaded: they become calls."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "_and" if isinstance(node.op, ast.And) else "_or"
        return ast.Call(ast.Name(name, ast.Load()), node.values, [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.Call(ast.Name("_not", ast.Load()), [node.operand], []) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        name = {ast.Is: "_is", ast.IsNot: "_is_not"}.get(type(node.ops[0]))
        return ast.Call(ast.Name(name, ast.Load()), [node.left, node.comparators[0]], []) if name else node


def _truth(value: Any) -> Any:
    return value.term if isinstance(value, Number) else z3.BoolVal(value)


CONNECTIVES: dict[str, Any] = {
    "_and": lambda *parts: Number(z3.And(*map(_truth, parts)), "bool"),
    "_or": lambda *parts: Number(z3.Or(*map(_truth, parts)), "bool"),
    "_not": lambda a: Number(z3.Not(_truth(a)), "bool"),
    "_is": lambda a, b: Number(a.term == b.term, "bool") if isinstance(a, Number) and isinstance(b, Number) else a is b,
    "_is_not": lambda a, b: a is not b,
}


@dataclass
class Rule:
    """One ``case`` of a rule function, on one domain."""

    function: Callable[..., Any]
    case: ast.match_case
    operator: str
    domain: str

    def __str__(self) -> str:
        text = ast.unparse(self.case).replace("\n    ", " ")
        return f"{self.operator} {self.domain}: {text}"

    def theorem(self, constants: Callable[[str, tuple[int, ...]], Any]) -> tuple[list[Any], Any]:
        """(premises, claim), with the constants of the pattern as given."""
        world = Contracts(self.domain, constants)
        arguments = [name for name in inspect.signature(self.function).parameters if name not in ("facts", "to")]
        subjects = [a for a in arguments if a not in ("q", "scale")]
        space = {**world.namespace(), **CONNECTIVES}
        pattern = self.case.pattern
        patterns = pattern.patterns if isinstance(pattern, ast.MatchSequence) else [pattern]
        for name, part in zip(subjects, patterns, strict=True):
            condition = self.operator == "choose" and name == "condition"
            space[name] = self.match(part, world, space, "bool" if condition else self.domain)
            if self.operator in ("//", "%") and self.domain == "index" and name == "b":
                if isinstance(part, ast.MatchAs):
                    world.assume(space[name] == world.constants("divisor", DIVISORS))
                world.assume(space[name] != 0)
        if "q" in arguments:
            space["q"] = space["a"].a // space["a"].b
        if self.case.guard is not None:
            try:
                world.assume(self.evaluate(self.case.guard, space))
            except ZeroDivisionError:  # a part of the guard that an earlier part keeps from being asked
                raise Skip from None
        (statement,) = self.case.body
        assert isinstance(statement, ast.Return) and statement.value is not None
        result = self.evaluate(statement.value, space)
        if hasattr(result, "left"):
            return world.premises, result.left.term == result.right.term
        return world.premises, self.equal(self.subject([space[s] for s in subjects]), result)

    def subject(self, operands: list[Number]) -> Number:
        match self.operator, operands:
            case "choose", [condition, a, b]:
                return Number(z3.If(condition.term, a.term, b.term), a.domain)
            case "not" | "~", [a]:
                return ~a
            case "negate", [a]:
                return -a
            case "abs", [a]:
                return Number(z3.If((a >= 0).term, a.term, (-a).term), a.domain)
            case ("<" | "<=" | ">" | ">=" | "==" | "!=") as op, [a, b]:
                return a.compare(op, b)
            case op, [a, b]:
                return a.operate(op, b)
        raise AssertionError(self)

    def equal(self, expected: Number, found: Number) -> Any:
        if self.domain == "float" and self.operator in ("min", "max"):  # either of two zeros may come
            nan = z3.And(z3.fpIsNaN(expected.term), z3.fpIsNaN(found.term))
            return z3.Or(nan, z3.fpEQ(expected.term, found.term))
        return expected.term == expected.of(found)

    def evaluate(self, e: ast.expr, space: dict[str, Any]) -> Any:
        tree = ast.fix_missing_locations(ast.Expression(Operators().visit(ast.parse(ast.unparse(e), mode="eval").body)))
        return eval(compile(tree, "rule", "eval"), space)

    def match(self, pattern: ast.pattern, world: Contracts, space: dict[str, Any], domain: str) -> Number:
        """What the pattern matches, with its captures put into ``space``."""
        match pattern:
            case ast.MatchAs(pattern=None, name=name):
                value = world.fresh(domain)
                if name is not None:
                    space[name] = value
                return value
            case ast.MatchClass(ast.Name("Const"), parts):
                return self.constant(parts, world, space, domain)
            case ast.MatchClass(ast.Name("Broadcast"), [inner]):
                return self.match(inner, world, space, domain)
            case ast.MatchClass(ast.Name("Binary" | "Logical"), [ast.MatchValue(ast.Constant(op)), left, right]):
                a, b = (self.match(p, world, space, domain) for p in (left, right))
                if domain == "index" and op in ("//", "%"):
                    world.assume(b != 0)
                made = a.operate(op, b)
                return Number(made.term, domain, a, b)
            case ast.MatchClass(ast.Name("Unary"), [ast.MatchValue(ast.Constant(op)), inner]):
                a = self.match(inner, world, space, domain)
                return -a if op == "-" else ~a
            case ast.MatchClass(ast.Name("Compare"), [ast.MatchAs(name=op), left, right]):
                operand = ("index", "float", "int", "uint")[world.constants("domain", (0, 1, 2, 3))]
                a, b = (self.match(p, world, space, operand) for p in (left, right))
                space[str(op)] = tuple(NEGATED)[world.constants("operator", tuple(range(6)))]
                return a.compare(space[str(op)], b)
        raise AssertionError(ast.dump(pattern))

    def constant(self, parts: list[ast.pattern], world: Contracts, space: dict[str, Any], domain: str) -> Number:
        blank = world.fresh(domain)
        match parts:
            case []:
                return blank
            case [ast.MatchValue(ast.Constant(value)) | ast.MatchSingleton(value)]:
                return Number(blank.of(value), domain)
            case [ast.MatchOr(options)]:
                values = tuple(o.value.value for o in options)  # type: ignore[attr-defined]
                return Number(blank.of(world.constants("option", values)), domain)
            case [ast.MatchClass(ast.Name("int"), [ast.MatchAs(name=name)])]:
                space[str(name)] = value = world.constants(str(name), SAMPLES[self.domain])
                return Number(blank.of(value), domain)
        raise AssertionError(parts)


def cases_of(function: Callable[..., Any]) -> Iterator[ast.match_case]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case):
            body = node.body[0]
            assert len(node.body) == 1 and isinstance(body, ast.Return), f"{function.__name__}: one rule a line"
            if not (isinstance(body.value, ast.Constant) and body.value.value is None):
                yield node


EQUATIONS = (
    add_sub.remainder_and_quotient,
    add_sub.two_remainders,
    add_sub.remainder_and_other_quotient,
    add_sub.value_and_quotient,
    add_sub.exact_quotient,
)


def rule_functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """All rule functions, as (operator, domain, function)."""
    for (op, domain), functions in {**table.BINARY, **table.COMPARE}.items():
        for function in functions:
            for kind in ("int", "uint") if domain == "data" else (domain,):
                yield op, kind, function
    for op, functions in table.LOGICAL.items():
        yield from ((op, "bool", f) for f in functions)
    for domain in ("index", "bool"):
        yield from (("choose", domain, f) for f in table.CHOICE)
    yield "not", "bool", logical.not_bool
    yield "negate", "float", cast.negate_float
    yield from (("~", kind, cast.invert_data) for kind in ("int", "uint"))
    yield from (("abs", kind, cast.absolute) for kind in ("index", "int", "uint"))
    yield from (("+", "index", equation) for equation in EQUATIONS)


def is_typed(rule: Rule) -> bool:
    """Whether the rule makes sense on its domain: some choices are rules for bools only, and one of abs for index."""
    if "dtype is a.dtype" in str(rule):
        return rule.domain == "bool"
    return rule.domain == "index" or "dtype.is_index" not in str(rule)


RULES = [r for op, kind, f in rule_functions() for case in cases_of(f) if is_typed(r := Rule(f, case, op, kind))]


def holds_for_all_constants(rule: Rule) -> bool:
    """Whether z3 proves the rule with its constants as unknowns."""
    if rule.domain not in ("index", "bool"):
        return False

    def unknown(name: str, _: tuple[int, ...]) -> Any:
        if name in ("domain", "operator", "option"):
            raise Skip
        return Number(z3.Int(name), "index")

    try:
        premises, claim = rule.theorem(unknown)
    except Skip:
        return False
    return bool(decide(premises, claim, 300) == z3.unsat)


def instances(rule: Rule) -> Iterator[tuple[list[Any], Any, dict[str, int]]]:
    """The rule for each choice of its constants."""
    wanted: dict[str, tuple[int, ...]] = {}

    def first(name: str, values: tuple[int, ...]) -> int:
        wanted[name] = values
        return values[len(values) // 2]

    while True:  # some constants show only once others fit
        before = len(wanted)
        for chosen in itertools.product(*wanted.values()):
            names = dict(zip(wanted, chosen, strict=True))
            try:
                rule.theorem(lambda n, values, names=names: names[n] if n in names else first(n, values))
            except Skip:
                continue
            if len(wanted) > before:
                break
        if len(wanted) == before:
            break
    for chosen in itertools.product(*wanted.values()):
        names = dict(zip(wanted, chosen, strict=True))
        try:
            premises, claim = rule.theorem(lambda n, _, names=names: names[n])
        except Skip:
            continue
        yield premises, claim, names


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rule_is_a_theorem(rule: Rule) -> None:
    if holds_for_all_constants(rule):
        return
    applies = 0
    for premises, claim, names in instances(rule):
        solver = z3.Solver()
        solver.add(*premises)
        if solver.check() != z3.sat:
            continue
        applies += 1
        answer = decide(premises, claim, 20_000)
        assert answer == z3.unsat, f"{rule}\nwith {names}: {answer}"
    assert applies, f"{rule}: no choice of constants satisfies its guard"


RULE_FILES = ("add_sub", "bitwise", "cast", "choice", "compare", "floordiv", "floormod", "logical", "minmax", "mul")
CODE_FILES = ("apply", "combine", "driver", "expressions", "helpers", "statements", "table", "vector", "visitor")
"""What these do is proved by instances, or tried out by the tests of statements."""
BY_INSTANCES = ("cast_any",)
"""Rules about dtypes that no pattern names: test_simplify_instances.py has all pairs of them."""


def test_no_rule_escapes_the_proofs() -> None:
    folder = Path(simplify.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {*RULE_FILES, *CODE_FILES, "__init__"}
    proved = {rule.function for rule in RULES}
    for name in RULE_FILES:
        module = importlib.import_module(f"loopwright.ir.simplify.{name}")
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                assert function in proved or function.__name__ in BY_INSTANCES, f"{name}.{function.__name__}"
                _, *rest = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].body  # type: ignore[attr-defined]
                known = (ast.Expr, ast.Match, ast.Return)
                assert all(isinstance(part, known) for part in rest), f"{function.__name__}: rules are cases of a match"


def test_a_false_rule_is_refused() -> None:
    case = ast.parse("match a, b:\n    case x, Const(int(c)) if c > 0: return x - x // c").body[0].cases[0]  # type: ignore[attr-defined]
    rule = Rule(choice.choose, case, "%", "index")
    rule.function = lambda a, b, facts: None
    with pytest.raises(AssertionError):
        test_rule_is_a_theorem(rule)
