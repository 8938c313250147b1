"""ONNX's LSTM, GRU, RNN and ReverseSequence in all forms, against the recurrences written down in numpy."""

import numpy as np
import pytest
import recurrences
from onnx import helper
from onnx_cases import case, check, compare, each_version, floats, make_model, model_of, run

import loopwright as lw

TIME, BATCH, INPUTS, HIDDEN = 5, 3, 4, 7
LENGTHS = np.array([5, 1, 3], np.int32)
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
VERSIONS = {"LSTM": (1, 7, 14, 22), "GRU": (1, 3, 7, 14, 22), "RNN": (1, 7, 14, 22)}


def oracle(op, direction, layout=0, activations=None, clip=np.inf, linear_before_reset=0, input_forget=0):
    """The outputs of a node, of its inputs in order."""

    def outputs(x, w, r, b=None, lengths=None, h=None, c=None, p=None):
        reversals, gates = DIRECTIONS[direction], GATES[op]
        hidden = r.shape[2]
        x, *states = (None if a is None else a.swapaxes(0, 1) if layout else a for a in (x, h, c))
        h, c = (np.zeros((len(reversals), x.shape[1], hidden)) if s is None else s for s in states)
        b = np.zeros((len(reversals), 2 * gates * hidden)) if b is None else b

        def recurrence(gates_given, number):
            more = {"clip": clip}
            if activations:
                count = len(activations) // len(reversals)
                more["activations"] = activations[number * count : (number + 1) * count]
            if op == "LSTM":
                peepholes = None if p is None else p[number].reshape(3, hidden)
                return recurrences.lstm(
                    gates_given, r[number], h[number], c[number], peepholes, input_forget=input_forget, **more
                )
            if op == "GRU":
                bias = b[number, 5 * hidden :] if linear_before_reset else None
                return recurrences.gru(gates_given, r[number], h[number], bias, **more)
            return recurrences.rnn(gates_given, r[number], h[number], **more)

        def bias(number):
            both = b[number].reshape(2, gates, hidden)
            if linear_before_reset:
                both = both * np.array([[1, 1, 1], [1, 1, 0]])[..., None]
            return both.sum(0).ravel()

        weights = [(w[k], bias(k), k) for k in range(len(reversals))]
        y, *last = recurrences.directions(recurrence, x.astype(np.float64), lengths, reversals, weights)
        if layout:
            y, last = y.transpose(2, 0, 1, 3), [each.swapaxes(0, 1) for each in last]
        return tuple(each.astype(x.dtype) for each in (y, *last))

    return outputs


def recurrent(op, direction="forward", given="", label="", tolerance=1e-5, kind=np.float32, versions=None, **attrs):
    """A case; ``given`` names the inputs that it has besides x, w and r: b, lengths, h, c, p."""
    count, gates, layout = len(DIRECTIONS[direction]), GATES[op], attrs.get("layout", 0)

    def make(*shape, seed, turned=True):
        made = floats(*shape, seed=seed, low=-1, high=1, kind=kind)
        return np.ascontiguousarray(made.swapaxes(0, 1)) if layout and turned else made

    optional = {
        "b": make(count, 2 * gates * HIDDEN, seed=3, turned=False),
        "lengths": LENGTHS,
        "h": make(count, BATCH, HIDDEN, seed=4),
        "c": make(count, BATCH, HIDDEN, seed=5),
        "p": make(count, 3 * HIDDEN, seed=6, turned=False),
    }
    inputs = [
        make(TIME, BATCH, INPUTS, seed=0),
        make(count, gates * HIDDEN, INPUTS, seed=1, turned=False),
        make(count, gates * HIDDEN, HIDDEN, seed=2, turned=False),
        *(optional[name] if name in given.split() else None for name in optional),
    ]
    while inputs[-1] is None:
        inputs.pop()
    named = {k: v for k, v in attrs.items() if k not in ("activations", "alphas", "betas")}
    if "activations" in attrs:
        rows = [recurrences.with_parameters(each) for each in attrs["activations"]]
        parameters = [
            [row[k] for row, each in zip(rows, attrs["activations"], strict=True) if isinstance(each, tuple)
             and len(each) > k] for k in (1, 2)
        ]  # fmt: skip
        named |= {"activations": [row[0] for row in rows]}
        named |= {n: p for n, p in zip(("activation_alpha", "activation_beta"), parameters, strict=True) if p}
    return case(
        op,
        versions or (22,),
        *inputs,
        const=tuple(k for k in (1, 2, 3) if k < len(inputs)),
        outputs=3 if op == "LSTM" else 2,
        expected=oracle(op, direction, **attrs),
        tolerance=tolerance,
        label=label or f"{direction} {given}",
        hidden_size=HIDDEN,
        direction=direction,
        **named,
    )


