"""What ``lw.explore`` gives: a page that notebooks show where it is made, and that can be written to a file."""

from __future__ import annotations

import os
from pathlib import Path

from ..base.brief import listed, one_line
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..base.html.markup import element
from ..base.html.view import styled
from .document import Document
from .page import page, write_page

_HEIGHT = 720
"""Pixels that a page takes in a notebook; its lower edge can be dragged."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExplorerPage(os.PathLike[str]):
    """A page of the explorer. As the value of a notebook's cell it shows there; ``save`` writes it to a file.

    ``document`` is what it shows, as data. ``path`` is the file that it was written to, None if there is none; with one
    the page itself may stand where a path is asked for.
    """

    document: Document
    path: Path | None = None

    @property
    def html(self) -> str:
        """The text of the file: one page that asks nothing of any network."""
        return page(self.document)

    def save(self, path: str | os.PathLike[str]) -> ExplorerPage:
        """Write the page; gives it with its path. Raises ``RuntimeArgumentError`` where the file cannot be written."""
        return ExplorerPage(self.document, write_page(self.document, path))

    def __fspath__(self) -> str:
        if self.path is None:
            raise RuntimeArgumentError(
                "this page is in no file yet: write it by page.save(path), or lw.explore(…, path)"
            )
        return str(self.path)

    def __str__(self) -> str:
        return repr(self) if self.path is None else str(self.path)

    def __repr__(self) -> str:
        where = "in no file" if self.path is None else f"in {self.path}"
        return one_line(f"<ExplorerPage of {listed(entry.name for entry in self.document.schedules)}, {where}>")

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose script can reach nothing outside of it."""
        # Within a frame, addresses are relative to the notebook's; the page's own begins with its fragment.
        inside = self.html.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
        style = f"width: 100%; height: {_HEIGHT}px; border: 1px solid var(--lw-line); resize: vertical;"
        title = f"Explorer: {self.document.title}"
        frame = element("iframe", srcdoc=inside, title=title, sandbox="allow-scripts", style=style)
        return styled(frame)
