"""Recurrent operators: ``lstm.py``, ``gru.py`` and ``rnn.py`` have the steps of an operator each, the other files what
these share.

All steps of the sequence meet the input weights in one matrix product; what the operators compute is the recurrence
over that, ``te.scan``, from the start of the sequences. ``sequences.py`` makes the rest of other operators: sequences
that run from the end, or are of unequal lengths.
"""

from ...definition.op_group import OpGroup
from . import gru, lstm, rnn

GROUP = OpGroup.PRODUCTS

__all__ = ["gru", "lstm", "rnn"]