SCALED = (("HardSigmoid", 0.3, 0.4), ("ScaledTanh", 0.8, 1.2), ("LeakyRelu", 0.1))
OTHERS = ("Softsign", ("Elu", 0.7), "Relu")
CASES = [
    *(
        recurrent(op, direction, given)
        for op in GATES
        for direction in DIRECTIONS
        for given in ("", "b h", "b lengths h")
    ),
    *(recurrent(op, given="b lengths", label="versions", versions=VERSIONS[op]) for op in GATES),
    recurrent("LSTM", "bidirectional", "b lengths h c p", "all"),
    recurrent("LSTM", "bidirectional", "b h c", "layout", layout=1),
    recurrent("LSTM", "reverse", "lengths", "layout of lengths", layout=1),
    recurrent("LSTM", "forward", "p c", "input_forget", input_forget=1, clip=0.5),
    recurrent("LSTM", "bidirectional", "b", "activations", activations=(*SCALED, *OTHERS)),
    recurrent("GRU", "bidirectional", "b", "activations", activations=(*SCALED[:2], *OTHERS[:2])),
    recurrent("GRU", "bidirectional", "b h", "reset after", linear_before_reset=1),
    recurrent("GRU", "reverse", "lengths", "reset after without bias", linear_before_reset=1, clip=0.6),
    recurrent("GRU", "forward", "b h", "layout", layout=1),
    recurrent("RNN", "bidirectional", "b lengths", "activations", activations=("Softplus", ("ThresholdedRelu", 0.2))),
    recurrent("RNN", "forward", "h", "affine", activations=(("Affine", 0.5, 0.1),), clip=0.7),
    recurrent("RNN", "forward", "h", "layout", layout=1),
    *(recurrent(op, "bidirectional", "b lengths", "double", kind=np.float64, tolerance=1e-12) for op in GATES),
    *(recurrent(op, "bidirectional", "b lengths", "half", kind=np.float16, tolerance=3e-3) for op in GATES),
    case("ReverseSequence", (10, 28), floats(5, 3, 2), LENGTHS.astype(np.int64)),
    case(
        "ReverseSequence", (10, 28), floats(3, 5, 2), LENGTHS.astype(np.int64), time_axis=1, batch_axis=0, label="axes"
    ),
]


@each_version(CASES)
def test_an_operator_gives_what_the_recurrence_gives(case, version):
    check(case, version)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_time_and_batch_may_be_open(direction):
    count = len(DIRECTIONS[direction])
    w, r = floats(count, 4 * HIDDEN, INPUTS, seed=1), floats(count, 4 * HIDDEN, HIDDEN, seed=2) / 2
    node = helper.make_node("LSTM", ["x", "w", "r", "", "n"], ["y", "h", "c"], hidden_size=HIDDEN, direction=direction)
    inputs = {"x": ("float32", ["T", "B", INPUTS]), "n": ("int32", ["B"])}
    engine = lw.Engine(lw.compile(make_model([node], inputs, ["y", "h", "c"], 14, {"w": w, "r": r}), jobs=1))
    for time, batch in ((1, 1), (4, 1), (3, 7), (6, 2), (2, 20), (3, 0)):
        x = floats(time, batch, INPUTS, seed=time)
        lengths = np.random.default_rng(batch).integers(0, time + 1, batch).astype(np.int32)
        compare(engine({"x": x, "n": lengths}), oracle("LSTM", direction)(x, w, r, None, lengths))


def test_of_no_steps_the_first_states_are_the_last():
    w, r = floats(1, HIDDEN, INPUTS, seed=1), floats(1, HIDDEN, HIDDEN, seed=2)
    h = floats(1, BATCH, HIDDEN, seed=3)
    node = helper.make_node("RNN", ["x", "w", "r", "", "", "h"], ["y", "last"], hidden_size=HIDDEN)
    inputs = {"x": ("float32", ["T", BATCH, INPUTS]), "h": h}
    engine = lw.Engine(lw.compile(make_model([node], inputs, ["y", "last"], 14, {"w": w, "r": r}), jobs=1))
    y, last = engine({"x": np.zeros((0, BATCH, INPUTS), np.float32), "h": h})
    assert y.shape == (0, 1, BATCH, HIDDEN)
    np.testing.assert_array_equal(last, h)


def test_outputs_may_be_left_out():
    made = recurrent("LSTM", given="b")
    model = model_of(made, 14)
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]
    compare(run(model, made.fed), made.expected(*made.inputs)[1:])


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"direction": "sideways"}, "the direction 'sideways' is not supported"),
        ({"direction": "bidirectional"}, "the direction bidirectional of .* with weights"),
        ({"activations": ["Sine"]}, "the activation 'Sine' is not supported"),
    ],
)
def test_a_form_that_is_not_known_is_refused(attrs, message):
    made = recurrent("RNN")
    model = model_of(made, 14)
    node = model.graph.node[0]
    kept = [a for a in node.attribute if a.name not in attrs]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attrs.items())])
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(model)
