"""Extents that a run computes, in the graph and in the stages of a compiled model."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import nn, te
from loopwright.ops.families.born_extents import born_extents
from loopwright.ops.families.open_extents import positions


def counted(x):
    """The places of what is not 0 in a vector, and the witness of how many there are."""
    places = nn.nonzero(x)
    return nn.reshape(places, (-1,)), places.args[1]


def test_a_birth_cuts_the_model_into_stages():
    x = lw.var("x", (50,))
    places, _ = counted(nn.exp(x))
    model = lw.compile(lw.Function([x], nn.cast(places, "float32"))).model
    assert [len(stage.births) for stage in model.body.stages] == [0, 1]
    (birth,) = model.body.stages[1].births
    assert [dim.name for dim in birth.dims] == ["nonzero"]
    assert [str(spec.shape[0]) for spec in model.outputs] == ["nonzero"]


def test_births_that_nothing_runs_between_share_a_stage():
    x = lw.var("x", (50,))
    y = lw.var("y", (30,))
    both = nn.concatenate([counted(x)[0], counted(y)[0]], 0)
    library = lw.compile(lw.Function([x, y], both))
    assert sum(len(stage.births) for stage in library.model.body.stages) == 2
    a, b = (np.random.default_rng(1).integers(0, 2, n).astype(np.float32) for n in (50, 30))
    (found,) = lw.Engine(library)([a, b])
    np.testing.assert_array_equal(found, np.concatenate([np.nonzero(a)[0], np.nonzero(b)[0]]))


def test_what_is_written_before_a_birth_is_not_placed_in_what_it_sizes():
    """The concatenation has no size yet when its first part is computed."""
    x = lw.var("x", (40,))
    early = nn.sqrt(nn.abs(x))
    whole = nn.concatenate([early, nn.cast(counted(nn.relu(early))[0], "float32")], 0)
    library = lw.compile(lw.Function([x], nn.softmax(whole)))
    value = np.random.default_rng(2).standard_normal(40).astype(np.float32)
    (found,) = lw.Engine(library)([value])
    first = np.sqrt(np.abs(value))
    joined = np.concatenate([first, np.nonzero(first)[0]]).astype(np.float64)
    powers = np.exp(joined - joined.max())
    np.testing.assert_allclose(found, powers / powers.sum(), rtol=1e-5)


def test_extents_that_meet_are_taken_for_equal_and_checked():
    x, y = (lw.var(name, (20,)) for name in "xy")
    library = lw.compile(lw.Function([x, y], nn.add(counted(x)[0], counted(y)[0])))
    engine = lw.Engine(library)
    a = np.zeros(20, np.float32)
    a[3:9] = 1
    (found,) = engine([a, a[::-1].copy()])
    np.testing.assert_array_equal(found, np.arange(3, 9) + np.arange(11, 17))
    with pytest.raises(lw.RuntimeArgumentError, match=r"should be nonzero.*nonzero = 6"):
        engine([a, np.ones(20, np.float32)])


def test_an_extent_that_must_be_a_number_is_checked():
    x = lw.var("x", (20,))
    weights = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)
    rows = nn.reshape(nn.cast(counted(x)[0], "float32"), (1, -1))
    engine = lw.Engine(lw.compile(lw.Function([x], nn.matmul(rows, lw.const(weights)))))
    a = np.zeros(20, np.float32)
    a[3:9] = 1
    np.testing.assert_allclose(engine([a])[0], np.arange(3, 9, dtype=np.float32)[None] @ weights, rtol=1e-5)
    a[0] = 1
    with pytest.raises(lw.RuntimeArgumentError, match="nonzero should be 6, found nonzero = 7"):
        engine([a])


def test_births_of_constants_are_no_births():
    values = np.array([0, 1, 0, 1, 1], np.float32)
    x = lw.var("x", (3,))
    library = lw.compile(lw.Function([x], nn.add(x, nn.cast(counted(lw.const(values))[0], "float32"))))
    assert len(library.model.body.stages) == 1
    np.testing.assert_array_equal(lw.Engine(library)([np.zeros(3, np.float32)])[0], [1, 3, 4])


def test_formulas_over_born_extents_are_dimensions_of_functions():
    count = lw.var("count", (1,), "int64")
    witness = born_extents(count, ["k"], "a count")
    (k,) = witness.type.shape
    made = positions((k + 1) * 2, [witness])
    engine = lw.Engine(lw.compile(lw.Function([count], nn.multiply(made, made))))
    for number in (0, 1, 30):
        np.testing.assert_array_equal(engine([np.array([number])])[0], np.arange((number + 1) * 2) ** 2)


def test_symbols_of_inputs_and_births_go_together():
    x = lw.var("x", (te.var("n"), 3))
    rows = nn.take(x, counted(nn.sum(x, [1]))[0], 0)
    both = nn.concatenate([x, rows], 0)
    engine = lw.Engine(lw.compile(lw.Function([x], nn.softmax(both))))
    for n in (1, 7, 33):
        value = np.random.default_rng(n).integers(-1, 2, (n, 3)).astype(np.float32)
        joined = np.exp(np.concatenate([value, value[value.sum(1) != 0]]).astype(np.float64))
        np.testing.assert_allclose(engine([value])[0], joined / joined.sum(1, keepdims=True), rtol=1e-5)


def test_explain_and_the_text_of_graphs_tell_of_births():
    x = lw.var("x", (50,))
    function = lw.Function([x], nn.exp(nn.cast(counted(x)[0], "float32")))
    assert "born_extents(%" in str(function)
    assert "extents=(nonzero,)" in str(function)
    assert "fused_nonzero" in str(lw.explain(function))
