"""onnxruntime's linear attention and causal convolution, against onnxruntime."""

import numpy as np
import pytest
from contrib_cases import check_contrib, check_refused, contrib_case, each_extents
from onnx_cases import floats

B, T, KEY, VALUE = 2, 5, 8, 6


def attention(heads, of_keys, rule, state=True, decay=1, beta=True, **options):
    """One call; ``decay`` is how many numbers a head has, 0 for none."""
    label = f"{rule}-{heads}-{of_keys}-{'state' if state else 'zeros'}-{decay}" + "".join(options)
    keys = floats(B, T, of_keys * KEY, seed=1)
    split = keys.reshape(B, T, of_keys, KEY)
    keys = (split / np.linalg.norm(split, axis=-1, keepdims=True)).reshape(keys.shape)
    return contrib_case(
        "LinearAttention",
        floats(B, T, heads * KEY),
        keys,
        floats(B, T, of_keys * VALUE, seed=2),
        floats(B, of_keys, KEY, VALUE, seed=3) if state else None,
        -np.abs(floats(B, T, of_keys * decay, seed=4)) if decay else None,
        *([np.abs(floats(B, T, of_keys, seed=5)) % 1] if beta else []),
        wanted=2, q_num_heads=heads, kv_num_heads=of_keys, update_rule=rule, label=label, tolerance=1e-4,
        opened={0: "BT.", 1: "BT.", 2: "BT.", **({3: "B..."} if state else {}), **({4: "BT."} if decay else {}),
                **({5: "BT."} if beta else {})},
        **options,
    )  # fmt: skip


ATTENTION = [
    attention(2, 2, "linear", decay=0, beta=False),
    attention(4, 2, "linear", state=False, decay=0, beta=False),
    attention(2, 2, "gated", beta=False),
    attention(2, 2, "gated", decay=KEY, beta=False, scale=0.3),
    attention(2, 2, "delta", decay=0),
    attention(4, 2, "gated_delta", decay=KEY),
    attention(4, 1, "gated_delta"),
    attention(2, 2, "gated_delta", state=False, chunk_size=2),
]


def decays_by_element(case):
    """Whether there is no decay for all elements of a head, which an open extent would not tell from one for each."""
    decay = case.inputs[4] if len(case.inputs) > 4 else None
    return decay is None or decay.shape[-1] == case.attrs["kv_num_heads"] * KEY


def convolution(channels, taps, bias=True, state=True, **options):
    label = f"{channels}-{taps}-{'bias' if bias else ''}-{'state' if state else ''}" + "".join(options)
    return contrib_case(
        "CausalConvWithState",
        floats(B, channels, T),
        floats(channels, 1, taps, seed=1),
        floats(channels, seed=2) if bias else None,
        *([floats(B, channels, taps - 1, seed=3)] if state else []),
        wanted=2, label=label, const=(1,), opened={0: "B.T", **({3: "B.."} if state else {})}, **options,
    )  # fmt: skip


CONVOLUTIONS = [
    convolution(6, 4),
    convolution(6, 4, state=False, activation="silu"),
    convolution(3, 2, bias=False, activation="swish"),
    convolution(3, 9, bias=False),  # more taps than positions
]


CASES = [*ATTENTION, *CONVOLUTIONS]


@each_extents(CASES)
def test_states(case, opened):
    check_contrib(case, opened)


@pytest.mark.parametrize("case", [c for c in ATTENTION if decays_by_element(c)], ids=lambda case: case.label)
def test_attention_of_which_no_extent_is_known(case):
    """Not even that all inputs have one batch, as exporters leave it."""
    names = iter("abcdefghijklmnopqrstuvwxyz")
    case.opened = {k: "".join(next(names) for _ in x.shape) for k, x in enumerate(case.inputs) if x is not None}
    check_contrib(case, opened=True)


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        (attention(2, 2, "linear", decay=0, beta=False, state_window=2), "state_window 2"),
        (attention(1, 2, "linear", decay=0, beta=False), "fewer heads of queries than of keys"),
        (convolution(3, 4, dilation=2), "dilation 2"),
        (convolution(3, 4, channels_last=1), "channels_last 1"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_is_refused(case, problem):
    check_refused(case, problem)
