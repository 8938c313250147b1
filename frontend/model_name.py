"""What an imported model is called: errors, engines and exports go by it."""

from __future__ import annotations

from pathlib import Path

MAX_LENGTH = 80
COMMON_NAMES = {"main", "main_graph", "torch_jit", "torch-jit-export", "graph", "model"}
"""What exporters call every graph: PyTorch the first ones."""


def model_name(graph_name: str, path: Path | None) -> str:
    """The name of the graph; that of the file, if the model is from one and the graph has a name that says nothing.

    >>> model_name("digits", None), model_name("main_graph", Path("nets/resnet50.onnx")), model_name("", None)
    ('digits', 'resnet50', 'model')
    """
    own = _one_line(graph_name)
    if own in COMMON_NAMES or not own:
        return (_one_line(path.stem) if path is not None else "") or own or "model"
    return own


def _one_line(name: str) -> str:
    """The name as it can stand in a message: a model's may be any text."""
    plain = "".join(c if c.isprintable() else " " for c in name).strip()
    return plain if len(plain) <= MAX_LENGTH else f"{plain[: MAX_LENGTH - 1]}…"
