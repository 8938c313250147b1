"""Decoders and detectors as exporters write them, in sessions: equal to onnxruntime, to which states are handed on."""

import re

import numpy as np
import pytest
from cached_decoders import HEAD, HEADS, VOCABULARY, WIDTH, ByHand, fixed_cache, gpt_like, stacked_cache, voice_detector

import loopwright as lw

TARGET = "x86-64-v3"
rng = np.random.default_rng(9)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def agrees(made, first, drawn, shapes=None):
    """Compile, and compare each of the drawn runs and the states behind them; the library and its session."""
    library = lw.compile(made, target=TARGET, shapes=shapes, state="auto")
    model = library.model
    pairs = {model.outputs[s.output].name: model.inputs[s.input].name for s in model.states}
    assert set(pairs.values()) == set(first)
    session, by_hand = lw.Engine(library, threads=1).session(), ByHand(made, pairs, first)
    for inputs in drawn:
        found, wanted = session(inputs), by_hand(**inputs)
        assert found.keys() == list(wanted)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4)
    for name, value in by_hand.states.items():
        np.testing.assert_allclose(session.state(name), value, rtol=1e-3, atol=1e-4)
    return library, session


def caches(shared, batch, layers):
    names = [f"past_key_values.{layer}.{what}" for layer in range(layers) for what in ("key", "value")]
    return {name: np.zeros((batch, shared, 0, HEAD), np.float32) for name in names}


def tokens(batch, *counts):
    return [{"input_ids": rng.integers(0, VOCABULARY, (batch, count))} for count in counts]


def touching_states(library):
    """The names of the functions that read or write elements of states."""
    layout = library.model.layout
    slots = {slot for s in library.model.states for slot in (s.input, layout.output(s.output))}
    found = set()
    for step in library.model.steps:
        function = library.model.by_symbol[step.symbol]
        head, _, body = function.loop_ir.partition("\n")
        names = re.findall(r"[(,] ?(\w+): \w+\[", head)
        given = {name for name, slot in zip(names, step.operands, strict=False) if slot in slots}
        if any(re.search(rf"\b{name}\[", body) for name in given):
            found.add(function.name)
    return found


def check_nothing_copies_the_past(library):
    """Caches are read by attention alone, and written by what appends to them."""
    assert touching_states(library) == {"fused_append_rows", "fused_nn_masked_attention"}
    (append,) = (function for function in library.functions if function.name == "fused_append_rows")
    assert "p0[" not in append.loop_ir.partition("\n")[2]  # the past


def test_a_decoder_of_one_token_at_a_time():
    shapes = {"input_ids": (1, 1)}
    library, session = agrees(gpt_like(layers=1), caches(HEADS, 1, 1), tokens(1, *[1] * 50), shapes)
    assert all(state.in_place and state.axis == 2 for state in library.model.states)
    check_nothing_copies_the_past(library)
    assert session.length == 50
    assert session.copied_bytes == 63 * 2 * WIDTH * 4  # at 1, 2, 4, … 32 tokens


def test_a_decoder_of_one_token_whose_queries_share_heads_of_keys():
    library, _ = agrees(gpt_like(2, layers=1), caches(2, 1, 1), tokens(1, *[1] * 12), {"input_ids": (1, 1)})
    check_nothing_copies_the_past(library)


@pytest.mark.slow
def test_a_decoder_of_open_batch_and_tokens():
    library, session = agrees(gpt_like(), caches(HEADS, 2, 2), tokens(2, 7, *[1] * 40, 3, *[1] * 9))
    check_nothing_copies_the_past(library)
    assert session.length == 59


@pytest.mark.slow
def test_a_decoder_whose_queries_share_heads_of_keys():
    library, _ = agrees(gpt_like(2), caches(2, 2, 2), tokens(2, 7, *[1] * 50))
    assert all(state.in_place for state in library.model.states)
    check_nothing_copies_the_past(library)


@pytest.mark.parametrize("operator", ["ScatterND", "TensorScatter"])
def test_a_cache_of_fixed_length_is_written_in_place(operator):
    first = {f"past_{what}": np.zeros((1, HEADS, 64, HEAD), np.float32) for what in ("key", "value")}
    drawn = [{"x": floats(1, 1, WIDTH), "place": np.array([k])} for k in range(50)]
    library, session = agrees(fixed_cache(operator), first, drawn)
    assert all(state.in_place and state.axis is None for state in library.model.states)
    assert session.copied_bytes == 0
    (writer,) = (f for f in library.functions if "scatter" in f.name or "write" in f.name)
    assert "p0[" not in writer.loop_ir.partition("\n")[2]  # the past is not read to be written


def test_a_cache_that_is_taken_apart_and_put_together_is_written_whole():
    first = {"past_0": np.zeros((2, 1, HEADS, 0, HEAD), np.float32)}
    shapes = {"x": (1, 1, WIDTH), "past_0": (2, 1, HEADS, None, HEAD)}
    library, session = agrees(stacked_cache(), first, [{"x": floats(1, 1, WIDTH)} for _ in range(20)], shapes)
    assert not library.model.states[0].in_place
    session.truncate(7)
    assert session.state("past_0").shape[3] == 7


def test_the_states_of_a_detector_of_voices():
    first = {name: np.zeros((1, 2, 32), np.float32) for name in ("h", "c")}
    library, session = agrees(voice_detector(), first, [{"input": floats(2, 64)} for _ in range(30)])
    assert [state.axis for state in library.model.states] == [None, None]
    assert session.copied_bytes == 0
