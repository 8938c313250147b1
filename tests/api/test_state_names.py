"""Which outputs are taken for states by the names that exporters give them."""

import pytest

from loopwright.api.state_names import paired_names


@pytest.mark.parametrize(
    ("inputs", "outputs", "pairs"),
    [
        # optimum, with and without an encoder
        ("ids past_key_values.0.key past_key_values.0.value", "logits present.0.key present.0.value", "1:1 2:2"),
        ("ids past_key_values.1.decoder.key", "logits present.1.decoder.key", "1:1"),
        # onnxruntime's own exporters
        ("ids past_0 past_1", "logits present_0 present_1", "1:1 2:2"),
        ("ids past_key_self_0 past_key_cross_0", "logits present_key_self_0 present_key_cross_0", "1:1 2:2"),
        ("ids past_conv.0", "logits present_conv.0", "1:1"),
        # detectors of voices
        ("input sr h c", "output hn cn", "1:2 2:3"),
        ("input sr h0 c0", "output hn cn", "1:2 2:3"),
        ("input state sr", "output stateN", "1:1"),
        # streaming recognisers
        ("x cached_key_0 cached_key_1", "y new_cached_key_0 new_cached_key_1", "1:1 2:2"),
        ("audio input_states_1", "y output_states_1", "1:1"),
        ("x lstm_h_in", "y lstm_h_out", "1:1"),
        ("x hidden", "y next_hidden", "1:1"),
        # no states, or not certain which
        ("input_ids", "output_ids", ""),
        ("input_0", "output_0", ""),
        ("input", "output", ""),
        ("x past", "y", ""),
        ("x state state_in", "y state_out", ""),
        ("x state", "y state_out new_state", ""),
        ("x state", "y other_state", ""),
        ("x past.0 past_key_values.0", "y present.0", ""),
    ],
)
def test_names_are_paired_where_they_are_certain(inputs, outputs, pairs):
    inputs, outputs = inputs.split(), outputs.split()
    numbers = (map(int, pair.split(":")) for pair in pairs.split())
    assert paired_names(inputs, outputs) == {outputs[out]: inputs[given] for out, given in numbers}
