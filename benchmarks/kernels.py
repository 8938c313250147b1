"""Kernels of ours beside those of every installed peer, on the same data: ``python benchmarks/kernels.py``.

``--only conv-resnet50 "matmul 512*"`` chooses cases, ``--list`` names them. A case with one number of threads takes
about 3 seconds, the largest 40, all of them with 1 and 2 threads about an hour. ``--json FILE`` collects the results of
several runs, of which ``--resume`` leaves out what is there and ``--minutes`` ends one in time. ``--compile`` only
fills our cache.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cases import Case, chosen_cases
from comparison import NAMES, compare, contender_command, option_parser
from results import OURS

from loopwright.runtime.contenders.rounds import Contender, Refused, ended


def compile_only(cases: Sequence[Case]) -> None:
    """Ours alone, unmeasured, so that a run after it finds all kernels in the cache."""
    contender = Contender(contender_command(OURS, 1))
    with ended([contender]), tempfile.TemporaryDirectory() as folder:
        for case in cases:
            case.write(Path(folder))
            start = time.perf_counter()
            try:
                contender.load(folder)
                print(f"{case.full_name}: {time.perf_counter() - start:.2f} s", flush=True)
            except Refused as reason:
                print(f"{case.full_name}: {reason}", flush=True)


def main() -> None:
    parser = option_parser(__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="fill our cache, and end")
    options = parser.parse_args()
    cases = chosen_cases(options.only)
    if not cases:
        raise SystemExit(f"no case is called like {' or '.join(options.only)}; --list names them")
    if options.list:
        print(*(case.full_name for case in cases), sep="\n")
    elif options.compile:
        compile_only(cases)
    else:
        compare(options, cases, NAMES[1:], "kernels")


if __name__ == "__main__":
    main()
