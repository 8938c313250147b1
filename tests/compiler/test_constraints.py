"""What dimensions have to be: how often calls are asked."""

import loopwright as lw
from loopwright.compiler.passes import constraints
from loopwright.ops import nn


def test_calls_that_a_change_leaves_as_they_are_are_not_asked_again(monkeypatch):
    """Each pair of names becomes one dimension, which leaves the other sums as they are."""
    asked = []
    problem_at = constraints._problem_at
    monkeypatch.setattr(constraints, "_problem_at", lambda call, values: asked.append(call) or problem_at(call, values))

    def times(pairs):
        params = [lw.var(f"{name}{k}", (lw.te.var(f"{name}{k}"),)) for k in range(pairs) for name in "ab"]
        sums = [nn.add(a, b) for a, b in zip(params[::2], params[1::2], strict=True)]
        asked.clear()
        settled = constraints.settle_dimensions(lw.Function(params, nn.concatenate(sums, 0)))
        assert all(a.type is b.type for a, b in zip(settled.params[::2], settled.params[1::2], strict=True))
        return len([call for call in asked if call.op.name == "add"])

    assert times(16) <= 2.5 * times(8)
