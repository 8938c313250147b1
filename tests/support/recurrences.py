"""Recurrent operators in numpy, step by step, as ONNX writes them down: oracles for the tests of several folders."""

import numpy as np

ACTIVATIONS = {
    "Affine": lambda x, a, b: a * x + b,
    "Elu": lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x, a, b: np.logaddexp(x, 0),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Tanh": lambda x, a, b: np.tanh(x),
    "ThresholdedRelu": lambda x, a, b: np.where(x > a, x, 0),
}
PANEL = 16


class Gates:
    """The gates of a step: what they are given, held between bounds, and activated."""

    def __init__(self, activations, clip=np.inf):
        self.functions = [
            (lambda x, f=ACTIVATIONS[name], a=a, b=b: f(x, a, b)) for name, a, b in map(with_parameters, activations)
        ]
        self.clip = clip

    def __call__(self, number, x):
        with np.errstate(over="ignore"):
            return self.functions[number](np.clip(x, -self.clip, self.clip))


def with_parameters(activation):
    name, *parameters = (activation,) if isinstance(activation, str) else activation
    return (name, *parameters, *(0.0, 0.0)[len(parameters) :])


def lstm(x, r, h, c, p=None, activations=("Sigmoid", "Tanh", "Tanh"), clip=np.inf, input_forget=False):
    """All states h and c, of what the gates i, o, f, c are given of each step [time, batch, 4 · hidden], and of the
    weights [4 · hidden, hidden]."""
    gates = Gates(activations, clip)
    p = np.zeros((3, h.shape[-1])) if p is None else p
    hs, cs = [np.broadcast_to(h, (x.shape[1], h.shape[1]))], [np.broadcast_to(c, (x.shape[1], c.shape[1]))]
    for row in x:
        i, o, f, g = np.split(row + hs[-1] @ r.T, 4, axis=-1)
        i, f = gates(0, i + p[0] * cs[-1]), gates(0, f + p[2] * cs[-1])
        cs.append((1 - i if input_forget else f) * cs[-1] + i * gates(1, g))
        hs.append(gates(0, o + p[1] * cs[-1]) * gates.functions[2](cs[-1]))
    return np.stack(hs), np.stack(cs)


def gru(x, r, h, bias=None, activations=("Sigmoid", "Tanh"), clip=np.inf):
    """All states, of gates z, r, h; with ``bias`` reset after the product."""
    gates = Gates(activations, clip)
    size = h.shape[-1]
    hs = [np.broadcast_to(h, (x.shape[1], size))]
    for row in x:
        old = hs[-1]
        z, reset, g = np.split(row, 3, axis=-1)
        z, reset = gates(0, z + old @ r[:size].T), gates(0, reset + old @ r[size : 2 * size].T)
        own = (reset * old) @ r[2 * size :].T if bias is None else reset * (old @ r[2 * size :].T + bias)
        hs.append((1 - z) * gates(1, g + own) + z * old)
    return np.stack(hs)


def rnn(x, r, h, activations=("Tanh",), clip=np.inf):
    """All states."""
    gates = Gates(activations, clip)
    hs = [np.broadcast_to(h, (x.shape[1], h.shape[1]))]
    for row in x:
        hs.append(gates(0, row + hs[-1] @ r.T))
    return np.stack(hs)


def panels(r, gates, together=True):
    """Weights [gates · hidden, hidden] in panels of hidden units, which have all gates, or each gate its own."""
    hidden = r.shape[1]
    count = -(-hidden // PANEL)
    whole = np.zeros((gates, count * PANEL, hidden), r.dtype)
    whole[:, :hidden] = r.reshape(gates, hidden, hidden)
    apart = whole.reshape(gates, count, PANEL, hidden).swapaxes(2, 3)
    return np.ascontiguousarray(apart.transpose(1, 2, 0, 3) if together else apart.reshape(-1, hidden, 1, PANEL))


def unpacked(held):
    """The weights that stand in panels."""
    hidden = held.shape[1]
    by_gates = held.reshape(-1, -(-hidden // PANEL), *held.shape[1:]).transpose(0, 3, 1, 4, 2)
    return by_gates.reshape(*by_gates.shape[:2], -1, hidden)[:, :, :hidden].reshape(-1, hidden)


def of_panels(recurrence):
    """A recurrence that is given its weights in panels."""
    return lambda x, held, *more, **attrs: recurrence(x, unpacked(held), *more, **attrs)


def backwards(x, lengths):
    """The first steps of each sample in reverse."""
    made = x.copy()
    for b, length in enumerate(lengths):
        made[:length, b] = x[:length, b][::-1]
    return made


def directions(recurrence, x, lengths, reversals, weights):
    """What a recurrence gives of all steps, [time, directions, batch, hidden], and of the last, [directions, batch,
    hidden], for each state. ``weights`` has for each direction the input weights, the bias and what the recurrence is
    given besides."""
    lengths = np.full(x.shape[1], x.shape[0]) if lengths is None else lengths
    steps, lasts = [], []
    for reverse, (w, bias, *more) in zip(reversals, weights, strict=True):
        order = backwards(x, lengths) if reverse else x
        states = recurrence(order @ w.T + bias, *more)
        states = states if isinstance(states, tuple) else (states,)
        y = states[0][1:].copy()
        for b, length in enumerate(lengths):
            y[length:, b] = 0
        steps.append(backwards(y, lengths) if reverse else y)
        lasts.append([s[lengths, np.arange(x.shape[1])] for s in states])
    return np.stack(steps, 1), *(np.stack(each) for each in zip(*lasts, strict=True))
