"""Inputs and outputs that are no arrays: lists of arrays, dicts, and None for what is absent. ``ValueForm`` says of
which arrays of native code each is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..artifact.function import TensorSpec
from ..base.dtype import STRING
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text
from ..base.value_form import ValueForm
from .arrays import Array, as_array


class GroupedInputs:
    """The inputs of a model, some of which are no arrays. Arrays by the names of native code serve as well."""

    def __init__(self, model: str, forms: Sequence[ValueForm], specs: Sequence[TensorSpec]) -> None:
        self.names = tuple(form.name for form in forms)
        self._model, self._forms = model, forms
        self._specs = {spec.name: spec for spec in specs}

    def arrays(self, values: object) -> list[object]:
        """The arrays of all inputs, in order. Raises ``RuntimeArgumentError`` for values of another form."""
        if isinstance(values, Mapping) and values.keys() == self._specs.keys():
            return [values[name] for name in self._specs]
        if isinstance(values, Mapping) and values.keys() == set(self.names):
            return [array for form in self._forms for array in self._arrays_of(form, values[form.name])]
        if isinstance(values, (list, tuple)) and len(values) == len(self._forms):
            pairs = zip(self._forms, values, strict=True)
            return [array for form, value in pairs for array in self._arrays_of(form, value)]
        found = f"the names {', '.join(map(str, values)) or 'none'}" if isinstance(values, Mapping) else "other values"
        raise RuntimeArgumentError(
            f"{self._model} takes a mapping with the inputs {', '.join(self.names)}, or a list of as many, found "
            f"{found}"
        )

    def arrays_of(self, key: str | int, value: object) -> Iterator[tuple[int, object]]:
        """The arrays of one input, which is named or given by its position, with their positions among all arrays."""
        at = self.names.index(key) if isinstance(key, str) and key in self.names else key
        if isinstance(at, (str, bool)) or not 0 <= at < len(self.names):
            raise RuntimeArgumentError(
                f"{self._model} has no input {key!r}; its inputs are {', '.join(self.names) or 'none'}"
            )
        first = sum(form.arrays for form in self._forms[:at])
        yield from enumerate(self._arrays_of(self._forms[at], value), first)

    def _arrays_of(self, form: ValueForm, value: object) -> Sequence[object]:
        where = f"{self._model}: input {form.name}"
        match form.kind:
            case "tensor":
                return [value]
            case "absent":
                if value is not None:
                    raise RuntimeArgumentError(f"{where} is absent in the model as it was compiled: it should be None")
                return []
            case "list":
                arrays = _listed(value, where)
                if len(arrays) != form.count:
                    raise RuntimeArgumentError(
                        f"{where} is a list of {count_text(form.count, 'array')} in the model as it was compiled, "
                        f"found {len(arrays)}"
                    )
                return arrays
            case "ragged":
                return self._ragged(form, _listed(value, where), where)
            case "map":
                return self._entries(form, value, where)

    def _entries(self, form: ValueForm, value: object, where: str) -> Sequence[Array]:
        """The keys of a dict in ascending order, and their values."""
        keys, values = (self._specs[name].dtype for name in form.array_names)
        of_text = keys is STRING
        if not isinstance(value, Mapping):
            raise RuntimeArgumentError(f"{where} should be a dict, found a value of type {type(value).__name__}")
        if wrong := [key for key in value if not isinstance(key, str if of_text else (int, np.integer))]:
            kind = "strings" if of_text else "integers"
            raise RuntimeArgumentError(f"{where} has keys that are {kind}, found {wrong[0]!r}")
        entries = sorted(value.items(), key=lambda entry: entry[0])
        texts = [entry for _, entry in entries if not isinstance(entry, str)]
        if values is STRING and texts:
            raise RuntimeArgumentError(f"{where} should have strings as values, found {texts[0]!r}")
        try:
            names = np.array([key for key, _ in entries], object if of_text else np.int64)
            dtype = object if values is STRING else values.to_numpy()
            return names, np.array([entry for _, entry in entries], dtype).reshape(len(entries))
        except (TypeError, ValueError, OverflowError) as error:
            raise RuntimeArgumentError(
                f"{where} should have keys of {keys}, and numbers of {values} as values: {error}"
            ) from error

    def _ragged(self, form: ValueForm, values: Sequence[object], where: str) -> Sequence[Array]:
        """The elements of all arrays, one array behind the other, which is a copy, and their extents."""
        kind = self._specs[form.array_names[0]].dtype.to_numpy()
        known = [(axis, extent) for axis, extent in enumerate(form.shape) if extent is not None]
        arrays, rank = [], len(form.shape)
        for number, value in enumerate(values):
            array = value if type(value) is np.ndarray else as_array(value, f"{where}[{number}]")
            if array.dtype is not kind and array.dtype != kind:
                raise RuntimeArgumentError(
                    f"{where}[{number}] should have dtype {kind.name}, found {array.dtype}; convert it: "
                    f"array.astype({kind.name!r})"
                )
            if array.ndim != rank or (known and any(array.shape[axis] != extent for axis, extent in known)):
                wanted = ", ".join("any" if extent is None else str(extent) for extent in form.shape)
                raise RuntimeArgumentError(f"{where}[{number}] should have the extents ({wanted}), found {array.shape}")
            arrays.append(array)
        elements = np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0, kind)
        extents = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), rank)
        return elements, extents


def _listed(value: object, where: str) -> Sequence[object]:
    if isinstance(value, (list, tuple)):
        return value
    raise RuntimeArgumentError(f"{where} should be a list of arrays, found a value of type {type(value).__name__}")


class GroupedOutputs:
    """The outputs of a model, some of which are no arrays."""

    def __init__(self, forms: Sequence[ValueForm]) -> None:
        self._forms = forms
        self.positions = {form.name: number for number, form in enumerate(forms)}

    def values(self, arrays: Sequence[Any]) -> list[Any]:
        """What callers see of all arrays, in order: lists share the memory of these."""
        found, begin = [], 0
        for form in self._forms:
            found.append(_value(form, arrays[begin : begin + form.arrays]))
            begin += form.arrays
        return found


def _value(form: ValueForm, arrays: Sequence[Any]) -> Any:
    if form.optional:
        present, *arrays = arrays
        if not present:
            return None
    match form.kind:
        case "tensor":
            return arrays[0]
        case "absent":
            return None
        case "list":
            return list(arrays)
        case "ragged":
            return _parts(*arrays)
        case "map":
            keys, values = arrays
            return dict(zip(keys.tolist(), values.tolist(), strict=True))


def _parts(values: Array, extents: Array) -> list[Array]:
    """The arrays of a list whose elements lie one array behind the other."""
    rows = extents.tolist()
    if rows and rows[0] and min(rows[0]) >= 0 and rows.count(rows[0]) == len(rows):
        return list(values.reshape(len(rows), *rows[0]))
    parts, begin = [], 0
    for row in rows:
        shape = [extent for extent in row if extent >= 0]
        end = begin + prod(shape)
        parts.append(values[begin:end].reshape(shape))
        begin = end
    return parts
