"""Random loops of ONNX models over vectors of numbers and strings that change their length, with what numpy makes of
them, iteration by iteration."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from draw import Draw
from onnx import TensorProto, helper

FLOAT, INT, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
LONGEST = {FLOAT: 40, STRING: 6}
"""What iterations hand on is cut to so many elements."""
PIECES = ("", "a", "bé", "ñ", "xyz")


def info(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def strings(*values):
    return np.array(values, object)


@dataclass(eq=False)
class Body:
    """The nodes of a body, and a function of numpy for each value: of the iteration and the carried ones. Mutable."""

    draw: Draw
    prefix: str
    nodes: list = field(default_factory=list)
    pool: dict = field(default_factory=lambda: {FLOAT: [], STRING: []})

    def name(self):
        return f"{self.prefix}v{len(self.nodes)}"

    def add(self, op, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name := self.name()], **attributes))
        return name

    def constant(self, value):
        return self.add("Constant", [], value=onnx.numpy_helper.from_array(np.asarray(value)))

    def pick(self, kind):
        return self.draw.one(*self.pool[kind])

    def begun(self, value, most):
        """The first ``most`` elements, or as many as there were iterations."""
        (name, of), by_count = value, self.draw.chance(0.3)
        if by_count:
            end = self.add("Reshape", [f"{self.prefix}i", self.constant(np.array([1]))])
        else:
            end = self.constant(np.array([most]))
        made = self.add("Slice", [name, self.constant(np.array([0])), end])
        return made, lambda i, state: of(i, state)[: i if by_count else most]

    def joined(self, a, b):
        return self.add("Concat", [a[0], b[0]], axis=0), lambda i, s: np.concatenate([a[1](i, s), b[1](i, s)])

    def floats(self):
        """A vector of numbers that is made of others."""
        a = self.pick(FLOAT)
        match self.draw.one("joined", "begun", "chosen", "scaled"):
            case "joined":
                return self.joined(a, self.pick(FLOAT))
            case "begun":
                return self.begun(a, self.draw.int(0, 9))
            case "chosen":
                above = self.add("Greater", [a[0], self.constant(np.float32(0.1))])
                name = self.add("Compress", [a[0], above], axis=0)
                return name, lambda i, s: (v := a[1](i, s))[v > np.float32(0.1)]
        name = self.add("Mul", [a[0], self.constant(np.float32(-0.5))])
        return name, lambda i, s: a[1](i, s) * np.float32(-0.5)

    def texts(self):
        """A vector of strings that is made of others."""
        a, piece = self.pick(STRING), self.draw.one(*PIECES)
        match self.draw.one("joined", "begun", "longer", "doubled", "numbered"):
            case "joined":
                return self.joined(a, self.pick(STRING))
            case "begun":
                return self.begun(a, self.draw.int(0, 3))
            case "longer":
                part = self.add("Constant", [], value_string=piece)
                return self.add("StringConcat", [part, a[0]]), lambda i, s: np.array(piece, object) + a[1](i, s)
            case "doubled":
                return self.add("StringConcat", [a[0], a[0]]), lambda i, s: a[1](i, s) * 2
        number = self.add("Cast", [f"{self.prefix}i"], to=STRING)
        return self.add("StringConcat", [a[0], number]), lambda i, s: a[1](i, s) + np.array(str(i), object)

    def value(self, kind):
        """A value of some steps, each of which the next may read."""
        for _ in range(self.draw.int(1, 3)):
            self.pool[kind].append(self.floats() if kind == FLOAT else self.texts())
        return self.begun(self.pool[kind][-1], LONGEST[kind])


@dataclass(eq=False)
class RandomLoop:
    """A model, what it is fed in some calls, and what it gives; the ``operators`` of the body."""

    model: onnx.ModelProto
    feeds: list
    expected: list
    operators: set


def random_loop(seed):
    """A loop of a seed: of as many iterations as a run says, until a condition ends it, in a branch, or in another
    loop."""
    draw = Draw(seed)
    kinds = [draw.one(FLOAT, STRING) for _ in range(draw.int(1, 3))]
    body = Body(draw, "in_")
    for k, kind in enumerate(kinds):
        body.pool[kind].append((f"in_s{k}", lambda i, state, k=k: state[k]))
    body.pool[FLOAT].append(("x", lambda i, state: feeds["x"]))
    body.pool[STRING].append(("z", lambda i, state: feeds["z"]))
    handed = [body.value(kind) for kind in kinds]
    total = body.add("ReduceSum", [handed[0][0]], keepdims=0) if kinds[0] == FLOAT else body.add("Size", [handed[0][0]])
    conditional, around = draw.chance(0.4), draw.one("nothing", "branch", "loop")
    if conditional:
        following = body.add("Add", ["in_i", body.constant(np.array(1))])
        body.add("Less", [following, "limit"])
    else:
        body.add("Identity", ["in_c"])
    again = body.nodes[-1].output[0]
    given = [
        info("in_i", INT, []),
        info("in_c", BOOL, []),
        *(info(f"in_s{k}", kind, [None]) for k, kind in enumerate(kinds)),
    ]
    results = [
        info(again, BOOL, []),
        *(info(name, kind, [None]) for (name, _), kind in zip(handed, kinds, strict=True)),
    ]
    results.append(info(total, FLOAT if kinds[0] == FLOAT else INT, []))
    graph = helper.make_graph(body.nodes, "body", given, results)
    firsts = ["x" if kind == FLOAT else "z" for kind in kinds]
    outputs, wraps = [f"y{k}" for k in range(len(kinds))], around == "loop"
    carried = [f"out_s{k}" for k in range(len(kinds))] if wraps else firsts
    last = [f"out_y{k}" for k in range(len(kinds))] if wraps else outputs
    nodes = [helper.make_node("Loop", ["m", "yes", *carried], [*last, "rows"], body=graph)]
    if wraps:
        nodes[0].output[-1] = ""
        nodes.append(helper.make_node("Identity", ["out_c"], ["out_again"]))
        parts = [
            info("out_i", INT, []),
            info("out_c", BOOL, []),
            *(info(n, k, [None]) for n, k in zip(carried, kinds, strict=True)),
        ]
        ends = [info("out_again", BOOL, []), *(info(n, k, [None]) for n, k in zip(last, kinds, strict=True))]
        outer = helper.make_graph(nodes, "outer", parts, ends)
        nodes = [helper.make_node("Loop", ["turns", "yes", *firsts], outputs, body=outer)]
    if around == "branch":
        then = helper.make_graph(nodes, "then", [], [info(n, k, [None]) for n, k in zip(outputs, kinds, strict=True)])
        same = [helper.make_node("Identity", [first], [f"same{k}"]) for k, first in enumerate(firsts)]
        otherwise = helper.make_graph(
            same, "else", [], [info(f"same{k}", kind, [None]) for k, kind in enumerate(kinds)]
        )
        nodes = [helper.make_node("If", ["taken"], outputs, then_branch=then, else_branch=otherwise)]
    stacks = around == "nothing"
    shown = [info(name, kind, [None]) for name, kind in zip(outputs, kinds, strict=True)]
    if stacks:
        shown.append(info("rows", FLOAT if kinds[0] == FLOAT else INT, [None]))
    inputs = [info("m", INT, []), info("limit", INT, []), info("turns", INT, []), info("taken", BOOL, [])]
    inputs += [info("x", FLOAT, ["n"]), info("z", STRING, ["p"])]
    yes = onnx.numpy_helper.from_array(np.array(True), "yes")
    proto = helper.make_graph(nodes, "loop", inputs, shown, [yes])
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    calls, wanted, feeds = [], [], {}
    for m in (0, 1, 2, draw.int(3, 5)):
        feeds = {
            "m": np.array(m),
            "limit": np.array(draw.int(1, 5)),
            "turns": np.array(draw.int(0, 3)),
            "taken": np.array(draw.chance(0.7)),
            "x": draw.rng.uniform(-1, 1, draw.int(0, 7)).astype(np.float32),
            "z": strings(*(draw.one(*PIECES) for _ in range(draw.int(0, 3)))),
        }
        state, rows = [feeds[first] for first in firsts], []
        rounds = int(feeds["turns"]) if wraps else int(feeds["taken"]) if around == "branch" else 1
        for _ in range(rounds):
            for i in range(m):
                state = [of(i, state) for _, of in handed]
                rows.append(state[0].sum(dtype=np.float32) if kinds[0] == FLOAT else np.int64(state[0].size))
                if conditional and not i + 1 < feeds["limit"]:
                    break
        calls.append(feeds)
        wanted.append([*state, *([np.array(rows)] if stacks else [])])
    return RandomLoop(model, calls, wanted, {node.op_type for node in body.nodes})
