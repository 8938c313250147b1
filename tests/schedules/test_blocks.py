"""Sizes of blocks: divisors up to a limit or near it, and the memory of shapes whose extents may be open."""

import pytest

from loopwright import te
from loopwright.base.dtype import dtype
from loopwright.ir.makers import as_index
from loopwright.schedules.blocks import bytes_of, largest_divisor, near_divisor


@pytest.mark.parametrize("extent", range(1, 60))
def test_the_largest_divisor_divides_and_no_larger_one_below_the_limit_does(extent):
    for most in range(1, 70):
        found = largest_divisor(extent, most)
        assert extent % found == 0
        assert [n for n in range(found + 1, most + 1) if extent % n == 0] == []


def test_an_open_extent_is_divided_by_1():
    assert largest_divisor(None, 8) == 1


@pytest.mark.parametrize(("extent", "most", "expected"), [(24, 7, 6), (26, 12, 12), (7, 100, 7), (0, 4, 1), (5, 0, 1)])
def test_a_divisor_below_half_the_limit_is_not_near(extent, most, expected):
    assert near_divisor(extent, most) == expected


def test_an_open_extent_takes_little_memory_beside_those_that_are_known():
    known, large = as_index(1000), bytes_of([as_index(1000), as_index(1000)], dtype("float32"))
    assert large == 4_000_000
    assert bytes_of([te.var("n"), known], dtype("float32")) < large // 100
