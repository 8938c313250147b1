"""The tables of docs/architecture.md name all implementations, and tell how many steps their schedules have."""

import numpy as np
import pytest
from implementation_tables import steps_of
from test_every_operator import CASES, candidates, targets_of

import loopwright as lw


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_page_tells_how_many_steps_a_schedule_has(name):
    for make, _, *arrays in CASES[name]:
        call = make(*(lw.var(f"x{k}", np.shape(a), np.asarray(a).dtype.name) for k, a in enumerate(arrays)))
        for target in targets_of(name).values():
            for made in (implementation for implementation, serves in candidates(call, target) if serves):
                least, most = steps_of(made.name)
                found = len(made.schedule_alone(call, target).trace)
                assert least <= found <= most, f"{made.name} of {call} has {found} steps"


def test_a_row_of_its_own_comes_before_one_of_its_like():
    assert steps_of("softmax.rows") != steps_of("prod.rows") == steps_of("sum.rows")
    assert steps_of("batch_matmul.paneled") == steps_of("matmul.paneled")
    assert steps_of("dense.direct") == steps_of("matmul.direct")
    with pytest.raises(LookupError, match=r"has a row for matmul\.of_nothing"):
        steps_of("matmul.of_nothing")
