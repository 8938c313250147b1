"""What the tables of docs/architecture.md say of implementations: how many steps their schedules have."""

import re
from functools import cache
from itertools import takewhile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


def steps_of(name: str) -> tuple[int, int]:
    """The least and the greatest number of steps that the page gives for an implementation. Raises ``LookupError``
    where no row names it: by its own name, by that of a product of which this is one of many (`batch_`, `dense`), or
    by its end, where a row is of `sum.rows` and its like."""
    rows, ends = _rows()
    product = re.sub(r"^(batch_|dense\.)", lambda found: "matmul." if found[0] == "dense." else "", name)
    for known, key in ((rows, name), (rows, product), (ends, name.rpartition(".")[2])):
        if key in known:
            return known[key]
    raise LookupError(f"no table of {PAGE.name} has a row for {name}")


@cache
def _rows() -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """The steps by whole names, and by ends of names."""
    rows, ends = {}, {}
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if not line.startswith("| implementation |"):
            continue
        column = _cells(line).index("steps")
        next(lines)
        for row in takewhile(lambda text: text.startswith("|"), lines):
            cells = _cells(row)
            counts = [int(count) for count in cells[column].split("–")]
            names = re.findall(r"`([^`]+)`( and its like)?", cells[0])
            for name, more in names:
                rows[name] = counts[0], counts[-1]
                if more:
                    ends[name.rpartition(".")[2]] = counts[0], counts[-1]
    return rows, ends


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split(" | ")]
