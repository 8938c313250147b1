"""Terminals that tests run commands in."""

import contextlib
import os
import pty
import threading


def in_terminal(run):
    """What comes out of a terminal, one of whose ends ``run`` is given. It is read meanwhile: a terminal holds few
    characters, and one that nobody reads stops whoever writes, forever where a busy machine has it write often."""
    terminal, end = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(terminal, shown), daemon=True)
    reader.start()
    try:
        run(end)
    finally:
        os.close(end)
        reader.join()
        os.close(terminal)
    return b"".join(shown).decode(errors="replace")


def _read_all(terminal, shown):
    with contextlib.suppress(OSError):  # all has been read, and nobody writes any more
        while part := os.read(terminal, 1 << 12):
            shown.append(part)
