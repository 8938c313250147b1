"""Tables fit their width: numbers stand whole, names are cut in their middle."""

import pytest

from loopwright.base.table import Name, cut_middle, lines_of, number_table, table_text

LONG = "fused_nn_conv2d_bias_relu_of_the_first_residual_block_12"


def sample():
    table = number_table(["function"], ["time", "GFLOP/s"], ["why"])
    table.add_row(Name(LONG), "1.29 ms", "129", "")
    table.add_row(lines_of("short", "of x"), "12.9 µs", "1234", "recorded on this target, the cheapest of two records")
    return table


@pytest.mark.parametrize("width", [48, 60, 80])
def test_lines_fit_the_width_and_numbers_are_whole(width):
    lines = table_text(sample(), width).splitlines()
    assert max(map(len, lines)) <= width
    first = next(line for line in lines if line.startswith("fused"))
    assert "1.29 ms" in first
    assert first.split("…")[0] in LONG
    assert "_12 " in first


def test_numbers_stand_whole_where_the_width_has_no_room_for_them():
    text = table_text(sample(), 10)
    for number in ("1.29 ms", "129", "12.9 µs", "1234", "GFLOP/s"):
        assert number in text


def test_nothing_is_cut_where_there_is_room():
    text = table_text(sample(), 200)
    assert LONG in text
    assert "…" not in text


def test_numbers_are_aligned_at_their_right():
    lines = table_text(sample(), 80).splitlines()
    (one,) = (line for line in lines if "1.29 ms" in line)
    (other,) = (line for line in lines if "12.9 µs" in line)
    assert one.index(" ms") == other.index(" µs")


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [("abc", 3, "abc"), ("abcdefg", 5, "ab…fg"), ("abcdefg", 4, "a…fg"), ("名前名前", 5, "名…前")],
)
def test_a_name_keeps_both_ends(text, width, cut):
    assert cut_middle(text, width) == cut
