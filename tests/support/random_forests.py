"""Random trees as the attributes of ONNX's tree ensembles, and an oracle that walks them node by node."""

from collections import defaultdict

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
ASK = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
    "BRANCH_MEMBER": lambda x, values: x in values,
}
BOUNDS = [-np.inf, -1.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf]
"""Few, so that rows meet them exactly."""


def nodes_of(rng, trees, depth, features, modes=MODES, missing=True, fill=0.8):
    """Nodes as dicts, tree by tree: the root first, which is node 0, and the others in no order."""
    return [node for tree in range(trees) for node in tree_of(rng, tree, depth, features, modes, missing, fill)]


def tree_of(rng, tree, depth, features, modes, missing, fill):
    made, waiting, count = [], [(0, 0)], 1
    while waiting:
        number, level = waiting.pop()
        node = {"tree": tree, "id": number, "feature": 0, "mode": "LEAF", "bound": 0.0, "missing": 0}
        if level < depth and (level == 0 or rng.random() < fill):
            yes, no = count, count + 1
            count += 2
            waiting += [(yes, level + 1), (no, level + 1)]
            node |= {"yes": yes, "no": no, "mode": str(rng.choice(modes)), "bound": float(rng.choice(BOUNDS))}
            node |= {"feature": int(rng.integers(features)), "missing": int(missing and rng.random() < 0.5)}
        made.append(node)
    names = [0, *(rng.permutation(count - 1) + 1)]
    for node in made:
        node |= {key: int(names[node[key]]) for key in ("id", "yes", "no") if key in node}
    return [made[0], *(made[k + 1] for k in rng.permutation(count - 1))]


def asked_in_turn(rng, nodes, most):
    """The trees, where each node that asks for equality is followed by up to so many that ask for other values, and
    lead to the same node: what converters make of sets of categories."""
    made = []
    for tree in sorted({node["tree"] for node in nodes}):
        own = [dict(node) for node in nodes if node["tree"] == tree]
        for node in [node for node in own if node["mode"] == "BRANCH_EQ"]:
            last, end = node, node["no"]
            for _ in range(rng.integers(most + 1)):
                missing = int(rng.random() < 0.2)
                new = {**node, "id": len(own), "bound": float(rng.choice(BOUNDS)), "missing": missing}
                last["no"] = new["id"]
                own.append(new)
                last = new
            last["no"] = end
        made += own
    return made


def leaves_of(rng, nodes, targets, per_leaf, low=-1.0, high=1.0):
    """(tree, node, target, weight): each leaf gives some targets, or those of its tree alone (None), weights."""
    made = []
    for node in nodes:
        if node["mode"] == "LEAF":
            chosen = [node["tree"] % targets] if per_leaf is None else rng.permutation(targets)[:per_leaf]
            made += [(node["tree"], node["id"], int(k), float(np.float32(rng.uniform(low, high)))) for k in chosen]
    return made


def attributes(nodes, leaves, prefix, kind=np.float32):
    """The attributes of versions 1 to 3; bounds and weights of float64 are tensors."""
    bounds, weights = [n["bound"] for n in nodes], [leaf[3] for leaf in leaves]
    if kind is np.float32:
        reals = {"nodes_values": bounds, f"{prefix}_weights": weights}
    else:
        named = (("nodes_values", bounds), (f"{prefix}_weights", weights))
        reals = {f"{n}_as_tensor": numpy_helper.from_array(np.array(v, kind), n) for n, v in named}
    return reals | {
        "nodes_treeids": [n["tree"] for n in nodes],
        "nodes_nodeids": [n["id"] for n in nodes],
        "nodes_featureids": [n["feature"] for n in nodes],
        "nodes_modes": [n["mode"] for n in nodes],
        "nodes_missing_value_tracks_true": [n["missing"] for n in nodes],
        "nodes_truenodeids": [n.get("yes", 0) for n in nodes],
        "nodes_falsenodeids": [n.get("no", 0) for n in nodes],
        f"{prefix}_treeids": [leaf[0] for leaf in leaves],
        f"{prefix}_nodeids": [leaf[1] for leaf in leaves],
        f"{prefix}_ids": [leaf[2] for leaf in leaves],
    }


