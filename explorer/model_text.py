"""The predictions for the innermost loops as the text of a pane: each line comes from the loop that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .llvm_mca import McaOpinion, Silence
from .loop_prediction import LoopPrediction

NONE = "# no innermost loop is left in the machine code"


def model_lines(found: Sequence[LoopPrediction]) -> Iterator[tuple[str, int]]:
    """The lines of the text, each with the origin of its loop."""
    for number, prediction in enumerate(found):
        if number:
            yield "", 0
        yield from ((line, prediction.origin) for line in _lines(prediction))
    if not found:
        yield NONE, 0


def _lines(prediction: LoopPrediction) -> Iterator[str]:
    yield f"loop {prediction.name}: {prediction.bottleneck}, {prediction.cycles:.1f} cycles an iteration"
    for bound in prediction.bounds:
        yield f"  {bound.cycles:6.1f}  {bound.of:<9}  {bound.why}"
    if prediction.beyond:
        yield f"  (left out: {'; '.join(prediction.beyond)})"
    yield from _mca_lines(prediction.mca)


def _mca_lines(mca: McaOpinion | Silence) -> Iterator[str]:
    if isinstance(mca, Silence):
        yield f"  ({mca.why})"
        return
    waits = ", ".join(f"{what} in {share:.0%} of cycles" for what, share in mca.waits)
    yield f"{mca.cycles:.1f} cycles by {mca.tool} for {mca.cpu}"
    if waits:
        yield f"  waits for {waits}"
    for unit, cycles in mca.units:
        yield f"  {cycles:6.1f}  {unit}"
