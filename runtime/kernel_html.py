"""The view of a kernel in a notebook: its signature, its loop nest, what became of each loop, and its assembly."""

from __future__ import annotations

from ..base.errors import LoopwrightError
from ..base.html.code import code
from ..base.html.markup import Markup, fold
from ..base.html.table import facts
from ..base.html.view import view
from ..codegen.report.report_html import report_parts
from .kernel import Kernel


def kernel_html(kernel: Kernel) -> str:
    """All of that; of a kernel that was not built from a schedule, nothing of its loops."""
    return view(
        f"Kernel {kernel.signature}",
        facts({"target": kernel.target.cpu}),
        *_loops(kernel),
        fold("lowered loop nest", code(kernel.loop_ir, "loops", "print(kernel.loop_ir)")),
        fold("assembly", code(kernel.assembly, "assembly", "print(kernel.assembly)")),
    )


def _loops(kernel: Kernel) -> tuple[Markup, ...]:
    try:
        return tuple(report_parts(kernel.vector_report()))
    except LoopwrightError:
        return ()
