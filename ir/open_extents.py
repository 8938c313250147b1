"""What is assumed of extents that stay open, where a choice goes by them: each number once, named for what it is of.

Nothing that is computed depends on these numbers, nor does which schedules are legal: only how fast code is for extents
far from them. Where tasks are counted, an open extent makes enough of them (``MANY_TASKS`` of ``schedules/blocks.py``,
``TASKS`` of ``schedules/streamed_reduction.py``); where it would only scale what is compared, it counts as 1.
"""

from __future__ import annotations

LONG = 1 << 10
"""Of a loop: long, so that tiles are full, clamps seldom hold and a call of a library is worth cutting in parts."""
MANY_ROWS = 64
"""Of the rows of a product's left factor, and of a row of an image, which is what a tile goes along there: enough to
make tiles full, but few beside the columns of a layer, so that these are what chunks and copies go by."""
CHANNELS = 256
"""Of the channels of a convolution: those of a layer in the middle of a network."""
SEQUENCE = 256
"""Of queries and keys: words of a text."""
IN_COSTS = 16
"""Of any axis in a cost: mostly it counts samples or words, and all ways to make a call have the same."""
IN_MEMORY = 8
"""Of an axis of what may fit a cache, or not: few, so that what counts as large is so by the axes that are known."""
