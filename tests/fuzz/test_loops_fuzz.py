"""Random loops of numbers and strings that change their length give what numpy makes of them, by iterations."""

import numpy as np
import pytest
from random_loops import random_loop

import loopwright as lw


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 150))])
def test_random_loops(seed):
    loop = random_loop(seed)
    engine = lw.Engine(lw.compile(loop.model, jobs=1, progress=False))
    for feeds, wanted in zip(loop.feeds, loop.expected, strict=True):
        for found, want in zip(engine(feeds), wanted, strict=True):
            if want.dtype == object:
                assert found.tolist() == want.tolist()
            else:
                assert found.shape == want.shape
                np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
