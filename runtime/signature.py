"""What a model expects of its callers' arrays: inputs by name or in order, and buffers for outputs, all checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..codegen.model import CompiledModel, TensorSpec
from ..ir.errors import RuntimeArgumentError
from .arrays import Array, address_of, as_array, misaligned
from .dimensions import Shape, check_shape

Values: TypeAlias = Mapping[str, object] | Sequence[object]
"""Arrays by name, or in order."""


class Signature:
    """The inputs and outputs of a model."""

    def __init__(self, model: CompiledModel) -> None:
        self._name = model.name
        self.inputs = model.inputs
        self.outputs = model.outputs
        self._order = [spec.name for spec in model.inputs]
        self._names = set(self._order)
        self._wanted = [(spec.dtype.to_numpy(), spec.shape) for spec in model.inputs]

    def input_arrays(self, values: Values) -> list[Array]:
        """The arrays behind the inputs, in order; nothing is converted or copied.

        Arrays that fit at first sight are let through at once: this is on the path of each call.
        """
        if type(values) is list or type(values) is tuple:
            found: list[Any] = list(values)
        elif isinstance(values, (dict, Mapping)):
            if values.keys() != self._names:
                raise self._wrong_names(values, self.inputs, "inputs")
            found = [values[name] for name in self._order]
        elif _is_list(values):
            found = list(values)
        else:
            raise self._no_list(values)
        wanted = self._wanted
        if len(found) != len(wanted):
            raise RuntimeArgumentError(f"{self._name} takes {len(wanted)} inputs, found {len(found)}")
        for k, value in enumerate(found):
            dtype, shape = wanted[k]
            fits = type(value) is np.ndarray and value.dtype is dtype and value.shape == shape
            if not (fits and (flags := value.flags).c_contiguous and flags.aligned):
                found[k] = _checked(value, self.inputs[k])
        return found

    def input_array(self, number: int, value: object) -> Array:
        """The array behind one input."""
        return _checked(value, self.inputs[number])

    def input_number(self, key: str | int) -> int:
        """The position of an input that is named, or given by its position."""
        names = [spec.name for spec in self.inputs]
        if isinstance(key, str) and key in names:
            return names.index(key)
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
            return key
        raise RuntimeArgumentError(f"{self._name} has no input {key!r}; its inputs are {', '.join(names)}")

    def output_number(self, key: str | int) -> int:
        """The position of an output that is named, or given by its position."""
        names = [spec.name for spec in self.outputs]
        if isinstance(key, str) and key in names:
            return names.index(key)
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
            return key
        raise RuntimeArgumentError(
            f"{self._name} has {len(names)} outputs, {', '.join(names)}; there is no output {key!r}"
        )

    def output_arrays(self, values: Values, shapes: Sequence[Shape], inputs: Sequence[Array]) -> list[Array]:
        """The callers' buffers for outputs of these shapes: apart from each other and from the inputs."""
        if isinstance(values, Mapping):
            if values.keys() != {spec.name for spec in self.outputs}:
                raise self._wrong_names(values, self.outputs, "outputs")
            values = [values[spec.name] for spec in self.outputs]
        elif not _is_list(values):
            raise self._no_list(values)
        elif len(values) != len(self.outputs):
            raise RuntimeArgumentError(f"{self._name} gives {len(self.outputs)} outputs, found {len(values)} buffers")
        arrays = [_buffer(*each) for each in zip(values, self.outputs, shapes, strict=True)]
        self._check_apart(arrays, inputs)
        return arrays

    def _check_apart(self, outputs: Sequence[Array], inputs: Sequence[Array]) -> None:
        named = [(f"input {spec.name}", array) for spec, array in zip(self.inputs, inputs, strict=True)]
        for spec, array in zip(self.outputs, outputs, strict=True):
            low, high = _span(array)
            for where, other in named:
                begin, end = _span(other)
                if low < end and begin < high:
                    raise RuntimeArgumentError(
                        f"the buffer of output {spec.name} shares memory with that of {where}; pass one of its own"
                    )
            named.append((f"output {spec.name}", array))

    def _wrong_names(
        self, values: Mapping[str, object], specs: Sequence[TensorSpec], what: str
    ) -> RuntimeArgumentError:
        names = {spec.name for spec in specs}
        lacking, extra = sorted(names - values.keys()), sorted(map(str, values.keys() - names))
        verb = "takes" if what == "inputs" else "gives"
        return RuntimeArgumentError(
            f"{self._name} {verb} the {what} {', '.join(s.name for s in specs) or 'none'}"
            + (f"; missing: {', '.join(lacking)}" if lacking else "")
            + (f"; unknown: {', '.join(extra)}" if extra else "")
        )

    def _no_list(self, values: object) -> RuntimeArgumentError:
        kind = type(values).__name__
        return RuntimeArgumentError(
            f"{self._name} takes a list of arrays, or a mapping from names to arrays, not a {kind}"
        )


def _is_list(value: object) -> bool:
    """An array has a length as well, but its rows are no inputs."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _checked(value: object, spec: TensorSpec) -> Array:
    where = f"input {spec.name}"
    array = as_array(value, where)
    _check_dtype(array, spec, where)
    check_shape(spec, array.shape)
    if not array.flags.c_contiguous:
        raise RuntimeArgumentError(f"{where} is not contiguous; numpy.ascontiguousarray makes a copy that is")
    if not array.flags.aligned:
        raise RuntimeArgumentError(f"{where} is {misaligned(array)}; numpy.array makes a copy that is aligned")
    return array


def _buffer(value: object, spec: TensorSpec, shape: Shape) -> Array:
    where = f"the buffer of output {spec.name}"
    array = as_array(value, where)
    _check_dtype(array, spec, where, f"make it by numpy.empty({shape}, {spec.dtype.to_numpy().name!r})")
    if array.shape != shape:
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
