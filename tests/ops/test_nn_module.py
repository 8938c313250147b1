"""``lw.nn`` in the interpreter: names in groups, and help that tells of parameters and shapes."""

import inspect
import pydoc
import re

import pytest

import loopwright as lw
from loopwright.ops.definition.op_group import OpGroup, group_of
from loopwright.ops.definition.registry import all_ops

NAMES = lw.nn.__all__


def test_all_names_and_no_others_are_shown():
    assert dir(lw.nn) == sorted(NAMES)
    assert all(callable(getattr(lw.nn, name)) for name in dir(lw.nn))


def test_each_name_stands_in_the_group_of_its_family():
    lines = str(lw.nn).splitlines()
    assert repr(lw.nn) == str(lw.nn)
    assert max(map(len, lines)) < 80
    found, group = {}, ""
    for line in lines[1:]:
        column = len(max(OpGroup, key=len)) + 2
        group = line[:column].strip() or group
        found.update(dict.fromkeys(re.findall(r"\w+", line[column:]), group))
    assert sorted(found) == sorted(NAMES)
    assert {
        name: found[name] for name in ("conv2d", "matmul", "exp", "sum", "max_pool", "softmax", "reshape", "take")
    } == {
        "conv2d": "convolutions",
        "matmul": "products",
        "exp": "elementwise",
        "sum": "reductions",
        "max_pool": "pooling",
        "softmax": "normalisation",
        "reshape": "shapes",
        "take": "parts",
    }


def test_a_function_of_a_file_without_a_group_is_a_mistake_of_ours():
    with pytest.raises(lw.InternalError, match=r"has no GROUP, though lw\.nn offers test_all_names"):
        group_of(test_all_names_and_no_others_are_shown)


def test_help_of_a_convolution_has_options_defaults_and_shapes():
    text = pydoc.plain(pydoc.render_doc(lw.nn.conv2d))
    for part in (
        "strides: 'PerAxis' = 1",
        "groups: 'int' = 1",
        "[N, C, H, W]",
        "[K, C / groups, h, w]",
        "the result is [N, K, H', W']",
        "weight: [K, C / groups, window…], or as kernel_layout says",
        "padding: ",
    ):
        assert part in text
    assert list(inspect.signature(lw.nn.conv3d_transpose).parameters)[:3] == ["x", "weight", "strides"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("exp", "The result has the shape of the arguments."),
        ("add", "The result has the shape to which the arguments broadcast."),
        ("sum", "The result lacks the axes that are reduced"),
    ],
)
def test_help_tells_the_shape_of_results_that_follows_from_the_pattern(name, shape):
    assert shape in getattr(lw.nn, name).__doc__


def test_help_of_an_operator_without_arguments_says_nothing_of_their_shape():
    assert lw.nn.full.__doc__.endswith("value: every element: a number, or a bool")


@pytest.mark.parametrize("op", [op for op in all_ops() if op.name.removeprefix("nn.") in NAMES], ids=lambda op: op.name)
def test_help_describes_the_arguments_of_an_operator(op):
    function = getattr(lw.nn, op.name.removeprefix("nn."))
    parameters = inspect.signature(function).parameters
    for argument in op.arguments:
        if argument.name in parameters:
            assert f"{argument.name}: {argument.description.split()[0]}" in function.__doc__
