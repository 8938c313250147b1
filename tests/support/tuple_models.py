"""Models in which tuples go from operator to operator, checked against numpy: run by ``test_tuples.py`` in a process of
its own, since a kernel that is given too few addresses may end it.

``python tuple_models.py`` prints ``name: ok``, or what went wrong, for each model.
"""

import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.flatten_tuples import flatten_tuples
from loopwright.graph import Function, Tuple, TupleGet, TupleType, Var, tensor_type
from loopwright.graph.types import leaf_types
from loopwright.ops.definition.registry import Op, OpPattern, register_op
from loopwright.ops.definition.strategy import register_compute

TARGET = "x86-64"
PATTERNS = OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OUT_ELEMENTWISE_FUSABLE, OpPattern.OPAQUE
SHAPE = (3, 8)
T = tensor_type(SHAPE, "float32")
x, y = lw.var("x", SHAPE), lw.var("y", SHAPE)
RNG = np.random.default_rng(0)
X, Y, C = (RNG.standard_normal(SHAPE).astype(np.float32) for _ in range(3))


def make_ops(pattern: OpPattern) -> tuple[Op, Op, Op]:
    """``parts(x)`` is (x + 1, (-x, x / 2)), ``weigh((a, (b, c)))`` is a - 2 b + 3 c, ``swap((a, b))`` is (b, a),
    whatever these are."""
    name = pattern.name.lower()
    parts = register_op(
        f"tuples.parts_{name}",
        "",
        [("x", "")],
        lambda types, attrs: TupleType((types[0], TupleType((types[0], types[0])))),
        pattern,
    )

    def compute_parts(attrs, inputs, result):
        (given,) = inputs
        functions = (lambda *i: given[i] + 1.0), (lambda *i: -given[i]), (lambda *i: given[i] * 0.5)
        return tuple(te.compute(given.shape, f, name=f"part{k}") for k, f in enumerate(functions))

    register_compute(parts, compute_parts)
    weigh = register_op(f"tuples.weigh_{name}", "", [("t", "")], lambda types, attrs: types[0].fields[0], pattern)

    def compute_weigh(attrs, inputs, result):
        a, b, c = inputs
        return te.compute(a.shape, lambda *i: a[i] - b[i] * 2.0 + c[i] * 3.0, name="weigh")

    register_compute(weigh, compute_weigh)
    swap = register_op(
        f"tuples.swap_{name}", "", [("t", "")], lambda types, attrs: TupleType(types[0].fields[::-1]), pattern
    )

    def compute_swap(attrs, inputs, result):
        first = len(leaf_types(result.fields[-1]))
        swapped = (*inputs[first:], *inputs[:first])
        return tuple(te.compute(t.shape, lambda *i, t=t: t[i], name=f"out{k}") for k, t in enumerate(swapped))

    register_compute(swap, compute_swap)
    return parts, weigh, swap


OPS = {pattern: make_ops(pattern) for pattern in PATTERNS}


def same(found, expected):
    assert len(found) == len(expected), (len(found), len(expected))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def check(function, arrays, expected, thorough=True):
    """The model as compiled; if thorough, also as saved and loaded again, compiled in other ways, and in texts."""
    library = lw.compile(function, target=TARGET, jobs=1)
    engine = lw.Engine(library, threads=1)
    same(engine(arrays), expected)
    if not thorough:
        return library
    same(engine({spec.name: a for spec, a in zip(library.inputs, arrays, strict=True)}), expected)
    same(engine.bind(arrays)(), expected)
    assert len(engine.time_steps(arrays)) == len(library.model.steps)
    with tempfile.TemporaryDirectory() as folder:
        library.save(Path(folder) / "model.lwlib")
        same(lw.Engine(lw.load(Path(folder) / "model.lwlib"), threads=1)(arrays), expected)
    same(lw.Engine(lw.compile(function, target=TARGET, jobs=1, layouts="keep", precision="strict"))(arrays), expected)
    unfused = [op.name for ops in OPS.values() for op in ops]
    same(lw.Engine(lw.compile(function, target=TARGET, jobs=1, unfused=unfused))(arrays), expected)
    for stage in ("graph", "te", "loop", "mlir", "llvm"):
        assert all(part.text for part in lw.dump(function, stage, target=TARGET)), stage
    assert str(lw.explain(function, target=TARGET)).startswith("for x86-64")
    assert "tuple operator" not in str(lw.fusion_report(function, target=TARGET))
    flat = flatten_tuples(function)
    assert flatten_tuples(flat) is flat
    return library


def a_result_goes_whole_to_the_next():
    for first in PATTERNS:
        for second in PATTERNS:
            parts, weigh = OPS[first][0], OPS[second][1]
            function = Function([x], lw.nn.relu(weigh(parts(lw.nn.negative(x)))))
            library = lw.compile(function, target=TARGET, jobs=1)
            expected = np.maximum((1 - X) - 2 * X + 3 * (-X / 2), 0)
            same(lw.Engine(library, threads=1)([X]), [expected])
    check(function, [X], [expected])


