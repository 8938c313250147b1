"""Decoders with a cache of keys and values, as exporters write them, with seeded weights; and their runs by
onnxruntime, to which the cache is handed by hand."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HEADS, HEAD, LAYERS, POSITIONS = 61, 4, 16, 2, 256
WIDTH = HEADS * HEAD


class Graph:
    """Nodes and weights of a model as they are added; values are called by their names."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def add(self, kind, *inputs, outputs=None, **attributes):
        self.count += 1
        names = [f"{kind.lower()}_{self.count}"] if outputs is None else outputs
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if len(names) == 1 else names

    def constant(self, value, kind=np.int64):
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(value, kind), f"constant_{self.count}"))
        return self.weights[-1].name

    def weight(self, *shape):
        return self.constant(self.rng.standard_normal(shape) / shape[0] ** 0.5, np.float32)

    def model(self, inputs, outputs, opset=17):
        infos = [
            [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in each]
            for each in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "decoder", *infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def heads_of(g, x, count):
    """[batch, tokens, count · size] → [batch, count, tokens, size]"""
    return g.add("Transpose", g.add("Reshape", x, g.constant([0, 0, count, HEAD])), perm=[0, 2, 1, 3])


def repeated(g, x, shared):
    """Each head as often as queries have heads for one: as exporters write ``repeat_kv``."""
    if shared == HEADS:
        return x
    shape = g.add("Shape", x)
    batch, tokens = (g.add("Gather", shape, g.constant([k])) for k in (0, 2))
    wide = g.add("Concat", batch, g.constant([shared, HEADS // shared]), tokens, g.constant([HEAD]), axis=0)
    flat = g.add("Concat", batch, g.constant([HEADS]), tokens, g.constant([HEAD]), axis=0)
    return g.add("Reshape", g.add("Expand", g.add("Unsqueeze", x, g.constant([2])), wide), flat)


def attended(g, q, keys, values, tokens, past):
    """Causal attention of new queries over all keys."""
    first = g.add("Squeeze", past, g.constant([0]))
    end = g.add("Add", first, g.add("Squeeze", tokens, g.constant([0])))
    zero, one = g.constant(0), g.constant(1)
    rows = g.add("Unsqueeze", g.add("Range", first, end, one), g.constant([1]))
    seen = g.add("LessOrEqual", g.add("Range", zero, end, one), rows)
    mask = g.add("Where", seen, g.constant(0, np.float32), g.constant(-1e9, np.float32))
    scores = g.add("MatMul", q, g.add("Transpose", keys, perm=[0, 1, 3, 2]))
    scores = g.add("Add", g.add("Mul", scores, g.constant(HEAD**-0.5, np.float32)), mask)
    mixed = g.add("Transpose", g.add("MatMul", g.add("Softmax", scores, axis=-1), values), perm=[0, 2, 1, 3])
    return g.add("Reshape", mixed, g.constant([0, 0, WIDTH]))


def normed(g, x):
    ones, zeros = g.constant(np.ones(WIDTH), np.float32), g.constant(np.zeros(WIDTH), np.float32)
    return g.add("LayerNormalization", x, ones, zeros, axis=-1)


def gpt_like(shared=HEADS, layers=LAYERS, seed=3):
    """A decoder of open batch, tokens and past, by optimum's names; with fewer ``shared`` heads of keys as Llama."""
    g = Graph(seed)
    past = g.add("Gather", g.add("Shape", "past_key_values.0.key"), g.constant([2]))
    tokens = g.add("Gather", g.add("Shape", "input_ids"), g.constant([1]))
    begin, end = (g.add("Squeeze", n, g.constant([0])) for n in (past, g.add("Add", past, tokens)))
    places = g.add("Gather", g.weight(POSITIONS, WIDTH), g.add("Range", begin, end, g.constant(1)))
    x = g.add("Add", g.add("Gather", g.weight(VOCABULARY, WIDTH), "input_ids"), places)
    states = []
    for layer in range(layers):
        h = normed(g, x)
        q = heads_of(g, g.add("MatMul", h, g.weight(WIDTH, WIDTH)), HEADS)
        caches = []
        for what in ("key", "value"):
            new = heads_of(g, g.add("MatMul", h, g.weight(WIDTH, shared * HEAD)), shared)
            names = f"past_key_values.{layer}.{what}", f"present.{layer}.{what}"
            states.append(names)
            caches.append(repeated(g, g.add("Concat", names[0], new, axis=2, outputs=[names[1]]), shared))
        mixed = attended(g, q, *caches, tokens, past)
        x = g.add("Add", x, g.add("MatMul", mixed, g.weight(WIDTH, WIDTH)))
        h = g.add("Relu", g.add("MatMul", normed(g, x), g.weight(WIDTH, 2 * WIDTH)))
        x = g.add("Add", x, g.add("MatMul", h, g.weight(2 * WIDTH, WIDTH)))
    g.add("MatMul", normed(g, x), g.weight(WIDTH, VOCABULARY), outputs=["logits"])
    kind = TensorProto.FLOAT
    ids = ("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
    pasts = [(before, kind, ["batch_size", shared, "past_sequence_length", HEAD]) for before, _ in states]
    total = "past_sequence_length + sequence_length"
    presents = [(after, kind, ["batch_size", shared, total, HEAD]) for _, after in states]
    logits = ("logits", kind, ["batch_size", "sequence_length", VOCABULARY])
    return g.model([ids, *pasts], [logits, *presents])


def stacked_cache(seed=4):
    """A block with one cache of keys and values together, [2, batch, heads, past, size], taken apart and put together
    again: as GPT-2 was exported for years."""
    g = Graph(seed)
    past = g.add("Gather", g.add("Shape", "past_0"), g.constant([3]))
    tokens = g.add("Gather", g.add("Shape", "x"), g.constant([1]))
    q, *new = (heads_of(g, g.add("MatMul", "x", g.weight(WIDTH, WIDTH)), HEADS) for _ in range(3))
    both = [g.add("Concat", g.add("Gather", "past_0", g.constant(k), axis=0), n, axis=2) for k, n in enumerate(new)]
    g.add("Concat", *(g.add("Unsqueeze", b, g.constant([0])) for b in both), axis=0, outputs=["present_0"])
    g.add("MatMul", attended(g, q, *both, tokens, past), g.weight(WIDTH, WIDTH), outputs=["y"])
    kind = TensorProto.FLOAT
    x, y = (("batch", "tokens", WIDTH) for _ in range(2))
    return g.model(
        [("x", kind, x), ("past_0", kind, [2, "batch", HEADS, "past", HEAD])],
        [("y", kind, y), ("present_0", kind, [2, "batch", HEADS, "past + tokens", HEAD])],
    )


def fixed_cache(operator, length=64, seed=5):
    """A block with a cache of fixed length, to which it writes the new row at a place that is an input."""
    g = Graph(seed)
    q, *new = (heads_of(g, g.add("MatMul", "x", g.weight(WIDTH, WIDTH)), HEADS) for _ in range(3))
    caches = []
    for what, rows in zip(("key", "value"), new, strict=True):
        if operator == "TensorScatter":
            caches.append(g.add(operator, f"past_{what}", rows, "place", axis=2, outputs=[f"present_{what}"]))
            continue
        heads = g.add("Unsqueeze", g.constant(np.arange(HEADS)), g.constant([1]))
        place = g.add("Expand", g.add("Reshape", "place", g.constant([1, 1])), g.constant([HEADS, 1]))
        indices = g.add("Concat", g.constant(np.zeros((HEADS, 1))), heads, place, axis=1)
        update = g.add("Reshape", rows, g.constant([HEADS, HEAD]))
        caches.append(g.add("ScatterND", f"past_{what}", indices, update, outputs=[f"present_{what}"]))
    seen = g.add("LessOrEqual", g.constant(np.arange(length)), g.add("Reshape", "place", g.constant([1])))
    mask = g.add("Where", seen, g.constant(0, np.float32), g.constant(-1e9, np.float32))
    scores = g.add("Add", g.add("MatMul", q, g.add("Transpose", caches[0], perm=[0, 1, 3, 2])), mask)
    mixed = g.add("MatMul", g.add("Softmax", scores, axis=-1), caches[1])
    g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant([0, 0, WIDTH]), outputs=["y"])
    kind, cache = TensorProto.FLOAT, [1, HEADS, length, HEAD]
    inputs = [("x", kind, [1, 1, WIDTH]), ("place", TensorProto.INT64, [1])]
    inputs += [(f"past_{what}", kind, cache) for what in ("key", "value")]
    outputs = [("y", kind, [1, 1, WIDTH]), *((f"present_{what}", kind, cache) for what in ("key", "value"))]
    return g.model(inputs, outputs, 24 if operator == "TensorScatter" else 17)


def voice_detector(seed=6, hidden=32):
    """An LSTM whose states are inputs and outputs, as detectors of voices have them."""
    g = Graph(seed)
    x = g.add("Unsqueeze", g.add("Relu", g.add("MatMul", "input", g.weight(64, hidden))), g.constant([0]))
    weights = [g.weight(1, 4 * hidden, hidden) for _ in range(2)]
    names = ["hs", "hn", "cn"]
    g.add("LSTM", x, *weights, "", "", "h", "c", hidden_size=hidden, outputs=names)
    last = g.add("Squeeze", "hs", g.constant([0, 1]))
    g.add("Sigmoid", g.add("MatMul", last, g.weight(hidden, 1)), outputs=["output"])
    kind, state = TensorProto.FLOAT, [1, "batch", hidden]
    inputs = [("input", kind, ["batch", 64]), ("h", kind, state), ("c", kind, state)]
    return g.model(inputs, [("output", kind, ["batch", 1]), ("hn", kind, state), ("cn", kind, state)])


class ByHand:
    """onnxruntime on a model, with the states handed from run to run; ``pairs`` are outputs with inputs."""

    def __init__(self, model, pairs, first):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        self._pairs, self.states = pairs, dict(first)
        self._names = [output.name for output in self._session.get_outputs()]

    def __call__(self, **inputs):
        found = dict(zip(self._names, self._session.run(None, {**inputs, **self.states}), strict=True))
        for output, name in self._pairs.items():
            self.states[name] = found.pop(output)
        return found
