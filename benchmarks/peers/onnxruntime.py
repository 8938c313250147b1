"""onnxruntime, with inputs and outputs bound once."""

from loopwright.runtime.contenders.peers import prepare_onnxruntime as prepare

__all__ = ["prepare"]
