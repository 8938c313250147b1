"""The interface of ``onnx.backend``: ``prepare``, ``run_model``, ``run_node`` and ``supports_device``.

A model is compiled for the shapes of the inputs it meets, once for each set of shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import loopwright as lw
from loopwright.base.quantities import count_text

Array = npt.NDArray[Any]
OPTIONS = inspect.signature(lw.compile).parameters.keys() - {"model", "shapes"}
"""Of ``lw.compile``. Other keywords are those of other backends, and ignored, as the interface has it."""


class LoopwrightRep(BackendRep):
    """A prepared model: ``run`` takes the inputs in order, or by name. ``options`` are those of ``lw.compile``."""

    def __init__(self, model: ModelProto, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._model = model
        self._options = options
        constants = {initializer.name for initializer in model.graph.initializer}
        self._inputs = [i.name for i in model.graph.input if i.name not in constants]
        self._outputs = [output.name for output in model.graph.output]
        self._engines: dict[tuple[Any, ...], lw.Engine] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, as a named tuple of arrays. Raises ``RuntimeArgumentError`` for inputs that do not fit."""
        values = [_contiguous(value) for value in self._ordered(inputs)]
        shapes = tuple(map(_shapes_of, values))
        if shapes not in self._engines:
            given = dict(zip(self._inputs, shapes, strict=True))
            self._engines[shapes] = lw.Engine(lw.compile(self._model, shapes=given, **self._options))
        outputs = self._engines[shapes](values)
        return namedtupledict("Outputs", self._outputs)(*outputs)

    def _ordered(self, inputs: Any) -> Sequence[Any]:
        name, order = self._model.graph.name or "the model", self._inputs
        if isinstance(inputs, Mapping):
            if inputs.keys() != set(order):
                found = ", ".join(map(str, inputs)) or "none"
                raise lw.RuntimeArgumentError(f"{name} takes the inputs {', '.join(order) or 'none'}, found {found}")
            return [inputs[name] for name in order]
        values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if len(values) != len(order):
            raise lw.RuntimeArgumentError(f"{name} takes {count_text(len(order), 'input')}, found {len(values)}")
        return values


def _check(model: ModelProto) -> None:
    """Raise ``ModelError`` for a model that is not supported, as far as that is known before its first run: the length
    of sequences, and whether there is an optional, are known only then."""
    try:
        lw.from_onnx(model, explain=False)
    except lw.ModelError:
        if all(i.type.HasField("tensor_type") for i in model.graph.input):
            raise


def _contiguous(value: Any) -> Any:
    """An input as arrays that engines take: a sequence is a list of them, an empty optional None."""
    if isinstance(value, list):
        return [np.asarray(each, order="C") for each in value]
    return None if value is None else np.asarray(value, order="C")


def _shapes_of(value: Any) -> Any:
    """What ``lw.compile`` is told of an input."""
    if isinstance(value, list):
        return tuple(each.shape for each in value)
    return None if value is None else value.shape


class LoopwrightBackend(Backend):
    """loopwright as a backend of onnx."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all operators of the model are supported."""
        try:
            _check(model)
        except lw.ModelError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> LoopwrightRep:
        """Make a model ready to run. ``kwargs`` may be options of ``lw.compile``: ``precision``, ``arithmetic`` and
        others, but for ``shapes``. Raises ``ModelError`` if the model is damaged or not supported.
        """
        if not cls.supports_device(device):
            raise lw.TargetError(f"there is no device {device!r}: loopwright compiles for the CPU")
        _check(model)
        return LoopwrightRep(model, {name: value for name, value in kwargs.items() if name in OPTIONS})

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run a single node on arrays, or lists of them, in the newest opset unless ``opset_version`` says otherwise.

        An input that the node needs to know beforehand, such as axes, is compiled in.
        """
        names = [name for name in node.input if name]
        if len(inputs) != len(names):
            raise lw.RuntimeArgumentError(f"the node takes {count_text(len(names), 'input')}, found {len(inputs)}")
        fed = {name: _contiguous(value) for name, value in zip(names, inputs, strict=True)}
        if absent := [name for name, value in fed.items() if value is None]:
            raise lw.RuntimeArgumentError(f"the input {absent[0]} is None: leave its name out of the node")
        opset = kwargs.get("opset_version")
        try:
            return cls.prepare(_model_of(node, fed, {}, opset), device, **kwargs).run(fed)
        except lw.ModelError:
            known = {name: value for name, value in fed.items() if not isinstance(value, list) and value.ndim <= 1}
            others = {name: value for name, value in fed.items() if name not in known}
            return cls.prepare(_model_of(node, others, known, opset), device, **kwargs).run(others)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device: on ``CPU`` only."""
        return device.split(":", 1)[0] == "CPU"


def _model_of(
    node: NodeProto, fed: Mapping[str, Any], known: Mapping[str, Array], opset_version: int | None
) -> ModelProto:
    """A model of one node; ``known`` inputs become initializers."""
    inputs = [_info(name, value) for name, value in fed.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output if name]
    stored = [numpy_helper.from_array(array, name) for name, array in known.items()]
    opsets = None if opset_version is None else [helper.make_opsetid(node.domain, opset_version)]
    return helper.make_model(helper.make_graph([node], "node", inputs, outputs, stored), opset_imports=opsets)


def _info(name: str, value: Any) -> ValueInfoProto:
    """What is declared of an input: an array, or a list of them."""
    if isinstance(value, list):
        kind = helper.np_dtype_to_tensor_dtype(value[0].dtype) if value else TensorProto.FLOAT
        return helper.make_tensor_sequence_value_info(name, kind, None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


is_compatible = LoopwrightBackend.is_compatible
prepare = LoopwrightBackend.prepare
run_model = LoopwrightBackend.run_model
run_node = LoopwrightBackend.run_node
supports_device = LoopwrightBackend.supports_device