def indexed_attributes(nodes, leaves, kind=np.float32):
    """The attributes of version 5, in which a leaf gives one target a weight."""
    inner = {(n["tree"], n["id"]): k for k, n in enumerate(n for n in nodes if n["mode"] != "LEAF")}
    numbers = {leaf[:2]: k for k, leaf in enumerate(leaves)}
    branches = [n for n in nodes if n["mode"] != "LEAF"]
    sets = [v for n in branches if n["mode"] == "BRANCH_MEMBER" for v in (*n["bound"], np.nan)]

    def tensor(values, dtype, name):
        return numpy_helper.from_array(np.array(values, dtype), name)

    made = {
        "tree_roots": [k for (_, number), k in inner.items() if number == 0],
        "nodes_featureids": [n["feature"] for n in branches],
        "nodes_modes": tensor([[*ASK].index(n["mode"]) for n in branches], np.uint8, "modes"),
        "nodes_splits": tensor([0 if n["mode"] == "BRANCH_MEMBER" else n["bound"] for n in branches], kind, "splits"),
        "nodes_missing_value_tracks_true": [n["missing"] for n in branches],
        "leaf_targetids": [leaf[2] for leaf in leaves],
        "leaf_weights": tensor([leaf[3] for leaf in leaves], kind, "weights"),
    }
    for side, name in (("yes", "true"), ("no", "false")):
        at = [(n["tree"], n[side]) for n in branches]
        made[f"nodes_{name}leafs"] = [int(key in numbers) for key in at]
        made[f"nodes_{name}nodeids"] = [numbers[key] if key in numbers else inner[key] for key in at]
    return made | ({"membership_values": tensor(sets, kind, "sets")} if sets else {})


def scores(nodes, leaves, x, targets, fold="SUM"):
    """What the leaves that each row reaches give, in float64: a node at a time."""
    at = {(n["tree"], n["id"]): n for n in nodes}
    given = defaultdict(list)
    for tree, number, target, weight in leaves:
        given[tree, number].append((target, weight))
    made = np.zeros((len(x), targets))
    for row, result in zip(x, made, strict=True):
        found = defaultdict(list)
        for tree in sorted({n["tree"] for n in nodes}):
            node = at[tree, 0]
            while node["mode"] != "LEAF":
                value = row[node["feature"]]
                yes = ASK[node["mode"]](value, node["bound"]) or (node["missing"] and np.isnan(value))
                node = at[tree, node["yes" if yes else "no"]]
            for target, weight in given[tree, node["id"]]:
                found[target].append(weight)
        for target, weights in found.items():
            result[target] = {"MIN": min, "MAX": max}.get(fold, sum)(weights)
    return made / len({n["tree"] for n in nodes}) if fold == "AVERAGE" else made


def model_of(op, version, attrs, columns, outputs=("y",), kind=TensorProto.FLOAT, rows="n"):
    """A model of one node of ai.onnx.ml; outputs whose names begin with "label" are integers, and all others floats."""
    node = helper.make_node(op, ["x"], list(outputs), domain="ai.onnx.ml", **attrs)
    kinds = [TensorProto.INT64 if name.startswith("label") else TensorProto.FLOAT for name in outputs]
    values = [helper.make_tensor_value_info(name, k, None) for name, k in zip(outputs, kinds, strict=True)]
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info("x", kind, [rows, columns])], values)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def rows_of(rng, rows, columns, kind=np.float32):
    """Rows that meet bounds exactly, are infinite, and have NaN."""
    x = rng.choice([*BOUNDS, -0.25, 0.75, np.nan], (rows, columns))
    return x.astype(kind)
