"""Quantities have three significant digits, a unit, and no exponent."""

import math

import pytest

from loopwright.base.quantities import (
    bytes_text,
    count_text,
    digits,
    error_text,
    rate_text,
    ratio_text,
    seconds_text,
    shape_text,
    share_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1.5, "1.50"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.96, "100"),
        (999.6, "1000"),
        (123456.7, "123457"),
        (0.0123, "0.0123"),
        (-1.5, "-1.50"),
        (1.234e-5, "1.23e-05"),
        (1.234e12, "1.23e+12"),
        (math.inf, "inf"),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert digits(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5, "2.50 s"),
        (0.0121, "12.1 ms"),
        (9.996e-4, "1.00 ms"),  # and not 1e+03 µs
        (3.4e-5, "34.0 µs"),
        (5e-8, "50.0 ns"),
        (5e-11, "0.0500 ns"),
        (0.0, "0 ns"),
        (4000.0, "4000 s"),
    ],
)
def test_durations_have_the_unit_of_which_there_is_one_at_least(seconds, text):
    assert seconds_text(seconds) == text


def test_sizes_are_in_powers_of_1024():
    assert [bytes_text(n) for n in (0, 1023, 1024, 1536, 5 << 20, 3 << 30, 1 << 41)] == [
        *("0 B", "1023 B", "1.00 KiB", "1.50 KiB", "5.00 MiB", "3.00 GiB", "2.00 TiB")
    ]


def test_rates_are_in_giga():
    assert rate_text(1.294e11, "FLOP/s") == "129 GFLOP/s"
    assert rate_text(5.3e8, "B/s") == "0.530 GB/s"


def test_shares_have_one_decimal_and_what_is_small_is_not_nothing():
    assert [share_text(x) for x in (0, 1e-5, 0.0456, 0.456, 1)] == ["0.0%", "<0.1%", "4.6%", "45.6%", "100.0%"]


def test_ratios_errors_counts_and_shapes():
    assert ratio_text(1.544) == "1.54×"
    assert (error_text(1.23e-5), error_text(0.0)) == ("1.2e-05", "0")
    assert (count_text(1, "entry", "entries"), count_text(2, "entry", "entries")) == ("1 entry", "2 entries")
    assert (count_text(1, "thread"), count_text(0, "thread")) == ("1 thread", "0 threads")
    assert (shape_text((1, "N", 8)), shape_text(())) == ("1×N×8", "scalar")
