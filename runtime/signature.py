"""What a model expects of its callers' arrays: inputs by name or in order, and buffers for outputs, all checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from ..artifact.function import TensorSpec
from ..artifact.model import CompiledModel
from ..base.addresses import address_of
from ..base.dtype import STRING
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text
from ..base.spans import pack_strings, unpack_strings
from .arrays import Array, SupportsDLPack, as_array, misaligned
from .dimensions import Shape, check_shape
from .grouped_values import GroupedInputs, GroupedOutputs
from .repeated_inputs import RepeatedInputs
from .tensor_specs import TensorSpecs

Values: TypeAlias = Mapping[str, object] | Sequence[object] | SupportsDLPack | Array
"""Arrays by name, or in order; where there is one only, it may stand by itself."""


class Signature:
    """The inputs and outputs of a model. Mutable: it remembers the shape of each input that was checked last."""

    def __init__(self, model: CompiledModel) -> None:
        self.name = model.name
        self.inputs = TensorSpecs(model.shown_inputs)
        self.outputs = TensorSpecs(model.shown_outputs)
        self.output_positions = {spec.name: number for number, spec in enumerate(self.outputs)}
        self.gives_strings = any(spec.dtype is STRING for spec in self.outputs)
        self._strings = model.string_inputs
        self._repeated = RepeatedInputs(model) if model.repeated else None
        self._order = self.inputs.names
        self._names = set(self._order)
        self._wanted: list[tuple[np.dtype[Any], tuple[object, ...]]]
        self._wanted = [(spec.dtype.to_numpy(), spec.shape) for spec in self.inputs]
        self._output_kinds = [spec.dtype.to_numpy() for spec in self.outputs]
        forms = model.grouped_inputs
        self._grouped = GroupedInputs(model.name, forms, self.inputs) if forms else None
        self.grouped_outputs = GroupedOutputs(model.grouped_outputs) if model.grouped_outputs else None
        if self.grouped_outputs is not None:
            self.output_positions = self.grouped_outputs.positions

    def input_arrays(self, values: Values, repeat: bool = True) -> list[Array]:
        """The arrays behind the inputs, in order; nothing is converted or copied, but strings, and what is repeated.
        Without ``repeat`` the arrays are those that are given.

        Arrays that fit at first sight are let through at once: this is on the path of each call. Dtypes are most often
        the same object, but for arrays that were unpickled.
        """
        if self._grouped is not None:
            values = self._grouped.arrays(values)
        if type(values) is list or type(values) is tuple:
            found: list[Any] = list(values)
        elif type(values) is np.ndarray and len(self._order) == 1:
            found = [values]
        elif isinstance(values, (dict, Mapping)):
            if values.keys() != self._names:
                raise self._wrong_names(values, self.inputs, "inputs")
            found = [values[name] for name in self._order]
        elif len(self._order) == 1 and not _is_list(values):
            found = [values]
        else:
            found = list(self._sequence(values, "inputs"))
        wanted = self._wanted
        if len(found) != len(wanted):
            raise self._wrong_count(found)
        for k, value in enumerate(found):
            dtype, shape = wanted[k]
            as_wanted = type(value) is np.ndarray and (value.dtype is dtype or value.dtype == dtype)
            fits = as_wanted and value.shape == shape
            if not (fits and (flags := value.flags).c_contiguous and flags.aligned):
                found[k] = self.input_array(k, value)
                if as_wanted:
                    wanted[k] = dtype, value.shape
        if self._repeated is not None and repeat:
            self._repeated.repeat(found)
        return self._with_spans(found) if self._strings else found

    def native(self, arrays: Sequence[Array]) -> list[Array]:
        """Checked inputs as native code takes them: strings as spans, and the bytes of all behind the last."""
        made = list(arrays)
        if self._repeated is not None:
            self._repeated.repeat(made)
        return self._with_spans(made) if self._strings else made

    def _with_spans(self, made: list[Array]) -> list[Array]:
        spans, utf8 = pack_strings(
            [made[k] for k in self._strings], lambda k: f"{self.name}: input {self._order[self._strings[k]]}"
        )
        for k, found in zip(self._strings, spans, strict=True):
            made[k] = found
        made.append(utf8)
        return made

    def named(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """The inputs of ``native`` by name, as callers give them."""
        shown = dict(zip(self._order, arrays, strict=False))
        return shown | {self._order[k]: unpack_strings(arrays[k], arrays[-1]) for k in self._strings}

    def input_array(self, number: int, value: object) -> Array:
        """The array behind one input."""
        axes = () if self._repeated is None else self._repeated.axes(number)
        return _checked(value, self.inputs[number], f"{self.name}: input {self._order[number]}", axes)

    def arrays_of_input(self, key: str | int, value: object) -> list[tuple[int, Array]]:
        """The arrays behind an input that is named, or given by its position, and their positions."""
        if self._grouped is None:
            parts: Iterable[tuple[int, object]] = [(self._number(key, self.inputs.names, "input"), value)]
        else:
            parts = self._grouped.arrays_of(key, value)
        return [(number, self.input_array(number, part)) for number, part in parts]

    def output_number(self, key: str | int) -> int:
        """The position of an output that is named, or given by its position."""
        return self._number(key, tuple(self.output_positions), "output")

    def _number(self, key: str | int, names: Sequence[str], what: str) -> int:
        if isinstance(key, str) and key in names:
            return list(names).index(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and 0 <= key < len(names):
            return int(key)
        raise RuntimeArgumentError(f"{self.name} has no {what} {key!r}; its {what}s are {_listed(names)}")

    def output_arrays(self, values: Values, shapes: Sequence[Shape | None], inputs: Sequence[Array]) -> list[Array]:
        """The callers' buffers for outputs of these shapes, None for one that only the run knows: apart from each other
        and from the inputs."""
        specs = self.outputs
        if self.grouped_outputs is not None:
            raise RuntimeArgumentError(
                f"{self.name} gives lists, or values that may be absent, for the outputs "
                f"{', '.join(self.output_positions)}: leave out= out"
            )
        if self.gives_strings:
            raise RuntimeArgumentError(f"{self.name} gives strings, which no buffers can hold: run it without out=")
        if type(values) is list or type(values) is tuple:
            buffers: Sequence[object] = values
        elif isinstance(values, Mapping):
            if values.keys() != set(specs.names):
                raise self._wrong_names(values, specs, "outputs")
            buffers = [values[name] for name in specs.names]
        else:
            alone = len(specs) == 1 and not _is_list(values)
            buffers = [values] if alone else self._sequence(values, "outputs")
        if len(buffers) != len(specs):
            wanted, found = count_text(len(specs), "output"), count_text(len(buffers), "buffer")
            raise RuntimeArgumentError(f"{self.name} gives {wanted}, {_listed(specs.names)}, found {found}")
        arrays = [
            value if _is_buffer(value, kind, shape) else _buffer(value, spec, shape, self.name)
            for value, spec, kind, shape in zip(buffers, specs, self._output_kinds, shapes, strict=True)
        ]
        self._check_apart(arrays, inputs)
        return arrays

    def _check_apart(self, outputs: Sequence[Array], inputs: Sequence[Array]) -> None:
        shown = inputs[: len(self.inputs)]
        count, spans = len(shown), [*map(_span, shown), *map(_span, outputs)]
        for number in range(count, len(spans)):
            low, high = spans[number]
            for other, (begin, end) in enumerate(spans[:number]):
                if low < end and begin < high:
                    given = other - count
                    where = f"input {self.inputs[other].name}" if given < 0 else f"output {self.outputs[given].name}"
                    raise RuntimeArgumentError(
                        f"{self.name}: the buffer of output {self.outputs[number - count].name} shares memory "
                        f"with that of {where}; pass one of its own"
                    )

    def _sequence(self, values: object, what: str) -> Sequence[object]:
        """What should be a list. An array has a length as well, but its rows are no inputs."""
        if isinstance(values, Sequence) and _is_list(values):
            return values
        names = _listed((self.inputs if what == "inputs" else self.outputs).names)
        raise RuntimeArgumentError(
            f"{self.name} takes a list of arrays, or a mapping from names to arrays, for the {what} {names}, "
            f"found a value of type {type(values).__name__}"
        )

    def _wrong_count(self, found: Sequence[object]) -> RuntimeArgumentError:
        wanted = f"{count_text(len(self._order), 'input')}, {_listed(self._order)}"
        hint = ""
        if any(isinstance(value, (bool, int, float, list, tuple)) for value in found):
            hint = "; a list is the inputs in order: numpy.array makes an array of numbers"
        return RuntimeArgumentError(f"{self.name} takes {wanted}, found {len(found)}{hint}")

    def _wrong_names(self, values: Mapping[str, object], specs: TensorSpecs, what: str) -> RuntimeArgumentError:
        names = set(specs.names)
        lacking, extra = sorted(names - values.keys()), sorted(map(str, values.keys() - names))
        verb = "takes" if what == "inputs" else "gives"
        return RuntimeArgumentError(
            f"{self.name} {verb} the {what} {_listed(specs.names)}"
            + (f"; missing: {', '.join(lacking)}" if lacking else "")
            + (f"; unknown: {', '.join(extra)}" if extra else "")
        )


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _checked(value: object, spec: TensorSpec, where: str, repeated: Collection[int]) -> Array:
    array = as_array(value, where)
    if spec.dtype is STRING:
        if array.dtype.kind not in "OUT":
            raise RuntimeArgumentError(f"{where} should be an array of strings, found one of {array.dtype}")
        check_shape(spec, array.shape, where)
        return array
    _check_dtype(array, spec, where)
    check_shape(spec, array.shape, where, repeated)
    if not array.flags.c_contiguous:
        raise RuntimeArgumentError(f"{where} is not contiguous; numpy.ascontiguousarray makes a copy that is")
    if not array.flags.aligned:
        raise RuntimeArgumentError(f"{where} is {misaligned(array)}; numpy.array makes a copy that is aligned")
    return array


def _is_buffer(value: object, kind: np.dtype[Any], shape: Shape | None) -> TypeGuard[Array]:
    """Whether a value is an array that an output of this type can be written to, at the first glance."""
    return (
        type(value) is np.ndarray
        and value.dtype == kind
        and (shape is None or value.shape == shape)
        and value.flags.carray
    )


def _buffer(value: object, spec: TensorSpec, shape: Shape | None, model: str) -> Array:
    """The array of a value that an output of this shape can be written to; an error of any other value."""
    where = f"{model}: the buffer of output {spec.name}"
    array = as_array(value, where)
    room = "as many elements as there may be" if shape is None else shape
    _check_dtype(array, spec, where, f"make it by numpy.empty({room}, {spec.dtype.to_numpy().name!r})")
    if shape is not None and array.shape != shape:
        raise RuntimeArgumentError(f"{where} should have shape {shape}, found {array.shape}")
    if not array.flags.c_contiguous:
        raise RuntimeArgumentError(f"{where} is not contiguous; numpy.empty makes one that is")
    if not array.flags.aligned:
        raise RuntimeArgumentError(f"{where} is {misaligned(array)}; numpy.empty makes one that is aligned")
    if not array.flags.writeable:
        raise RuntimeArgumentError(f"{where} is read-only")
    return value if type(value) is np.ndarray else array


def _check_dtype(array: Array, spec: TensorSpec, where: str, advice: str = "") -> None:
    wanted: np.dtype[Any] = spec.dtype.to_numpy()
    if array.dtype != wanted:
        raise RuntimeArgumentError(
            f"{where} should have dtype {wanted.name}, found {array.dtype}; "
            + (advice or f"convert it: array.astype({wanted.name!r})")
        )


def _span(array: Array) -> tuple[int, int]:
    begin = address_of(array)
    return begin, begin + array.nbytes
