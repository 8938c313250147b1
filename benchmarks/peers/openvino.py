"""OpenVINO, with inputs and outputs shared."""

from loopwright.runtime.contenders.peers import prepare_openvino as prepare

__all__ = ["prepare"]
