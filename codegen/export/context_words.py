"""What the context of an exported model holds behind its first 64 bytes, in 8-byte words.

the table of memory that the entry shares (``artifact/memory_table.py``),   of models of several stages:
(address, bytes) of what is kept for each output whose size only a run knows,
the address of each of these as the last run has left it, null if there is none; their extents
(address, bytes, address, bytes, set, extents) of each state: its memory, and that of the next one, which takes
turns with it where the state is not written in place; whether it has a value yet
of a model with segments: how many there are, and their table (``artifact/segment_table.py``)
"""

from __future__ import annotations

from ...artifact.block import BornOutput
from ...artifact.memory_table import output_word, table_words
from ...artifact.model import CompiledModel
from ...artifact.segment_table import table_words as segment_words
from ...base.dataclass import dataclass

HEAD = 64
"""The bytes of a context before the words; ``runtime/exports/export_context.ll`` says what is there."""
NEXT, IS_SET, EXTENTS = 2, 4, 5
"""Words of a state, behind the first."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextWords:
    """Where the parts begin."""

    model: CompiledModel

    @property
    def late(self) -> list[BornOutput]:
        """The outputs whose size only a run knows, in the order of the table."""
        return [output for stage in self.model.body.stages for output in stage.outputs]

    @property
    def _table(self) -> int:
        return table_words(len(self.model.body.stages), len(self.late)) if self.model.is_staged else 0

    def output(self, number: int) -> int:
        """Address, bytes and mode in the table."""
        return output_word(len(self.model.body.stages), number)

    def kept(self, number: int) -> int:
        """The address and bytes of what is kept."""
        return self._table + 2 * number

    def result(self, number: int) -> int:
        """Where the output is that the last run has left."""
        return self._table + 2 * len(self.late) + number

    def shape(self, number: int) -> int:
        """The first of its extents."""
        ranks = [len(self.model.outputs[output.number].shape) for output in self.late[:number]]
        return self._table + 3 * len(self.late) + sum(ranks)

    def state(self, number: int) -> int:
        """The first word of a state."""
        ranks = [len(self.model.inputs[state.input].shape) for state in self.model.states[:number]]
        return self.shape(len(self.late)) + sum(EXTENTS + rank for rank in ranks)

    @property
    def segment_count(self) -> int:
        """The number of segments, before their table."""
        return self.state(len(self.model.states))

    @property
    def context_bytes(self) -> int:
        """The bytes of a context, in whole cache lines."""
        segments = 1 + segment_words(self.model.segments) if self.model.segments else 0
        return -(-(HEAD + 8 * (self.segment_count + segments)) // 64) * 64
