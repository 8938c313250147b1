"""Reading a model: from a file, bytes or a ModelProto to one that has a graph. The first step of the import."""

from __future__ import annotations

import os
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import ModelProto

from ..base.errors import ModelError
from .stored_weights import parse_without_weights


def load_model(
    model: ModelProto | bytes | str | os.PathLike[str], mapped: bool = False
) -> tuple[ModelProto, Path | None]:
    """The model, and the folder where its external data is: None, unless the model came from a file.

    ``mapped`` leaves large weights in that file, as if they were external data.
    """
    if isinstance(model, ModelProto):
        return _with_graph(model, "the given ModelProto"), None
    if isinstance(model, bytes):
        return _parse(model, "the given bytes"), None
    if not isinstance(model, (str, os.PathLike)):
        raise ModelError(f"a model is a path, bytes or an onnx.ModelProto, found a {type(model).__name__}")
    path = Path(model)
    small = parse_without_weights(path) if mapped else None
    found = _parse(_read(path), str(path)) if small is None else _with_graph(small, str(path))
    return found, path.resolve().parent


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"the model file {path} cannot be read: {error.strerror}") from None


def _parse(data: bytes, what: str) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise ModelError(f"{what}: this is no ONNX model, or one that is truncated or damaged") from None
    del data  # as large as the model, which has all of it now
    return _with_graph(model, what)


def _with_graph(model: ModelProto, what: str) -> ModelProto:
    """Other formats may parse by accident, as may a truncated model: then something essential is missing."""
    missing = None
    if model.ir_version < 1:
        missing = "an IR version"
    elif not model.HasField("graph"):
        missing = "a graph"
    elif not model.graph.output:
        missing = "any outputs"
    elif not model.opset_import and model.ir_version >= 3:
        missing = "an operator set version"
    if missing is not None:
        raise ModelError(f"{what}: this is no ONNX model, or one that is truncated: it is without {missing}")
    if not _is_text(model):
        raise ModelError(f"{what}: this is no ONNX model, or one that is damaged: it has names that are no text")
    return model


def _is_text(message: Message) -> bool:
    """Whether all strings are. Damaged ones come out of protobuf as bytes."""
    stack = [message]
    while stack:
        for field, value in stack.pop().ListFields():
            values = [value] if isinstance(value, (Message, str, bytes)) else value
            if field.type == FieldDescriptor.TYPE_STRING and not all(isinstance(v, str) for v in values):
                return False
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                stack.extend(values)
    return True
