"""Attributes: types, checks, JSON, documentation."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

import loopwright as lw
from loopwright.ops.definition.attrs import REQUIRED, Attrs, attr, positive
from loopwright.ops.definition.registry import all_ops


@dataclass(frozen=True)
class SampleAttrs(Attrs):
    strides: tuple[int, ...] = attr("steps")
    groups: int = attr("groups", 1, positive)
    scale: float | None = attr("a factor", None)
    mode: Literal["a", "b"] = attr("how", "a")
    names: tuple[str, ...] = attr("letters", ())


@pytest.mark.parametrize(
    "attrs",
    [
        SampleAttrs((1, 2)),
        SampleAttrs((), 3, 0.1, "b", ("ij", "jk")),
        SampleAttrs((1,), scale=2),
        SampleAttrs((1,), scale=-math.inf),
    ],
)
def test_json_gives_the_same_attributes_back(attrs):
    text = json.dumps(attrs.to_json(), allow_nan=False)
    again = SampleAttrs.from_json(json.loads(text))
    assert again == attrs
    assert repr(again) == repr(attrs)


def test_nan_has_a_place_in_json():
    text = json.dumps(SampleAttrs((), scale=math.nan).to_json(), allow_nan=False)
    assert math.isnan(SampleAttrs.from_json(json.loads(text)).scale)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"strides": [1]}, "SampleAttrs misses groups, scale, mode, names; its fields are strides, groups"),
        (SampleAttrs((1,)).to_json() | {"stride": 2}, "SampleAttrs has no stride"),
        (SampleAttrs((1,)).to_json() | {"groups": "2"}, "SampleAttrs.groups must be an integer, found '2'"),
        (SampleAttrs((1,)).to_json() | {"groups": 0}, "SampleAttrs.groups must be a positive integer, found 0"),
        (SampleAttrs((1,)).to_json() | {"mode": "c"}, 'SampleAttrs.mode must be one of "a", "b", found \'c\''),
        ([1], r"is read from a JSON object, found \[1\]"),
    ],
)
def test_what_is_not_of_the_class_is_refused(data, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        SampleAttrs.from_json(data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"strides": 2}, r"strides must be an array of \(an integer\), found 2"),
        ({"strides": (1, 2.0)}, "strides must be an array"),
        ({"strides": (1,), "groups": True}, "groups must be an integer, found True"),
        ({"strides": (1,), "scale": "2"}, "scale must be a number or null, found '2'"),
    ],
)
def test_values_of_another_type_are_refused(fields, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        SampleAttrs(**fields)


def test_lists_and_numbers_of_numpy_are_taken():
    made = SampleAttrs([np.int64(1), 2], np.int32(3), np.float64(0.5), names=["x"])
    assert made == SampleAttrs((1, 2), 3, 0.5, names=("x",))
    assert [type(v) for v in (*made.strides, made.groups, made.scale)] == [int, int, int, float]


def test_fields_describe_themselves():
    described = {a.name: (a.type, a.description, a.default) for a in SampleAttrs.describe()}
    assert described["strides"] == ("tuple[int, ...]", "steps", REQUIRED)
    assert described["groups"] == ("int", "groups", 1)


def test_attributes_of_all_operators_are_typed_and_described():
    for op in all_ops():
        for attribute in op.attrs.describe() if op.attrs is not None else ():
            assert attribute.description, f"{op.name}.{attribute.name}"
            if attribute.default is not REQUIRED:
                json.dumps(attribute.default)
