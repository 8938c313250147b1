"""The one model of a core that costs and tiles go by, where a target does not tell: its units and its caches.

The figures hold for the cores at hand about, from Haswell to Zen 5; ``Target`` has what differs between them, as its
vectors, registers, caches, and fmas a cycle. Costs are compared with each other, so ratios matter, not absolute times.
"""

from __future__ import annotations

from ..base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SustainedShares:
    """The shares of the multiplications that a core can do, which loops of one form do, about, as measured on layers of
    usual networks with AVX2 and AVX-512."""

    definition: float = 0.15
    """A convolution by its definition with the default schedule."""
    depthwise_definition: float = 0.03
    """The same, where each channel is a group."""
    flat: float = 0.55
    """A convolution of plain layouts with all positions as one row."""
    strided: float = 0.4
    """The same, of a copy in phases of the stride."""
    strided_alone: float = 0.15
    """The same, where each filter has a channel of its own, so that what is loaded is multiplied once."""
    depthwise: float = 0.9
    """A depthwise convolution of channels in blocks."""
    open_pointwise: float = 0.8
    """A convolution of channels in blocks by windows of one element, whose image, of open extents, is one row."""
    open_rows: float = 0.5
    """A convolution of plain layouts whose rows need not be whole tiles."""
    attention: float = 0.7
    """Both products of attention, in the time that all of it takes."""


@dataclass(frozen=True, slots=True)
class CopyTimes:
    """How long it takes to read a factor or to copy it, as measured, in times through the memory of what it comes
    from."""

    scattered: float = 0.5
    """What it takes longer to read it a few neighbours at a time, row by row."""
    panels: float = 4.0
    """To copy it to panels: it is written where it was not in cache, and read again."""
    turned: float = 2.5
    """The same in square tiles that are turned in registers: 1 in the second cache, 3 in the third."""
    factors: float = 8.0
    """To make factors of it, as halves widened, in panels."""
    words: float = 16.0
    """To make words of its bytes, in panels."""


@dataclass(frozen=True, slots=True)
class TileTimes:
    """Cycles of registers that hold small matrices, as measured on a core of Intel with AMX."""

    row: float = 1.3
    """To multiply by a row of the left tile, loads beside it included: 1 by the instruction alone."""
    loaded: float = 8.0
    """To load a tile from the first cache, if products do not take longer."""
    stored: float = 40.0
    """To set a tile to zeros and to store it."""
    begun: float = 1500.0
    """To configure tiles in a call, to give them back, and until the unit that multiplies them is awake."""


@dataclass(frozen=True, slots=True)
class Core:
    """What a core does. Rates are per cycle; cycles are of one vector, or of one cache line, unless another unit is
    named. Where no source is named, a figure was measured with kernels of our own."""

    full_rate: int = 2
    """How many vectors cores multiply and add at most. Tiles are chosen for these, also where a core does fewer
    (``Target.fma_per_cycle``): what does not keep back the fast ones does not keep back others."""
    loads: int = 2
    """Loads of vectors, which broadcasts are (Fog, *The microarchitecture of Intel, AMD and VIA CPUs*)."""
    sustained_loads: float = 1.7
    """Of these, what a register tile of Winograd's sums gets: its loads do not always find both ports."""
    sum_cycles: float = 4.0
    """How long a sum waits for the last one that was added to it: the latency of an fma (Fog, *Instruction tables*)."""
    second_cache_cycles: float = 1.5
    """To get a vector from the second cache."""
    third_cache_cycles: float = 4.0
    """To get one from the third, if the core has others to wait for beside it."""
    shared_cycles: float = 2.0
    """To get a line in order from a cache beyond the second one. With 2, autoschedule ranks softmax and normalisation
    of 2 MB, which stay there, as a Zen 5 measured them; with more it took rereading for dearer than it is. Of 451
    schedules that a Zen 4 measured, this and the next rank most pairs rightly."""
    memory_cycles: float = 10.0
    """To get a line in order from memory."""
    jump_cycles: float = 4.0
    """To get the first line of a run, which nothing has fetched ahead."""
    forwarded_cycles: float = 5.0
    """Until a load sees what was stored just before."""
    issued: float = 5.0
    """Instructions that a core takes, on average."""
    renamed: int = 6
    """Instructions that Zen 3, Golden Cove and later cores rename; older ones of Intel 4."""
    stores: int = 1
    """Stores of vectors, which all cores at hand do at least."""
    loop_cycles: float = 1.0
    """To count an iteration and to branch."""
    entry_cycles: float = 5.0
    """To begin a loop and to leave it, which is guessed wrongly now and then."""
    moved_sums: float = 1.5
    """So many times as long a loop takes if the sums that it adds to and the values that it holds beside them are too
    many for the registers: LLVM moves sums between registers, and to the stack and back, in each iteration. An Intel
    core with AVX-512 measured 1.3 to 1.6 by 32 registers, of AVX2 1.2 to 2.7 by 16."""
    copied_bytes: float = 8
    """What a copy moves, reading and writing counted apart; between what the second and the third cache give."""
    near_bytes: float = 10
    """What comes from the second cache to a register tile, beside its multiplications."""
    summed_bytes: float = 8
    """What sums of a few terms, which are in the second cache, read and write."""
    ahead_bytes: float = 16
    """What of the way of factors that come ahead of their use multiplications do not hide."""
    streamed_bytes: float = 6
    """What comes of weights in the long run: those of a whole model come from memory."""
    steps_unrolled: int = 2
    """Steps of a sum between two tests whether it ends."""
    near_steps: int = 8
    """Steps of a sum in a register tile that a line takes from the second cache, and some more."""
    far_steps: int = 16
    """The same, of the third cache."""
    ahead_distance: int = 8192
    """Bytes ahead of their use that weights are fetched which are used just once or twice."""
    shares: SustainedShares = SustainedShares()
    copies: CopyTimes = CopyTimes()
    tiles: TileTimes = TileTimes()


CORE = Core()
