"""ONNX's ZipMap: scores of classes as maps, which Python sees."""

from __future__ import annotations

from ...base.errors import ModelError
from ...base.output_form import OutputForm
from ...graph.node import Node
from ..class_scores import float_matrix
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"


@converter("ZipMap", 1, domain=DOMAIN)
def _zip_map(node: OnnxNode) -> Node:
    names, numbers = node.strings("classlabels_strings"), node.ints("classlabels_int64s") or ()
    scores = float_matrix(node)
    columns = node.numbers(node.type().shape[-1:])[0]
    if len(names or numbers) != columns:
        raise ModelError(f"{node}: there are {len(names or numbers)} class labels for {columns} columns")
    return node.forms.put(scores, OutputForm("maps", names, numbers))
