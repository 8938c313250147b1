"""The example notebooks run from top to bottom, and what they show has views."""

import warnings

import needed_tools
import pytest
from documented_programs import NOTEBOOKS
from html_reader import Reader

TIMEOUT_S = 300
BAR_FROM_THE_START = "from loopwright.compiler.model import progress\n\nprogress.UNSEEN_SECONDS = 0.0"
WAIT_FOR_THE_BAR = """
with progress.progress_shown("waiting", None) as advance:
    advance(1, 2, "half")
    advance.__self__._timer.join()
"""


def executed(notebook, folder):
    """A notebook after it has run."""
    client = needed_tools.module("nbclient")
    needed_tools.module("ipykernel")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's connection, which does not leave this machine
        client.NotebookClient(
            notebook, timeout=TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
    return notebook


def read(path):
    return needed_tools.module("nbformat").read(path, as_version=4)


def pages_of(cell):
    """The HTML that a cell has left below it."""
    return [output["data"]["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path):
    cells = executed(read(path), tmp_path).cells
    pages = [page for cell in cells if cell.cell_type == "code" for page in pages_of(cell)]
    assert len(pages) > 3
    for page in pages:
        assert Reader(page).names[:2] == ["div", "style"]
    assert not [o for cell in cells if cell.cell_type == "code" for o in cell.outputs if o.output_type == "stream"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path):
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_the_progress_of_a_cell_is_one_line_below_it_in_the_end(tmp_path):
    cell = needed_tools.module("nbformat.v4").new_code_cell
    notebook = needed_tools.module("nbformat.v4").new_notebook(cells=[cell(BAR_FROM_THE_START), cell(WAIT_FOR_THE_BAR)])
    first, second = executed(notebook, tmp_path).cells
    assert pages_of(first) == []
    (page,) = pages_of(second)
    assert Reader(page).text.startswith("waiting: 1 of 2, ")
    assert "progress" not in Reader(page).names
