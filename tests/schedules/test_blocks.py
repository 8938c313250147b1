"""Sizes of blocks: divisors up to a limit or near it, and the memory of shapes whose extents may be open."""

import pytest

from loopwright import te
from loopwright.base.dtype import dtype
from loopwright.ir.makers import as_index
from loopwright.schedules.blocks import bytes_of, divisors, even_sizes, largest_divisor, near_divisor, part_sizes


@pytest.mark.parametrize("extent", range(1, 60))
def test_the_largest_divisor_divides_and_no_larger_one_below_the_limit_does(extent):
    for most in range(1, 70):
        found = largest_divisor(extent, most)
        assert extent % found == 0
        assert [n for n in range(found + 1, most + 1) if extent % n == 0] == []


@pytest.mark.parametrize("extent", [*range(1, 130), 2310, 4096, 9973])
def test_divisors_and_sizes_of_even_parts_are_all_that_there_are(extent):
    dividing = [n for n in range(1, extent + 1) if extent % n == 0]
    assert divisors(extent) == dividing
    powers = {n for n in range(1, extent + 1) if n.bit_count() == 1}
    assert part_sizes(extent, 17) == sorted({17, *powers, *dividing})
    for parts in (1, 2, 7, extent):
        assert list(even_sizes(extent, parts)) == list(dict.fromkeys(-(-extent // n) for n in range(parts, extent + 1)))


def test_sizes_of_parts_of_a_huge_extent_are_found_without_counting_up_to_it():
    assert len(part_sizes(10**12, 1)) == 13 * 13 + 40 - 13  # divisors and powers of two, of which 13 are both
    assert next(even_sizes(10**12, 3)) == 333_333_333_334


def test_an_open_extent_is_divided_by_1():
    assert largest_divisor(None, 8) == 1


@pytest.mark.parametrize(("extent", "most", "expected"), [(24, 7, 6), (26, 12, 12), (7, 100, 7), (0, 4, 1), (5, 0, 1)])
def test_a_divisor_below_half_the_limit_is_not_near(extent, most, expected):
    assert near_divisor(extent, most) == expected


def test_an_open_extent_takes_little_memory_beside_those_that_are_known():
    known, large = as_index(1000), bytes_of([as_index(1000), as_index(1000)], dtype("float32"))
    assert large == 4_000_000
    assert bytes_of([te.var("n"), known], dtype("float32")) < large // 100
