"""An operator of one's own, in one file outside of loopwright: rotary position embedding (RoPE, Su et al., 2021).

Each pair (x[d], x[d + width / 2]) turns by an angle that grows with the position. Sines and cosines are computed where
they are needed, or once for all heads: two implementations, the better of which a tuning record tells.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

import loopwright as lw
from loopwright import op, te


def relation(types: Sequence[op.Type], attrs: None) -> op.Type:
    x = op.tensor_argument(types[0], "x")
    if x.ndim != 3:
        raise lw.TypeInferenceError(f"x must be [heads, positions, width], found {x}")
    return x


# It has a schedule of its own; elementwise operators may follow in its function.
PATTERN = op.OpPattern.OUT_ELEMENTWISE_FUSABLE
ROPE = op.register_op("rope", "x turned by its position", [("x", "[H, T, W]")], relation, PATTERN)


def compute(attrs: None, inputs: op.Tensors, result: op.Type) -> te.Tensor:
    x, half = inputs[0], int(inputs[0].shape[2]) // 2

    def table(f: Callable[[te.Expr], te.Expr]) -> te.Tensor:
        def element(t: te.Axis, d: te.Axis) -> te.Expr:
            return f(te.cast(t, x.dtype) * te.exp(te.cast(d, x.dtype) * (-math.log(10000) / half)))

        return te.compute((x.shape[1], half), element, name="rope.table")

    cosine, sine = table(te.cos), table(te.sin)

    def turned(h: te.Axis, t: te.Axis, d: te.Axis) -> te.Expr:
        partner = x[h, t, (d + half) % (2 * half)]
        return x[h, t, d] * cosine[t, d % half] + te.select(d < half, -partner, partner) * sine[t, d % half]

    return te.compute(x.shape, turned, name="rope")


def schedule_tables(attrs: None, anchor: op.Tensors, outputs: op.Tensors, target: lw.Target) -> lw.Schedule:
    _, *tables = anchor[0].op.inputs
    schedule, main = op.schedule_around(anchor[0], outputs, tables, target)
    for tensor in (*tables, main):
        op.schedule_stage(schedule[tensor], target)
    return schedule


@op.register_strategy(ROPE)
def strategy(attrs: None, inputs: Sequence[op.Type], result: op.Type, target: lw.Target) -> op.OpStrategy:
    made = op.OpStrategy()
    made.add_implementation(compute, op.schedule_default, "rope.direct", sums="as written")
    # A few heads do not pay for tables. As both sum alike, their number may decide.
    with made.specialized(op.tensor_argument(inputs[0], "x").shape[0] >= 4):
        made.add_implementation(compute, schedule_tables, "rope.tables", plevel=15, sums="as written")
    return made


q = lw.var("q", (8, 64, 32))
call = ROPE(q)
x = np.random.default_rng(0).standard_normal((8, 64, 32), dtype="float32")


def measured(name: str) -> lw.TuningRecord:
    """A record of what an implementation costs: compiled alone, with a record that makes it the choice."""
    wanted = lw.TuningRecords([lw.TuningRecord.of(call, "native", name, [1.0])])
    engine = lw.Engine(lw.compile(lw.Function([q], call), records=wanted))
    return lw.TuningRecord.of(call, "native", name, engine.time_steps([x]))


records = lw.TuningRecords(measured(name) for name in ("rope.direct", "rope.tables"))
scores = lw.nn.softmax(lw.nn.matmul(call, lw.nn.transpose(call, (0, 2, 1))), -1)
library = lw.compile(lw.Function([q], scores), records=records)
print(lw.explain(library))
