"""The inputs of an ONNX model: tensors are parameters of the graph, sequences, maps and optionals are made of some."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from onnx import GraphProto, TensorProto, TypeProto, ValueInfoProto

from ..base.dataclass import dataclass
from ..base.dtype import INT64
from ..base.errors import ModelError
from ..base.value_form import ValueForm
from ..graph.bounded_extents import extents_by_name
from ..graph.node import Var
from ..graph.types import GivenShape, given_shapes, tensor_type
from ..ir.build import index_var
from ..ir.constants import ONE
from ..ir.expr import Expr
from ..ir.simplify import simplify
from .refusal_causes import UnsupportedTypeError
from .shown_results import unique_name
from .tensors import Symbols, bind_dimensions, bind_formulas, element_type, holds_strings, value_type
from .values import Absent, Entries, Listed, Ragged, Value, element_nodes, form_of, nodes_of

Shapes = Mapping[str, object]
"""As a caller gives them: the shape of a tensor, a list of the shapes of a sequence's, None for an empty optional."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelInputs:
    """The inputs that are fed at run time, in order: their values by name, and how callers see them."""

    values: Mapping[str, Value]
    strings: tuple[Var, ...] = ()
    """Those that are spans of strings."""
    symbols: Symbols = field(default_factory=dict)
    """The dimensions that are declared by name."""
    params: tuple[Var, ...] = field(init=False)
    """The parameters that they are made of; behind them the bytes of all strings, if there are any."""

    def __post_init__(self) -> None:
        found = [node for value in self.values.values() for node in nodes_of(value) if isinstance(node, Var)]
        if self.strings:
            name = unique_name("utf8", [param.name for param in found])
            found.append(Var(name, tensor_type((index_var("utf8_bytes"),), "uint8")))
        object.__setattr__(self, "params", tuple(found))

    @property
    def forms(self) -> tuple[ValueForm, ...]:
        """How callers see them."""
        return tuple(form_of(name, value) for name, value in self.values.items())


def fed_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """All inputs but initializers, which early versions list as inputs too."""
    constants = {i.name for i in graph.initializer}
    return [i for i in graph.input if i.name not in constants]


def model_inputs(fed: Sequence[ValueInfoProto], shapes: Shapes | None) -> ModelInputs:
    """The values of what is fed. Raises ``ModelError`` for ``shapes`` that do not fit, and for types that are not
    supported."""
    absent, listed, given = _sorted_by_kind(fed, shapes)
    single = [i for i in fed if i.name not in absent and not _is_sequence(i.type) and not _is_map(i.type)]
    tensors = [(i, _tensor_of(i.type)) for i in single]
    symbols: Symbols = extents_by_name(extent for shape in given.values() for extent in shape)
    for i, proto in tensors:
        if i.name in given:
            bind_dimensions(proto, _where(i), symbols, given[i.name])
    bind_formulas([(_where(i), proto) for i, proto in tensors], symbols)
    kinds = {i.name: value_type(proto, _where(i), symbols, given.get(i.name), spans=True) for i, proto in tensors}
    values: dict[str, Value] = {}
    for i in fed:
        if i.name in absent:
            values[i.name] = Absent()
        elif i.name in kinds:
            values[i.name] = Var(i.name, kinds[i.name])
        elif _is_map(i.type):
            values[i.name] = _entries(i)
        else:
            values[i.name] = _listed(i, listed[i.name]) if i.name in listed else _ragged(i)
    texts = [i.name for i, proto in tensors if holds_strings(proto)]
    strings = [value for name in texts if isinstance(value := values[name], Var)]
    strings += [part for i in fed if _is_map(i.type) for part in _texts_of(i, values[i.name])]
    strings += [part for i in fed if _is_sequence(i.type) for part in _texts_of_sequence(i, values[i.name])]
    return ModelInputs(values, tuple(strings), symbols)


def _sorted_by_kind(
    fed: Sequence[ValueInfoProto], shapes: Shapes | None
) -> tuple[set[str], dict[str, list[GivenShape]], dict[str, GivenShape]]:
    """What callers say of inputs, by name: which are absent, the shapes of a sequence's tensors, those of tensors."""
    if shapes is None or not isinstance(shapes, Mapping):
        return set(), {}, given_shapes(shapes)
    kinds = {i.name: i.type for i in fed}
    unknown = sorted(map(str, shapes.keys() - kinds.keys()))
    if unknown:
        known = ", ".join(map(repr, kinds)) or "none"
        raise ModelError(f"shapes= names {unknown[0]!r}, which is no input of the model; its inputs are {known}")
    absent = {name for name, shape in shapes.items() if shape is None and kinds[name].HasField("optional_type")}
    sequences = {name: shape for name, shape in shapes.items() if name not in absent and _is_sequence(kinds[name])}
    others = {name: shape for name, shape in shapes.items() if name not in absent and name not in sequences}
    return absent, {name: _shapes_of_sequence(name, given) for name, given in sequences.items()}, given_shapes(others)


