"""Makes graphs of model files: of ONNX, in all its operator versions."""

from .importer import from_onnx

__all__ = ["from_onnx"]
