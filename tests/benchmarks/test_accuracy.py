"""Measuring errors of math functions: what is largest, where, and which arguments of pow are taken."""

import numpy as np
import pytest
from accuracy import EXPONENTS, Worst, measure, measure_pairs, measure_powers


def test_the_largest_error_and_its_arguments_are_kept():
    worst = Worst("exp", "native")
    right = worst.run
    worst.run = lambda x: np.where(x == 2, right(x) * np.float32(1 + 2**-20), right(x))
    worst.take((np.linspace(-4, 4, 1024, dtype=np.float32),))
    assert worst.error < 2
    x = np.arange(16, dtype=np.float32)
    worst.take((x,))
    assert worst.where == (2.0,)
    assert worst.error == pytest.approx(2**-20 * np.exp(2) / 2**-21, abs=1.5)
    worst.take((x + 16,))
    assert worst.where == (2.0,)


def test_functions_are_measured_in_an_interval_of_sizes():
    worst = measure("sin", "native", 1 << 5, (1.0, 8.0))
    assert 0.5 < worst.error <= 2
    assert 1 <= abs(worst.where[0]) < 8.1


def test_powers_of_all_numbers_and_of_pairs_are_measured():
    assert len(set(EXPONENTS)) == 16
    alike = measure_pairs("native", 1 << 17, seed=3)
    assert 0.5 < alike.error <= 2
    assert len(alike.where) == 2
    assert alike.where == measure_pairs("native", 1 << 17, seed=3).where
    powers = measure_powers("native", 1 << 14, 1 / 3)
    assert 0.5 <= powers.error <= 2
    assert all(y == float(np.float32(1 / 3)) for y in powers.where[1:])