def _shapes_of_sequence(name: str, given: object) -> list[GivenShape]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ModelError(
            f"shapes= gives the input {name!r} {given!r}: it is a sequence, write the shapes of its tensors, as in "
            "[(3,), (4,)]"
        )
    return list(given_shapes({f"{name}.{number}": shape for number, shape in enumerate(given)}).values())


def _where(info: ValueInfoProto) -> str:
    return f"input {info.name!r}"


def _inside_optional(proto: TypeProto) -> TypeProto:
    return proto.optional_type.elem_type if proto.HasField("optional_type") else proto


def _is_sequence(proto: TypeProto) -> bool:
    return bool(_inside_optional(proto).HasField("sequence_type"))


def _is_map(proto: TypeProto) -> bool:
    return bool(proto.HasField("map_type"))


def _entries(info: ValueInfoProto) -> Entries:
    """A map with as many entries as each run gives it, from integers or strings to scalars."""
    proto, where = info.type.map_type, f"the keys of input {info.name!r}"
    if proto.key_type not in (TensorProto.INT64, TensorProto.STRING):
        kind = TensorProto.DataType.Name(proto.key_type)
        raise UnsupportedTypeError(f"{where} are of {kind}; int64 and strings are supported")
    if not proto.value_type.HasField("tensor_type"):
        raise UnsupportedTypeError(f"the values of input {info.name!r} are no tensors, which is not supported")
    number = proto.value_type.tensor_type.elem_type
    count = index_var(f"{info.name}_entries")
    kind = INT64 if number == TensorProto.STRING else element_type(number, f"the values of input {info.name!r}")
    keys = Var(f"{info.name}.keys", tensor_type((count,), "int64"))
    return Entries(keys, Var(f"{info.name}.values", tensor_type((count,), kind)))


def _texts_of(info: ValueInfoProto, entries: Value) -> Iterator[Var]:
    """The parts of a map that are spans of strings."""
    proto = info.type.map_type
    kinds = proto.key_type, proto.value_type.tensor_type.elem_type
    for part, kind in zip(nodes_of(entries), kinds, strict=False):
        if kind == TensorProto.STRING and isinstance(part, Var):
            yield part


def _texts_of_sequence(info: ValueInfoProto, sequence: Value) -> Iterator[Var]:
    """The tensors of a sequence, or what holds their elements, if these are spans of strings."""
    if holds_strings(_tensor_of(info.type)):
        yield from (part for part in element_nodes(sequence) if isinstance(part, Var))


def _tensor_of(proto: TypeProto) -> TypeProto:
    """The type of a tensor, or of those of a sequence."""
    inner = _inside_optional(proto)
    return inner.sequence_type.elem_type if inner.HasField("sequence_type") else inner


def _listed(info: ValueInfoProto, shapes: Sequence[GivenShape]) -> Listed:
    """A sequence of tensors of these shapes. A dimension that is declared by name is one of each tensor by itself."""
    proto = _tensor_of(info.type)
    elements = []
    for number, shape in enumerate(shapes):
        where = f"tensor {number} of input {info.name!r}"
        bare = TypeProto()
        bare.tensor_type.elem_type = proto.tensor_type.elem_type
        bounded = extents_by_name(shape)
        elements.append(Var(f"{info.name}.{number}", value_type(bare, where, bounded, shape, spans=True)))
    kind = INT64 if holds_strings(proto) else element_type(proto.tensor_type.elem_type, _where(info))
    return Listed(tuple(elements), kind)


def _ragged(info: ValueInfoProto) -> Ragged:
    """A sequence of any length, of tensors of the rank that is declared."""
    proto = _tensor_of(info.type)
    where = f"the tensors of input {info.name!r}"
    if proto.HasField("tensor_type") and not proto.tensor_type.HasField("shape"):
        raise ModelError(
            f"input {info.name!r} is a sequence of tensors whose rank is not declared: give the shapes of its tensors "
            f"by shapes=, as in {{{info.name!r}: [(3,), (4,)]}}"
        )
    kind = value_type(proto, where, {}, spans=True)
    shape = kind.shape if kind.static_shape is not None else None
    length = index_var(f"{info.name}_length")
    total: Expr = index_var(f"{info.name}_elements")
    if shape is not None:
        total = simplify(length * math.prod(shape, start=ONE))
    rows = tensor_type((length, kind.ndim), "int64")
    return Ragged(
        Var(f"{info.name}.values", tensor_type((total,), kind.dtype)), Var(f"{info.name}.extents", rows), shape
    )
