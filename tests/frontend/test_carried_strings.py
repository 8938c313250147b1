"""Strings that loops, branches and sequences of control flow carry, capture and stack."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, parser
from onnx.reference import ReferenceEvaluator

import loopwright as lw

WORDS = ["cat", "dög", "", "emu", "x" * 300]


def text(*values, shape=None):
    found = np.array(values, object)
    return found if shape is None else found.reshape(shape)


def model_of(source):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{source}')
    checker.check_model(model)
    return model


def check(source, *calls, expected=None):
    """Each call gives what onnx's own evaluator gives, from one compilation; where that mistakes constants of strings,
    what a function in Python gives."""
    model = model_of(source)
    engine = lw.Engine(lw.compile(model, jobs=1))
    reference = ReferenceEvaluator(model) if expected is None else None
    for given in calls:
        wanted = reference.run(None, given) if expected is None else expected(**given)
        for name, want, found in zip((o.name for o in model.graph.output), wanted, engine(given), strict=True):
            lists = [each if isinstance(each, list) else [each] for each in (want, found)]
            assert [np.asarray(each).tolist() for each in lists[0]] == [each.tolist() for each in lists[1]], name


def trips(n, **given):
    return {"n": np.array(n), **given}


def selected(n, x, z, c):
    rows = np.empty((n, len(x)), object)
    for i in range(n):
        x = rows[i] = np.where(c, z, x) if i % 2 == 0 else np.full_like(x, "ü")
    return x, rows


def test_a_loop_selects_strings_of_itself_of_others_and_constants():
    check(
        """g (int64 n, string[m] x, string[m] z, bool[m] c) => (string[m] y, string[k, m] rows) {
            yes = Constant <value = bool {1}> ()
            y, rows = Loop (n, yes, x) <body = b (int64 i, bool go, string[m] s)
                    => (bool on, string[m] t, string[m] row) {
                on = Identity (go)
                u = Constant <value_string = "ü"> ()
                two = Constant <value_int = 2> ()
                odd = Mod (i, two)
                is_odd = Cast <to = 9> (odd)
                other = Where (c, z, s)
                t = Where (is_odd, u, other)
                row = Identity (t)
            }>
        }""",
        *(
            trips(n, x=text(*WORDS), z=text("é", "b", "cc", "", "d"), c=np.array([True, False, True, True, False]))
            for n in (0, 1, 3, 2)
        ),
        expected=selected,
    )


def test_strings_take_the_place_of_each_other():
    check(
        """g (int64 n, string[m] x, string z) => (string[m] y, string w) {
            yes = Constant <value = bool {1}> ()
            y, w = Loop (n, yes, x, z) <body = b (int64 i, bool go, string[m] s, string t)
                    => (bool on, string[m] after, string last) {
                on = Identity (go)
                zero = Constant <value = int64[1] {0}> ()
                first = Constant <value = int64 {0}> ()
                last = Gather <axis = 0> (s, first)
                row = Unsqueeze (t, zero)
                many = Constant <value = int64[1] {9223372036854775807}> ()
                start = Constant <value = int64[1] {1}> ()
                all = Concat <axis = 0> (s, row)
                after = Slice (all, start, many)
            }>
        }""",
        *(trips(n, x=text(*WORDS), z=np.array("new", object)) for n in (0, 1, 4, 7)),
        trips(3, x=text("ä"), z=np.array("", object)),
    )


def test_a_vector_of_strings_grows():
    check(
        """g (int64 n, string[m] x, string[p] z) => (string[k] y) {
            yes = Constant <value = bool {1}> ()
            y = Loop (n, yes, x) <body = b (int64 i, bool go, string[a] s) => (bool on, string[c] t) {
                on = Identity (go)
                t = Concat <axis = 0> (z, s)
            }>
        }""",
        *(trips(n, x=text("a", "bé"), z=text(*z)) for n in (0, 1, 5) for z in (("q",), ("", "ñ", "rr"))),
    )


def joined_in_turn(n, x):
    state, rows = x, np.empty((n, len(x)), object)
    for i in range(n):
        state = state + x
        rows[i] = x + state + np.array(str(i), object)
    return state, rows


MADE = """g (int64 n, string[m] x) => (string[m] y, string[k, m] rows) {
    CONDITION
    y, rows = Loop (COUNT, CONDITION_NAME, x) <body = b (int64 i, bool go, string[m] s)
            => (bool on, string[m] t, string[m] row) {
        ON
        t = StringConcat (s, x)
        number = Cast <to = 8> (i)
        with_both = StringConcat (x, t)
        row = StringConcat (with_both, number)
    }>
}"""


@pytest.mark.parametrize("ends", ["open", "known", "condition"])
def test_iterations_make_strings(ends):
    """As many as a run says, or four."""
    source = MADE.replace("COUNT", "" if ends == "condition" else "n")
    if ends == "condition":
        start = "zero = Constant <value = int64 {0}> ()\n    begin = Less (zero, n)"
        on = "one = Constant <value = int64 {1}> ()\n next = Add (i, one)\n on = Less (next, n)"
        source = source.replace("CONDITION_NAME", "begin").replace("CONDITION", start).replace("ON\n", f"{on}\n")
    else:
        start = "yes = Constant <value = bool {1}> ()"
        source = (
            source.replace("CONDITION_NAME", "yes").replace("CONDITION", start).replace("ON\n", "on = Identity (go)\n")
        )
    if ends == "known":
        source = source.replace("int64 n, ", "").replace(start, f"{start}\n n = Constant <value = int64 {{4}}> ()")
        check(source, {"x": text(*WORDS)}, {"x": text("ü")}, expected=lambda x: joined_in_turn(4, x))
    else:
        calls = [trips(n, x=text(*x)) for n in (0, 1, 7, 100) for x in (WORDS, ("ü",))]
        check(source, *calls, expected=joined_in_turn)


def whispered(n, x, z, c):
    state = x
    for _ in range(n):
        state = np.where(c, z + np.array(",", object) + state, x)
    return (state,)


def test_made_strings_take_the_place_of_others_and_are_chosen_among_them():
    """What a string was made of is not kept: as many bytes are held as there are in use."""
    check(
        """g (int64 n, string[m] x, string[m] z, bool[m] c) => (string[m] y) {
            yes = Constant <value = bool {1}> ()
            y = Loop (n, yes, x) <body = b (int64 i, bool go, string[m] s) => (bool on, string[m] t) {
                on = Identity (go)
                comma = Constant <value_string = ","> ()
                before = StringConcat (z, comma)
                longer = StringConcat (before, s)
                t = Where (c, longer, x)
            }>
        }""",
        *(
            trips(n, x=text("a", "bé", ""), z=text("q", "", "ñ"), c=np.array([True, False, True]))
            for n in (0, 1, 2, 50)
        ),
        expected=whispered,
    )


def appending(steps):
    """A loop that appends to a sequence by these steps, which have a part of x as long as the iteration's number."""
    return f"""g (int64 n, string[m] x, string[p] z) => (seq(string[q]) y, string[r] joined) {{
            yes = Constant <value = bool {{1}}> ()
            start = SequenceConstruct (z)
            y = Loop (n, yes, start) <body = b (int64 i, bool go, seq(string[q]) s) => (bool on, seq(string[q]) t) {{
                on = Identity (go)
                zero = Constant <value = int64[1] {{0}}> ()
                one = Constant <value = int64[1] {{1}}> ()
                at = Reshape (i, one)
                end = Add (at, one)
                part = Slice (x, zero, end)
                {steps}
            }}>
            joined = ConcatFromSequence <axis = 0> (y)
        }}"""


