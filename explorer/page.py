"""Writes a document as a page: one HTML file that has everything in it, and loads nothing from any network.

Names and texts come from models and users: they reach the page as packed JSON only, whose letters and digits cannot end
the script around them, and ``assets/`` sets them as text, never as markup. The page's policy lets no other script run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from ..base.errors import RuntimeArgumentError
from .document import Document

_SCRIPTS = (
    "links.js",
    "colours.js",
    "highlight.js",
    "row_layout.js",
    "text_view.js",
    "roofline.js",
    "overview.js",
    "column.js",
    "address.js",
    "remembered.js",
    "search.js",
    "explorer.js",
    "start.js",
)


def page(document: Document) -> str:
    """The HTML text of a document's page."""
    return filled_page("explorer.html", ("explorer.css",), _SCRIPTS, document.title, document.to_json())


def filled_page(template: str, styles: Sequence[str], scripts: Sequence[str], title: str, value: object) -> str:
    """The HTML text of a page whose scripts are given a value, as JSON; template, styles and scripts are assets."""
    style = "\n".join(map(_asset, styles))
    script = "\n".join(['"use strict";', *map(_asset, scripts)])
    return Template(_asset(template)).substitute(
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}",
        title=escape(title.encode("utf-8", "replace").decode()),
        style=style,
        document=packed_json(value),
        script=script,
    )


def write_page(document: Document, path: str | os.PathLike[str]) -> Path:
    """Write a document as a page. Raises ``RuntimeArgumentError`` where the file cannot be written."""
    return write_text(page(document), path)


def write_text(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page's text. Raises ``RuntimeArgumentError`` where the file cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RuntimeArgumentError(f"the page cannot be written to {path}: {error.strerror}") from error
    return Path(path)


def packed_json(value: object) -> str:
    """JSON, compressed as zlib does, in base64: assembly and LLVM IR become a tenth as large. ``start.js`` unpacks it.

    Raises ``ValueError`` for NaN and infinities, which JSON does not have.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """How a policy names a script or style of the page itself."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
