"""The numbers of a convolution by which implementations decide, in whatever layouts it is."""

import loopwright as lw
from loopwright import te
from loopwright.ops.families.conv.conv import conv2d
from loopwright.ops.families.conv.problem import ConvProblem

TARGET = lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3")


def problem(x, w, **options):
    return ConvProblem.of_call(conv2d(lw.var("x", x), lw.var("w", w), **options), TARGET)


def numbers(made):
    return made.batch, made.group_channels, made.filters, made.group_filters, made.window, made.outputs


def test_numbers_do_not_depend_on_layouts():
    expected = (1, 8, 32, 16, (3, 5), (4, 2))
    plain = problem((1, 16, 9, 6), (32, 8, 3, 5), strides=2, padding=(0, 1), groups=2)
    last = problem(
        (1, 9, 6, 16), (3, 5, 8, 32), strides=2, padding=(0, 1), groups=2, data_layout="NHWC", kernel_layout="HWIO"
    )
    blocks = problem(
        (1, 2, 9, 6, 8), (2, 1, 3, 5, 8, 16), strides=2, padding=(0, 1), groups=2,
        data_layout="NCHW8c", kernel_layout="OIHW8i16o",
    )  # fmt: skip
    assert numbers(plain) == numbers(last) == numbers(blocks) == expected
    assert [made.is_plain for made in (plain, last, blocks)] == [True, False, False]
    assert {made.reduction_extent for made in (plain, last, blocks)} == {8 * 15}


def test_outputs_are_known_only_all_together():
    height, images = te.var("h"), te.var("n")
    assert problem((1, 4, height, 8), (4, 4, 3, 3)).outputs is None
    made = problem((images, 4, 8, 8), (4, 4, 3, 3))
    assert (made.batch, made.outputs) == (None, (6, 6))
    assert problem((0, 4, 8, 8), (4, 4, 3, 3)).is_empty


def test_filters_are_those_of_the_result_where_the_weight_is_filled_up():
    made = problem((1, 4, 8, 8), (2, 4, 1, 1, 8), kernel_layout="OIHW8o", channels=11)
    assert (made.filters, made.is_filled_up, made.is_pointwise) == (11, True, True)
    assert made.has_panels_of(8)
    assert not problem((1, 4, 8, 8), (16, 4, 1, 1)).is_filled_up


def test_a_channel_that_is_a_group_may_have_several_filters():
    made = problem((1, 4, 8, 8), (8, 1, 3, 3), groups=4)
    assert (made.is_depthwise, made.group_filters) == (True, 2)
    assert not problem((1, 1, 8, 8), (8, 1, 3, 3)).is_depthwise