def a_tuple_of_inputs_and_constants_and_results():
    for pattern in PATTERNS:
        weigh = OPS[pattern][1]
        given = Tuple((x, Tuple((lw.const(C), lw.nn.exp(y)))))
        check(Function([x, y], weigh(given)), [X, Y], [X - 2 * C + 3 * np.exp(Y)], pattern is OpPattern.OPAQUE)


def the_same_member_twice():
    for pattern in PATTERNS:
        parts, weigh, _ = OPS[pattern]
        check(Function([x], weigh(Tuple((x, Tuple((x, x)))))), [X], [2 * X], pattern is OpPattern.OPAQUE)
        twice = TupleGet(TupleGet(parts(x), 1), 0)
        check(
            Function([x], weigh(Tuple((twice, Tuple((x, twice)))))),
            [X],
            [-X - 2 * X - 3 * X],
            pattern is OpPattern.OPAQUE,
        )


def a_parameter_that_is_a_tuple():
    pair = Var("p", TupleType((T, TupleType((T, T)))))
    for pattern in PATTERNS:
        weigh = OPS[pattern][1]
        library = check(
            Function([pair, x], lw.nn.add(weigh(pair), x)),
            [X, Y, C, X],
            [2 * X - 2 * Y + 3 * C],
            pattern is OpPattern.OPAQUE,
        )
        assert [spec.name for spec in library.inputs] == ["p.0", "p.1.0", "p.1.1", "x"]


def names_of_members_give_way():
    pair, other = Var("p", TupleType((T, T))), lw.var("p.1", SHAPE)
    body = lw.nn.subtract(lw.nn.add(TupleGet(pair, 0), TupleGet(pair, 1)), other)
    library = check(Function([pair, other], body), [X, Y, C], [X + Y - C])
    assert [spec.name for spec in library.inputs] == ["p.0", "p.1_", "p.1"]


def a_parameter_of_symbolic_shape():
    n = te.var("n")
    open_type = tensor_type((n, 8), "float32")
    pair = Var("p", TupleType((open_type, TupleType((open_type, open_type)))))
    for pattern in PATTERNS:
        function = Function([pair], OPS[pattern][1](pair))
        check(function, [X, Y, C], [X - 2 * Y + 3 * C], pattern is OpPattern.OPAQUE)
        fixed = lw.compile(function, target=TARGET, jobs=1, shapes={"p.0": SHAPE, "p.1.0": SHAPE, "p.1.1": SHAPE})
        assert fixed.inputs[0].shape == SHAPE
        same(lw.Engine(fixed, threads=1)([X, Y, C]), [X - 2 * Y + 3 * C])


def tuples_as_results():
    for pattern in PATTERNS:
        both = OPS[pattern][0](x)
        expected = [X + 1, -X, X / 2]
        check(Function([x], both), [X], expected, pattern is OpPattern.OPAQUE)
        inner = TupleGet(both, 1)
        check(Function([x], Tuple((inner, x, both))), [X], [-X, X / 2, X, *expected], pattern is OpPattern.OPAQUE)
        check(Function([x], Tuple((TupleGet(inner, 1), inner))), [X], [X / 2, -X, X / 2], pattern is OpPattern.OPAQUE)
        used = lw.nn.relu(TupleGet(inner, 0))
        check(
            Function([x], Tuple((used, both, lw.const(C)))),
            [X],
            [np.maximum(-X, 0), *expected, C],
            pattern is OpPattern.OPAQUE,
        )


def names_of_results():
    both = OPS[OpPattern.OPAQUE][0](x)
    body = Tuple((both, x))
    for given, expected in (
        ((), ["output0", "output1", "output2", "output3"]),
        (("both", "x"), ["both.0", "both.1.0", "both.1.1", "x"]),
        (("a", "b", "c", "d"), ["a", "b", "c", "d"]),
    ):
        library = lw.compile(Function([x], body, output_names=given), target=TARGET, jobs=1)
        assert [spec.name for spec in library.outputs] == expected


def operators_that_give_and_take_tuples_in_a_chain():
    for pattern in PATTERNS:
        parts, weigh, swap = OPS[pattern]
        swapped = swap(swap(parts(x)))
        inner = swap(TupleGet(swapped, 1))
        body = lw.nn.add(weigh(swapped), TupleGet(inner, 0))
        check(Function([x], body), [X], [(X + 1) + 2 * X + 1.5 * X + X / 2], pattern is OpPattern.OPAQUE)


def tuples_made_and_taken_apart_in_the_graph():
    nested = Tuple((Tuple((x, lw.nn.exp(y))), lw.const(C)))
    first = TupleGet(TupleGet(nested, 0), 1)
    body = Tuple((lw.nn.add(first, TupleGet(nested, 1)), TupleGet(nested, 0)))
    check(Function([x, y], body), [X, Y], [np.exp(Y) + C, X, np.exp(Y)])


