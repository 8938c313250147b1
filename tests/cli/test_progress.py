"""Progress of subcommands: lines that stay where the output is piped, a bar in a terminal."""

import os
import re
import subprocess
import sys

from terminals import in_terminal

SCHEDULES = """
import loopwright as lw
from loopwright import te

X = te.placeholder((6, 16), name="X")
Y = te.compute((6, 16), lambda i, j: X[i, j] * 2.0, name="Y")
plain, again = lw.create_schedule(Y), lw.create_schedule(Y)
"""
LINE = "making the page of two"


def explore(tmp_path, **streams):
    (tmp_path / "two.py").write_text(SCHEDULES)
    line = [sys.executable, "-m", "loopwright", "explore", "two.py", "--no-times"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    return subprocess.run(line, check=True, cwd=tmp_path, timeout=600, env=environment, **streams)


def test_explore_says_in_lines_how_far_it_is_where_its_output_is_piped(tmp_path):
    piped = explore(tmp_path, capture_output=True, text=True)
    assert piped.stdout == "two.html: plain, again\n"
    lines = piped.stderr.splitlines()
    assert lines[0] == LINE
    assert lines[-1] == f"{LINE}: 2 of 2, again"
    shown = in_terminal(lambda end: explore(tmp_path, stdout=subprocess.PIPE, stderr=end))
    assert shown.splitlines()[-1] == f"{LINE}: 2 of 2, again"
    assert "\x1b" not in shown, "nothing is drawn over"


def test_explore_shows_a_bar_in_a_terminal_that_is_gone_in_the_end(tmp_path):
    shown = in_terminal(lambda end: explore(tmp_path, stdout=end, stderr=end))
    assert LINE in shown
    assert "\x1b[2K" in shown
    assert re.sub(r".*\x1b\[2K|\x1b\[\?25[hl]", "", shown, flags=re.DOTALL).strip() == "two.html: plain, again"
