"""Files that commands write: whether they can stand is asked before a long compilation rather than after it."""

from __future__ import annotations

from pathlib import Path

from .. import RuntimeArgumentError


def check_output_file(path: Path | None, what: str = "") -> None:
    """Raise ``RuntimeArgumentError`` where a file cannot stand: at a folder, or in one that is missing.

    ``what`` is to be written, as "the page"; None is no file.
    """
    if path is None:
        return
    target = f"{what} cannot be written to {path}" if what else f"{path} cannot be written"
    if path.is_dir():
        raise RuntimeArgumentError(f"{target}: it is a folder")
    if not path.parent.is_dir():
        raise RuntimeArgumentError(f"{target}: there is no folder {path.parent}")


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises ``RuntimeArgumentError`` where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RuntimeArgumentError(f"{path} cannot be written: {error.strerror}") from error