def concatenations_of_tuples():
    both = OPS[OpPattern.OPAQUE][0](x)
    check(Function([x], lw.nn.concatenate(both, axis=1)), [X], [np.concatenate([X + 1, -X, X / 2], 1)])
    given = lw.nn.concatenate([x, TupleGet(both, 1), Tuple((x, lw.const(C)))], axis=0)
    check(Function([x], given), [X], [np.concatenate([X, -X, X / 2, X, C])])
    halves = lw.nn.split(x, [3, 5], axis=1)
    check(Function([x], lw.nn.concatenate(Tuple(halves[::-1]), axis=1)), [X], [np.concatenate([X[:, 3:], X[:, :3]], 1)])
    pair = Var("p", TupleType((T, T)))
    check(Function([pair], lw.nn.concatenate(pair)), [X, Y], [np.concatenate([X, Y])])
    check(Function([pair], lw.nn.einsum("ij,ij->i", pair)), [X, Y], [np.einsum("ij,ij->i", X, Y)])


def what_depends_on_constants_is_folded():
    for pattern in PATTERNS:
        parts, weigh, swap = OPS[pattern]
        folded = weigh(swap(swap(parts(lw.const(C)))))
        expected = (C + 1) + 2 * C + 1.5 * C
        library = check(Function([x], lw.nn.add(x, folded)), [X], [X + expected], pattern is OpPattern.OPAQUE)
        assert [library.model.function_of(step).name for step in library.model.steps] == ["fused_add"]
        check(Function([x], Tuple((x, parts(lw.const(C))))), [X], [X, C + 1, -C, C / 2], pattern is OpPattern.OPAQUE)


def tuples_between_functions_of_python():
    def forward(a, b, c, result, factor):
        result[...] = a + factor * b - c

    lw.register_func("tuples.forward", forward)
    both = OPS[OpPattern.OPAQUE][0](x)
    called = lw.nn.extern("tuples.forward", both, options={"factor": 4})
    check(
        Function([x], OPS[OpPattern.BROADCAST][1](Tuple((called, Tuple((x, called)))))),
        [X],
        [4 * (1 - 3.5 * X) - 2 * X],
    )


def tuples_beside_products():
    w = lw.const(RNG.standard_normal((8, 8)).astype(np.float32))
    for pattern in PATTERNS:
        both = OPS[pattern][0](lw.nn.matmul(x, w))
        body = lw.nn.matmul(OPS[pattern][1](both), w)
        product = X @ w.value
        check(
            Function([x], body),
            [X],
            [((product + 1) + 2 * product + 1.5 * product) @ w.value],
            pattern is OpPattern.OPAQUE,
        )


def tuples_among_layouts():
    image = lw.var("image", (1, 16, 12, 12))
    given = RNG.standard_normal((1, 16, 12, 12)).astype(np.float32)
    w = lw.const(RNG.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12)
    convolved = lw.nn.conv2d(image, w, padding=(1, 1, 1, 1))
    plain = lw.Engine(lw.compile(Function([image], convolved), target=TARGET, jobs=1, layouts="keep"))([given])[0]
    for pattern in PATTERNS:
        parts, weigh, _ = OPS[pattern]
        body = lw.nn.relu(weigh(parts(lw.nn.relu(convolved))))
        positive = np.maximum(plain, 0)
        check(
            Function([image], body),
            [given],
            [np.maximum(positive + 1 + 2 * positive + 1.5 * positive, 0)],
            pattern is OpPattern.OPAQUE,
        )


def compiled_by_other_implementations_and_by_workers():
    both = OPS[OpPattern.OPAQUE][0](lw.nn.matmul(x, lw.const(np.eye(8, dtype=np.float32))))
    function = Function([x], Tuple((OPS[OpPattern.OPAQUE][1](both), both)))
    library = lw.compile(function, target=TARGET, jobs=1, alternatives=True)
    same(lw.Engine(library, threads=1)([X]), [X + 1 + 3.5 * X, X + 1, -X, X / 2])
    profile = lw.Engine(library, threads=1).profile([X])
    assert len(profile.steps) == len(library.model.steps)


def exported_to_c():
    pair = Var("p", TupleType((T, TupleType((T, T)))))
    both = OPS[OpPattern.OPAQUE][0](OPS[OpPattern.OPAQUE][1](pair))
    library = lw.compile(Function([pair], both, output_names=("q", "r")), target=TARGET, jobs=1)
    with tempfile.TemporaryDirectory() as folder:
        header = library.export(folder, "object", "tuples").header.read_text()
    given = ", ".join(f"const float *{name}" for name in ("p_0", "p_1_0", "p_1_1"))
    assert f"tuples_run(tuples_context *context, {given}, float *q, float *r_0, float *r_1)" in header, header


MODELS = {
    name: made
    for name, made in list(globals().items())
    if callable(made) and getattr(made, "__code__", None) is not None and made.__code__.co_argcount == 0
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        try:
            MODELS[name]()
        except BaseException:
            sys.stdout.write(f"{name}: {traceback.format_exc()}\0")
        else:
            sys.stdout.write(f"{name}: ok\0")
        sys.stdout.flush()
