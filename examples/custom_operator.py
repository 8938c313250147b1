"""An operator of one's own, in one file outside of loopwright: rotary position embedding (RoPE, Su et al., 2021).

Each pair (x[d], x[d + width / 2]) turns by an angle that grows with the position. Sines and cosines are computed where
they are needed, or once for all heads: two implementations, the better of which a tuning record tells.
"""

import math

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.lowering.default_schedule import schedule_stage
from loopwright.ops.registry import OpPattern, register_op
from loopwright.ops.strategy import OpStrategy, register_strategy, schedule_default
from loopwright.ops.tiling import schedule_around


def relation(types, attrs):
    if types[0].ndim != 3:
        raise lw.TypeInferenceError(f"x must be [heads, positions, width], found {types[0]}")
    return types[0]


PATTERN = OpPattern.OUT_ELEMENTWISE_FUSABLE  # a schedule of its own; elementwise operators may follow in its function
ROPE = register_op("rope", "x turned by its position", [("x", "[H, T, W]")], relation, PATTERN)


def compute(attrs, inputs, result):
    x, half = inputs[0], int(result.shape[2]) // 2

    def table(f):
        def element(t, d):
            return f(te.cast(t, x.dtype) * te.exp(te.cast(d, x.dtype) * (-math.log(10000) / half)))

        return te.compute((x.shape[1], half), element, name="rope.table")

    cosine, sine = table(te.cos), table(te.sin)

    def turned(h, t, d):
        partner = x[h, t, (d + half) % (2 * half)]
        return x[h, t, d] * cosine[t, d % half] + te.select(d < half, -partner, partner) * sine[t, d % half]

    return te.compute(x.shape, turned, name="rope")


def schedule_tables(attrs, anchor, outputs, target):
    _, *tables = anchor[0].op.inputs
    schedule, main = schedule_around(anchor[0], outputs, tables, target)
    for tensor in (*tables, main):
        schedule_stage(schedule[tensor], target)
    return schedule


@register_strategy(ROPE)
def strategy(attrs, inputs, result, target):
    made = OpStrategy()
    made.add_implementation(compute, schedule_default, "rope.direct", sums="as written")
    with made.specialized(result.shape[0] >= 4):  # fewer do not pay for tables; as both sum alike, heads may decide
        made.add_implementation(compute, schedule_tables, "rope.tables", plevel=15, sums="as written")
    return made


q = lw.var("q", (8, 64, 32))
call = ROPE(q)
x = np.random.default_rng(0).standard_normal((8, 64, 32), dtype="float32")


def measured(name):
    """A record of what an implementation costs: compiled alone, with a record that makes it the choice."""
    wanted = lw.TuningRecords([lw.TuningRecord.of(call, "native", name, [1.0])])
    engine = lw.Engine(lw.compile(lw.Function([q], call), records=wanted))
    return lw.TuningRecord.of(call, "native", name, engine.time_steps([x]))


records = lw.TuningRecords(measured(name) for name in ("rope.direct", "rope.tables"))
scores = lw.nn.softmax(lw.nn.matmul(call, lw.nn.transpose(call, (0, 2, 1))), -1)
library = lw.compile(lw.Function([q], scores), records=records)
print(lw.explain(library))