def test_a_loop_appends_strings_that_it_makes_to_a_sequence():
    check(
        appending(
            """number = Cast <to = 8> (i)
                made = StringConcat (part, number)
                u = SequenceInsert (s, part)
                t = SequenceInsert (u, made)"""
        ),
        *(trips(n, x=text(*WORDS), z=text("ä", "b")) for n in (1, 2, 5)),
    )


def test_loops_that_make_strings_within_each_other():
    check(
        """g (int64 n, string[m] x) => (string[m] y) {
            yes = Constant <value = bool {1}> ()
            y = Loop (n, yes, x) <body = b (int64 i, bool go, string[m] s) => (bool on, string[m] t) {
                on = Identity (go)
                also = Constant <value = bool {1}> ()
                t = Loop (i, also, s) <body = inner (int64 j, bool g, string[m] p) => (bool h, string[m] q) {
                    h = Identity (g)
                    q = StringConcat (p, x)
                }>
            }>
        }""",
        *(trips(n, x=text("a", "bé", "")) for n in (0, 1, 2, 5)),
        expected=lambda n, x: (x * (1 + n * (n - 1) // 2),),
    )


def test_iterations_hand_on_what_they_make_of_strings_around_the_loop():
    check(
        """g (int64 n, string[m] x, string[m] z) => (string[m] y) {
            yes = Constant <value = bool {1}> ()
            y = Loop (n, yes, x) <body = b (int64 i, bool go, string[m] s) => (bool on, string[m] t) {
                on = Identity (go)
                t = StringConcat (z, z)
            }>
        }""",
        *(trips(n, x=text("a", "bé", ""), z=text("", "c", "dd")) for n in (0, 1, 3)),
        expected=lambda n, x, z: (z * 2 if n else x,),
    )


def test_a_scan_makes_strings_forwards_and_backwards():
    """Its state begins as one string for all columns, and comes to have as many as there are."""
    check(
        """g (string[m] first, string[n, m] x) => (string[m] y, string[m, n] rows, string[n, m] others) {
            y, rows, others = Scan <num_scan_inputs = 2, scan_input_directions = [0, 1], scan_output_axes = [1, 0],
                scan_output_directions = [0, 1],
                body = b (string[m] s, string[m] row, string[m] last)
                        => (string[m] t, string[m] u, string[m] v) {
                    t = StringConcat (s, row)
                    u = StringConcat (last, t)
                    v = Identity (last)
                }> (first, x, x)
        }""",
        *(
            {"first": text(*WORDS[:m]), "x": text(*(f"é{k}" * (k % 3) for k in range(n * m)), shape=(n, m))}
            for n, m in ((1, 2), (3, 2), (4, 1))
        ),
        expected=scanned_both_ways,
    )


def scanned_both_ways(first, x):
    state, rows = first, []
    for k, row in enumerate(x):
        state = state + row
        rows.append(x[len(x) - 1 - k] + state)
    return state, np.stack(rows, 1), x


def test_a_body_that_makes_strings_is_mapped_over_sequences():
    """Of rows that have one shape, and of parts that have not."""
    for parts, axis in (("", ""), ("sizes", ", keepdims = 1")):
        check(
            f"""g (string[n] x, int64[k] sizes) => (string[m] y, string[r] z) {{
                s = SplitToSequence <axis = 0{axis}> (x{parts and ", "}{parts})
                t, u = SequenceMap (s, x) <body = b (string[p] part, string[n] whole)
                        => (string[p] longer, string[q] beside) {{
                    dot = Constant <value_string = "."> ()
                    longer = StringConcat (part, dot)
                    beside = Concat <axis = 0> (longer, whole)
                }}>
                y = ConcatFromSequence <axis = 0> (t)
                z = ConcatFromSequence <axis = 0> (u)
            }}""",
            *({"x": text(*WORDS), "sizes": np.array(sizes)} for sizes in ([2, 3], [1, 0, 4], [5])),
            expected=lambda x, sizes, parts=parts: mapped(x, sizes if parts else [1] * len(x)),
        )


def mapped(x, sizes):
    longer = np.split(x + np.array(".", object), np.cumsum(sizes)[:-1])
    return np.concatenate(longer), np.concatenate([np.concatenate([part, x]) for part in longer])


def scanned(first, x, c):
    rows, state = [], first
    for row, chosen in zip(x, c, strict=True):
        state = np.where(chosen, row, state)
        rows.append(np.where(state == first, np.array("-", object), state))
    return state, np.stack(rows)


def test_a_scan_carries_slices_and_stacks_strings():
    check(
        """g (string[m] first, string[k, m] x, bool[k, m] c) => (string[m] y, string[k, m] rows) {
            y, rows = Scan <num_scan_inputs = 2, scan_output_axes = [0],
                body = b (string[m] s, string[m] row, bool[m] chosen) => (string[m] t, string[m] given) {
                    u = Constant <value_strings = ["-"]> ()
                    t = Where (chosen, row, s)
                    is_empty = Equal (t, first)
                    given = Where (is_empty, u, t)
                }> (first, x, c)
        }""",
        {
            "first": text("a", "é"),
            "x": text(*WORDS, "!", shape=(3, 2)),
            "c": np.array([[True, False], [False, False], [False, True]]),
        },
        {"first": text("q"), "x": text(*WORDS, shape=(5, 1)), "c": np.array([[k % 2 == 0] for k in range(5)])},
        expected=scanned,
    )


def test_a_loop_appends_strings_to_a_sequence():
    check(
        appending("t = SequenceInsert (s, part)"),
        *(trips(n, x=text(*WORDS), z=text("ä", "b")) for n in (1, 2, 5)),
    )


def nested(n, x, z):
    found = x
    for i in range(n):
        if i > 0:
            found = np.full_like(x, "é") if (i - 1) % 2 else z
        found = x if i == 3 else found
    return (found,)


def test_loops_within_loops_and_branches_select_strings():
    check(
        """g (int64 n, string[m] x, string[m] z) => (string[m] y) {
            yes = Constant <value = bool {1}> ()
            shape = Shape (x)
            y = Loop (n, yes, x) <body = b (int64 i, bool go, string[m] s) => (bool on, string[m] t) {
                on = Identity (go)
                u = Loop (i, yes, s) <body = inner (int64 j, bool go2, string[m] v) => (bool on2, string[m] w) {
                    on2 = Identity (go2)
                    two = Constant <value = int64 {2}> ()
                    odd = Mod (j, two)
                    is_odd = Cast <to = 9> (odd)
                    w = If (is_odd) <
                        then_branch = a () => (string[m] p) {
                            e = Constant <value_strings = ["é"]> ()
                            p = Expand (e, shape)
                        },
                        else_branch = c () => (string[m] q) { q = Identity (z) }
                    >
                }>
                three = Constant <value = int64 {3}> ()
                last = Equal (i, three)
                t = Where (last, x, u)
            }>
        }""",
        *(trips(n, x=text(*WORDS), z=text("1", "2", "3", "4", "5")) for n in (0, 1, 2, 3, 4, 5)),
        expected=nested,
    )


def test_branches_give_sequences_of_strings():
    check(
        """g (bool c, string[m] x, string[p] z) => (string[r] y) {
            s = If (c) <
                then_branch = a () => (seq(string[q]) p) {
                    xx = StringConcat (x, x)
                    p = SequenceConstruct (xx, z)
                },
                else_branch = b () => (seq(string[q]) q) { q = SequenceConstruct (z, x, z) }
            >
            y = ConcatFromSequence <axis = 0> (s)
        }""",
        *({"c": np.array(c), "x": text(*WORDS), "z": text("ü", "b")} for c in (True, False)),
    )


def test_a_body_is_mapped_over_strings():
    check(
        """g (string[k, m] x, string z, string e) => (string[k, m] y) {
            s = SplitToSequence <axis = 0, keepdims = 0> (x)
            t = SequenceMap (s, z) <body = b (string[m] row, string other) => (string[m] made) {
                same = Equal (row, e)
                made = Where (same, other, row)
            }>
            y = ConcatFromSequence <axis = 0, new_axis = 1> (t)
        }""",
        *(
            {"x": text(*WORDS, shape=(5, 1)), "z": np.array(z, object), "e": np.array("dög", object)}
            for z in ("", "né")
        ),
        expected=lambda x, z, e: (np.where(x == e, z, x),),
    )


@pytest.mark.parametrize("operator", ["If", "Loop"])
def test_strings_are_no_condition(operator):
    branch = parser.parse_graph("b () => (float[1] y) { y = Identity (z) }")
    body = parser.parse_graph(
        "b (int64 i, bool go, float[1] s) => (bool on, float[1] t) { on = Identity (go)  t = Add (s, s) }"
    )
    node = (
        helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)
        if operator == "If"
        else helper.make_node("Loop", ["n", "x", "z"], ["y"], body=body)
    )
    inputs = [("x", TensorProto.STRING, []), ("z", TensorProto.FLOAT, [1]), ("n", TensorProto.INT64, [])]
    values = [helper.make_tensor_value_info(*each) for each in inputs]
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(lw.ModelError, match=r"takes, .* strings or maps, which is not supported there"):
        lw.from_onnx(model)
