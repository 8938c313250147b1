"""Our ``dataclass`` makes the classes that the standard library's makes."""

import ast
import copy
import dataclasses
import inspect
import pickle
import weakref
from pathlib import Path
from typing import ClassVar

import pytest

import loopwright as lw
from loopwright.base.dataclass import dataclass

OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False, "repr": False, "weakref_slot": True},
    {"frozen": True, "kw_only": True},
    {"slots": True, "eq": False},
]


def pair_of(maker, options):
    """A class with all kinds of fields, and one that inherits from it."""

    @maker(**options)
    class Base:
        shared: ClassVar[int] = 3
        name: str
        size: int = 4
        parts: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=7, repr=False, compare=False)

    @maker(**options)
    class Derived(Base):
        late: int = dataclasses.field(default=0, kw_only=True)
        counted: int = dataclasses.field(init=False, default=1)
        made: dict[str, int] = dataclasses.field(init=False, default_factory=dict)

        def __post_init__(self):
            object.__setattr__(self, "counted", self.size + 1)

    return Base, Derived


def result(do):
    """What a call gives, or the class and text of its error."""
    try:
        return do()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error), str(error)


def shown(value):
    """A value as text, without the addresses of objects."""
    return repr(value) if not hasattr(value, "name") or type(value).__repr__ is not object.__repr__ else vars_of(value)


def vars_of(value):
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def behaviour(base, derived, options):
    """What can be seen of the two classes."""
    one, same = derived(name="a", size=2), derived(name="a", size=2)
    other = derived(name="b", parts=[1], late=5, hidden=9)
    yield [str(inspect.signature(cls)).replace("<factory>", "_") for cls in (base, derived)]
    yield [cls.__match_args__ for cls in (base, derived)]
    yield [[(f.name, f.init, f.compare, f.kw_only) for f in dataclasses.fields(cls)] for cls in (base, derived)]
    yield [[getattr(derived.__dataclass_params__, name) for name in ("init", "repr", "eq", "frozen")]]
    yield [vars_of(one), vars_of(other), dataclasses.asdict(other)]
    yield [one == same, one == other, one != same, one == base(name="a", size=2), one == 3]
    yield result(lambda: hash(one) == hash(same)) if options.get("eq", True) else one.__hash__ is not None
    yield shown(one), shown(other)
    yield shown(dataclasses.replace(one, name="c"))
    yield result(lambda: dataclasses.replace(one, counted=1))
    yield shown(copy.copy(other))
    yield shown(copy.deepcopy(other))
    yield (
        result(lambda: setattr(one, "size", 8)),
        result(lambda: delattr(one, "size")),
        vars(type(one)).get("__slots__"),
    )
    yield [result(lambda: derived(unknown=1)), result(derived)]
    yield derived(name="a").made is not derived(name="a").made
    yield hasattr(one, "__dict__"), base.shared
    yield isinstance(result(lambda: weakref.ref(one)), weakref.ref)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(f"{k}={v}" for k, v in options.items()))
def test_classes_behave_as_those_of_the_standard_library(options):
    ours, theirs = pair_of(dataclass, options), pair_of(dataclasses.dataclass, options)
    for mine, expected in zip(behaviour(*ours, options), behaviour(*theirs, options), strict=True):
        assert mine == expected


def test_what_a_class_defines_itself_stays():
    @dataclass(frozen=True)
    class Own:
        value: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return isinstance(other, Own)

        def __hash__(self):
            return 5

    assert repr(Own(1)) == "own"
    assert Own(1) == Own(2)
    assert hash(Own(3)) == 5


def test_a_class_shows_itself_within_itself():
    @dataclass
    class Node:
        next: object = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


@dataclass(frozen=True, slots=True)
class Pickled:
    name: str
    sizes: tuple[int, ...] = (1, 2)


def test_frozen_classes_with_slots_can_be_pickled():
    assert pickle.loads(pickle.dumps(Pickled("a"))) == Pickled("a")


def test_the_standard_library_inherits_from_our_frozen_classes():
    @dataclasses.dataclass(frozen=True)
    class Outside(Pickled):
        more: int = 1

    assert Outside("a", more=3) == Outside("a", more=3)
    with pytest.raises(TypeError, match="frozen"):

        @dataclass
        class Thawed(Pickled):
            more: int = 1


def test_the_package_has_no_dataclasses_of_another_kind():
    package, found = Path(lw.__file__).parent, []
    for folder in [path.parent for path in package.glob("*/__init__.py")]:
        for path in folder.rglob("*.py"):
            if path == package / "base" / "dataclass.py":
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
            names = {name.name for node in imports if node.module == "dataclasses" for name in node.names}
            if names & {"dataclass", "InitVar"}:
                found.append(str(path.relative_to(package)))
    assert not found, "import dataclass from base/dataclass.py: " + ", ".join(found)
