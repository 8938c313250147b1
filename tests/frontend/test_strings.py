"""Strings as inputs, on the way, and as outputs: operators on them, in the standard's forms and in onnxruntime's."""

import ctypes
import re

import numpy as np
import pytest
import spans
from needed_tools import program
from onnx import TensorProto, helper, parser
from onnx_cases import STANDARD_OPSET, case, each_version, make_model, ml_case, model_of

import loopwright as lw
from loopwright.cli import main


def strings(*values):
    return np.array(values, object)


WORDS = strings("cat", "dög", "", "emu", "dög", "x" * 300)
MATRIX = WORDS.reshape(3, 2)
TEXTS = strings(" a b-c  d ", "", "q--", "\u2003ö\u00a0e", "-", "a\tb\nc")
NAMES = ["emu", "dög", "cat"]
GRAMS = {"pool_strings": ["a", "b", "a", "b", "b", "c"], "ngram_counts": [0, 2], "ngram_indexes": [2, 0, 1, 3]}
TFIDF = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "weights": [1.0, 2.0, 3.0, 4.0]}
ROW = strings("a", "b", "b", "c", "z", "a", "b")
COUNTS = np.array([3, 3, 2, 2], np.float32)  # of b; a b, also at a distance of two; a; b c, the same


def split(x, delimiter=None, most=-1):
    rows = [text.split(delimiter, most) for text in x.ravel()]
    widest = max(map(len, rows))
    filled = [row + [""] * (widest - len(row)) for row in rows]
    return np.array(filled, object).reshape(*x.shape, widest), np.array(list(map(len, rows))).reshape(x.shape)


def one_hot(x, names):
    return (x[..., None] == np.array(names, object)).astype(np.float32)


def normalizer(expected, *values, **attributes):
    return case("StringNormalizer", (10,), strings(*values), expected=lambda x: strings(*expected), **attributes)


def tokenizer(label, x, expected, **attributes):
    attributes = {"mark": 0, "mincharnum": 1, "pad_value": "#"} | attributes
    made = case("Tokenizer", (1,), x, expected=lambda x: np.array(expected, object), label=label, **attributes)
    made.domain = "com.microsoft"
    return made


CASES = [
    case("StringConcat", (20,), MATRIX, strings("é", "1"), expected=lambda x, y: x + y),
    case("StringConcat", (20,), WORDS, strings("!"), const=(1,), label="constant", expected=lambda x, y: x + y),
    case("StringSplit", (20,), TEXTS, outputs=2, expected=split),
    case("StringSplit", (20,), TEXTS, outputs=2, maxsplit=1, label="most", expected=lambda x: split(x, None, 1)),
    case("StringSplit", (20,), TEXTS, outputs=2, delimiter="-", label="at", expected=lambda x: split(x, "-")),
    case(
        "RegexFullMatch",
        (20,),
        strings("b1", "bbb22", "é7", "", "b1\n", "ab1", "1"),
        pattern=r"(b+|\x{e9})?\d{1,2}",
        expected=lambda x: np.array([True, True, True, False, False, False, True]),
    ),
    normalizer(("éclair", "ß", "жя"), "Éclair", "ß", "ЖЯ", case_change_action="LOWER"),
    normalizer(("ÉCLAIR", "ß", "ЖЯ"), "éclair", "ß", "жя", case_change_action="UPPER"),
    normalizer(("B", "éx"), "a", "B", "É", "éx", "A", case_change_action="NONE", stopwords=["a", "é"]),
    normalizer(("b", "é"), "A", "b", "é", is_case_sensitive=1, case_change_action="LOWER", stopwords=["A", "É"]),
    normalizer(("",), "a", "a", stopwords=["a"]),
    case("TfIdfVectorizer", (9,), ROW, mode="TF", **TFIDF, **GRAMS, expected=lambda x: COUNTS),
    case(
        "TfIdfVectorizer",
        (9,),
        np.stack([ROW, ROW[::-1], np.full_like(ROW, "z")]),
        mode="TFIDF",
        **TFIDF,
        **GRAMS,
        label="rows",
        expected=lambda x: np.array([COUNTS, [3, 0, 2, 0], [0] * 4], np.float32) * np.arange(1, 5, dtype=np.float32),
    ),
    case(
        "TfIdfVectorizer",
        (9,),
        np.array([[5, 7, 5, 7, 9]]),
        mode="IDF",
        **TFIDF | {"max_skip_count": 0, "weights": [1.5, 2.5, 3.5]},
        pool_int64s=[9, 8, 5, 7],
        ngram_counts=[0, 2],
        ngram_indexes=[0, 2, 1],
        label="integers",
        expected=lambda x: np.array([[1.5, 2.5, 0]], np.float32),
    ),
    case("Equal", (7, 11, 13, 19), MATRIX, strings("cat", "emu"), expected=lambda x, y: x == y, label="strings"),
    ml_case("OneHotEncoder", (1,), MATRIX, cats_strings=NAMES, expected=lambda x: one_hot(x, NAMES), label="strings"),
    ml_case(
        "LabelEncoder",
        (2, 4),
        MATRIX,
        keys_strings=NAMES,
        values_int64s=[10, 20, 30],
        expected=lambda x: np.array([[30, 20], [-1, 10], [20, -1]]),
        label="strings",
    ),
    ml_case(
        "LabelEncoder",
        (2, 4),
        WORDS,
        keys_strings=NAMES,
        values_strings=["E", "D", "ç"],
        default_string="?",
        expected=lambda x: strings("ç", "D", "?", "E", "D", "?"),
        label="both",
    ),
    ml_case(
        "LabelEncoder",
        (1,),
        WORDS,
        classes_strings=NAMES,
        default_int64=-7,
        expected=lambda x: np.array([2, 1, -7, 0, 1, -7]),
        label="strings",
    ),
    ml_case(
        "CategoryMapper",
        (1,),
        WORDS,
        cats_strings=NAMES,
        cats_int64s=[5, 1000, -3],
        expected=lambda x: np.array([-3, 1000, -1, 5, 1000, -1]),
    ),
    ml_case(
        "CategoryMapper",
        (1,),
        np.array([[1000, 4], [5, -3]]),
        cats_strings=NAMES,
        cats_int64s=[5, 1000, -3],
        default_string="none",
        label="back",
        expected=lambda x: np.array([["dög", "none"], ["emu", "cat"]], object),
    ),
    tokenizer(
        "words",
        strings("ab, c d1", "", "é ghi"),
        [["ab", "c", "d1"], ["#"] * 3, ["ghi", "#", "#"]],
        tokenexp="[a-z0-9]+",
    ),
    tokenizer(
        "separators",
        strings("ab, c d1", "", "é;ghi").reshape(3, 1),
        [[["ab", "d1"]], [["#", "#"]], [["ghi", "#"]]],
        separators=[";", ",? "],
        mincharnum=2,
    ),
    tokenizer("characters", strings("éa", "b"), [["é", "a"], ["b", "#"]], separators=[""]),
    tokenizer(
        "marks",
        strings("a b", ""),
        [["\x02", "a", "b", "\x03"], ["\x02", "\x03", "#", "#"]],
        tokenexp="[a-z]",
        mark=1,
    ),
]


def same(found, wanted):
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist()


@each_version(CASES)
def test_operators(case, version):
    engine = lw.Engine(lw.compile(model_of(case, version), jobs=1))
    wanted = case.expected(*case.inputs)
    for found, expected in zip(engine(case.fed), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        same(found, expected)


def moving_model():
    """Strings of two inputs, a constant and a label, moved and joined; nothing is known of the extents."""
    nodes = [
        helper.make_node(
            "LabelEncoder", ["i"], ["l"], domain="ai.onnx.ml", keys_int64s=[0, 1], values_strings=["L", "M"]
        ),
        helper.make_node("Concat", ["a", "b", "k", "l"], ["joined"], axis=0),
        helper.make_node("Gather", ["joined", "i"], ["taken"]),
        helper.make_node("Where", ["c", "a", "k"], ["chosen"]),
        helper.make_node("Pad", ["l", "pads"], ["padded"]),
        helper.make_node("Split", ["joined"], ["first", "second"], num_outputs=2),
    ]
    inputs = {"a": (object, ("n",)), "b": (object, ("m",)), "i": (np.int64, ("k",)), "c": (bool, ("n",))}
    outputs = ["joined", "taken", "chosen", "padded", "a", "second"]
    constants = {"k": strings("kö"), "pads": np.array([1, 0])}
    return make_model(nodes, inputs, outputs, 4, constants, domain="ai.onnx.ml")


def test_strings_of_joined_bytes_are_joined_again():
    """As imputers of scikit-learn do, column by column: what is filled in comes from bytes of its own."""
    nodes = [
        helper.make_node("Where", ["c", "a", "k"], ["filled"]),
        helper.make_node("Where", ["c", "l", "a"], ["kept"]),
        helper.make_node("Concat", ["filled", "kept"], ["both"], axis=0),
        helper.make_node("Concat", ["both", "kept", "a"], ["all"], axis=0),
    ]
    inputs = {"a": (object, ("n",)), "c": (bool, ("n",))}
    model = make_model(nodes, inputs, ["both", "all"], STANDARD_OPSET, {"k": strings("kö"), "l": strings("ü")})
    a, c = strings("x", "", "yé"), np.array([True, False, True])
    filled, kept = np.where(c, a, "kö"), np.where(c, "ü", a)
    both = np.concatenate([filled, kept])
    found = lw.Engine(lw.compile(model))({"a": a, "c": c})
    for array, wanted in zip(found, (both, np.concatenate([both, kept, a])), strict=True):
        same(array, wanted)


def moved(a, b, i, c):
    labels = strings(*(["L", "M", "_Unused"][min(k, 2)] for k in i))
    joined = np.concatenate([a, b, strings("kö"), labels])
    second = joined[-(-len(joined) // 2) :]
    return [joined, joined[i], np.where(c, a, "kö"), np.append("", labels).astype(object), a, second]


FED = [
    {"a": WORDS, "b": strings("b", "ß"), "i": np.array([0, 7, 1, 2]), "c": np.arange(6) % 2 == 0},
    {"a": strings("one"), "b": WORDS[:0], "i": np.array([1]), "c": np.array([False])},
]


def test_strings_are_moved_and_joined():
    engine = lw.Engine(lw.compile(moving_model()))
    for fed in FED:
        for found, wanted in zip(engine(fed), moved(**fed), strict=True):
            same(found, wanted)


def test_a_saved_library_takes_and_gives_strings(tmp_path):
    library = lw.compile(moving_model())
    library.save(tmp_path / "model.lwlib")
    loaded = lw.load(tmp_path / "model.lwlib")
    assert [str(spec) for spec in loaded.inputs][:2] == ["a: string[n]", "b: string[m]"]
    assert loaded.outputs["chosen"].dtype == "string"
    engine = lw.Engine(loaded)
    same(engine(FED[0])["taken"], moved(**FED[0])[1])


def test_strings_come_as_any_of_numpys_dtypes_and_in_phases():
    engine = lw.Engine(lw.compile(moving_model())).init()
    fed = FED[0] | {"a": FED[0]["a"].astype(str), "b": np.asfortranarray(FED[0]["b"].astype(str))}
    if hasattr(np.dtypes, "StringDType"):
        fed["b"] = FED[0]["b"].astype(np.dtypes.StringDType())
    bound = engine.bind(fed)
    for name, value in fed.items():
        engine.set_input(name, value)
    engine.run()
    for k, wanted in enumerate(moved(**FED[0])):
        same(engine(fed)[k], wanted)
        same(bound()[k], wanted)
        same(engine.get_output(k), wanted)
    assert engine(fed).keys() == list(engine.outputs.names)


def branch_of(op, inputs, stored=(), **attributes):
    domain = "ai.onnx.ml" if op == "LabelEncoder" else ""
    node = helper.make_node(op, inputs, ["s"], domain=domain, **attributes)
    return helper.make_graph([node], op, [], [helper.make_empty_tensor_value_info("s")], stored)


def choice_of(then, otherwise):
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise),
        helper.make_node("StringConcat", ["y", "y"], ["twice"]),
    ]
    model = make_model(nodes, {"x": (object, ("n",)), "c": (bool, ()), "k": (np.int64, ("m",))}, ["y", "twice"], 21)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


def test_conditions_may_read_strings():
    """A branch reads strings of the graph around."""
    equal = helper.make_node("Equal", ["x", "x"], ["same"])
    branch = helper.make_graph([equal], "branch", [], [helper.make_tensor_value_info("same", TensorProto.BOOL, ["n"])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    model = make_model([node], {"x": (object, ("n",)), "c": (bool, ())}, ["y"], 21)
    (found,) = lw.Engine(lw.compile(model))({"x": WORDS, "c": np.array(True)})
    assert found.all()


@pytest.mark.parametrize("kind", ["constant", "labels", "the same"])
def test_branches_may_give_strings(kind):
    then = branch_of("StringConcat", ["x", "x"])
    stored = helper.make_tensor("known", TensorProto.STRING, [2], ["né".encode(), b"two"])
    otherwise = {
        "constant": branch_of("Identity", ["known"], [stored]),
        "labels": branch_of("LabelEncoder", ["k"], keys_int64s=[1, 2], values_strings=["one", "zwö"]),
        "the same": branch_of("Identity", ["x"]),
    }[kind]
    engine = lw.Engine(lw.compile(choice_of(then, otherwise)))
    numbers = np.array([2, 9, 1])
    wanted = {"constant": ["né", "two"], "labels": ["zwö", "_Unused", "one"], "the same": list(WORDS)}[kind]
    for taken, values in ((True, [word + word for word in WORDS]), (False, wanted)):
        found, twice = engine({"x": WORDS, "c": np.array(taken), "k": numbers})
        same(found, strings(*values))
        same(twice, strings(*[value + value for value in values]))


def casting(kind, to):
    node = helper.make_node("Cast", ["x"], ["y"], to=to)
    return lw.Engine(lw.compile(make_model([node], {"x": (kind, ("n",))}, ["y"], 21)))


def eight_digits(value):
    """As onnxruntime writes a float."""
    return "NaN" if np.isnan(value) else f"{float(value):.8g}".replace("inf", "INF")


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_floats_become_strings_of_eight_digits(kind):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 256, (4000, np.dtype(kind).itemsize), dtype=np.uint8).view(kind).ravel()
    ties = rng.integers(0, 10**6, 1000) / 2.0 ** rng.integers(0, 20, 1000)
    some = [0, -0.0, 1, 0.1, 1e-5, 1e-4, 2.5, np.inf, -np.inf, np.nan, 12345, 123456789, 99999999.5]
    ends = np.array([np.finfo(kind).max, np.finfo(kind).smallest_subnormal], kind)
    with np.errstate(over="ignore"):
        values = np.concatenate([bits, ties.astype(kind), np.array(some).astype(kind), ends])
    same(casting(kind, TensorProto.STRING)(values)[0], strings(*map(eight_digits, values)))


@pytest.mark.parametrize("kind", ["int64", "uint8", "int32", "bool"])
def test_integers_become_strings(kind):
    values = np.array([0, 1, 9, 10, 99, 100]).astype(kind)
    if kind == "int64":
        values = np.append(values, [-1, -(2**63), 2**63 - 1])
    same(casting(kind, TensorProto.STRING)(values)[0], strings(*(str(int(value)) for value in values)))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_strings_become_floats(kind):
    rng = np.random.default_rng(1)
    values = 10.0 ** rng.uniform(-280, 300, 2000) * rng.choice([-1, 1], 2000)
    texts = [*map(repr, values.tolist()), *(f"{x:.4f}" for x in rng.normal(size=200))]
    texts += ["1.5", "-0", "+.5", "5.", "1e400", "-1e400", "1e-400", "nan", "-INF", "Infinity", "\t 3.25"]
    texts += ["123456789012345678901234567890", "0." + "0" * 40 + "1", "1" + "0" * 500, "0e999999999999"]
    to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    with np.errstate(over="ignore"):
        wanted = np.array(texts, np.float64).astype(kind)
    np.testing.assert_array_equal(casting(object, to)(strings(*texts))[0], wanted)
    np.testing.assert_array_equal(casting(object, to)(strings("2.5xyz", "1e", "3e+"))[0], [2.5, 1, 3])


def test_strings_become_integers():
    texts = strings("1", " -22", "+7", str(2**63 - 1), str(-(2**63)), "1.9", "12e3", "0x10")
    found = casting(object, TensorProto.INT64)(texts)[0]
    np.testing.assert_array_equal(found, [1, -22, 7, 2**63 - 1, -(2**63), 1, 12, 0])


@pytest.mark.parametrize(
    ("to", "text"),
    [*((TensorProto.INT64, text) for text in ("", "abc", "-", "nan", str(2**63), "9" * 20)),
     *((TensorProto.FLOAT, text) for text in ("", "abc", "+", ".", "e5", "in"))],
)  # fmt: skip
def test_a_string_that_is_no_number_is_an_error_of_the_run(to, text):
    engine = casting(object, to)
    with pytest.raises(lw.KernelError, match="a string that is cast to"):
        engine(strings("1", text))
    np.testing.assert_array_equal(engine(strings("1"))[0], [1])


def test_the_first_version_casts_strings_as_well():
    node = helper.make_node("Cast", ["x"], ["y"], to="FLOAT")
    model = make_model([node], {"x": (object, (2,))}, ["y"], 5)
    np.testing.assert_array_equal(lw.Engine(lw.compile(model))(strings("1.5", "-2"))[0], [1.5, -2])


def test_maps_are_not_cast():
    nodes = [helper.make_node("ZipMap", ["x"], ["m"], domain="ai.onnx.ml", classlabels_int64s=[1, 2]),
             helper.make_node("Cast", ["m"], ["y"], to=TensorProto.DOUBLE)]  # fmt: skip
    model = make_model(nodes, {"x": (np.float32, (3, 2))}, ["y"], 21)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    with pytest.raises(lw.ModelError, match="takes strings or maps, which is not supported there"):
        lw.compile(model)


def test_strings_are_cast_to_strings_and_like_others():
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING),
        helper.make_node("CastLike", ["k", "s"], ["y"]),
    ]
    model = make_model(nodes, {"x": (object, ("n",)), "k": (np.int64, ("m",))}, ["s", "y"], 21)
    found, others = lw.Engine(lw.compile(model))({"x": WORDS, "k": np.array([5, -6])})
    same(found, WORDS)
    same(others, strings("5", "-6"))


def test_strings_and_numbers_are_no_result_of_one_condition():
    with pytest.raises(lw.ModelError, match="one branch gives strings for a result, and the other does not"):
        lw.compile(choice_of(branch_of("Identity", ["x"]), branch_of("Identity", ["k"])))


@pytest.mark.parametrize("labels", [False, True])
def test_a_number_that_a_loop_carries_becomes_no_string(labels):
    """Neither the spans of some, nor the position of a label, though both are of int64."""
    made = "Gather (x, i)" if not labels else 'Constant <value_string="a"> ()'
    body = parser.parse_graph(
        f"b (int64 i, bool k, int64 s) => (bool k2, string t) {{ k2 = Identity (k)  t = {made} }}"
    )
    loop = helper.make_node("Loop", ["m", "", "z"], ["y"], body=body)
    model = make_model([loop], {"x": (object, ("n",)), "m": (np.int64, ())}, ["y"], 21, {"z": np.int64(0)})
    with pytest.raises(lw.ModelError, match="where it took numbers, hands on strings or maps"):
        lw.from_onnx(model)


def run_one(case, version, **fed):
    return lw.Engine(lw.compile(model_of(case, version)))(fed)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (strings("a", None, *"cdef"), "input x0 should have strings for elements, found None as number 1"),
        (strings("a", 1.5, *"cdef"), "found 1.5 as number 1"),
        (strings("a", "\ud800", *"cdef"), "has no UTF-8: surrogates not allowed"),
        (np.array([1, 2]), "should be an array of strings, found one of int64"),
        (["a", "b"], "should be a numpy array"),
        (np.array([["a"]]), r"should have shape \(6,\)"),
    ],
)
def test_what_is_no_string_is_refused(value, message):
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        run_one(CASES[2], 20, x0=value)


def test_strings_need_no_buffers():
    engine = lw.Engine(lw.compile(moving_model()))
    with pytest.raises(lw.RuntimeArgumentError, match="gives strings, which no buffers can hold: run it without out="):
        engine(FED[0], out=[np.empty(3)] * 6)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a", "a ( without its )"),
        ("a)", "a ) without its ("),
        ("[a", "no end"),
        ("*a", "nothing before *"),
        (r"(?=a)", "a group (?=, which is not regular,"),
        (r"a\1", r"\1, which is not supported,"),
        (r"(?m)^a$", "the flag m, which is not supported,"),
        ("[b-a]", "a range that ends before it begins,"),
        ("a{3,2}", "bounds of a repeat that are no bounds"),
        (r"\p{Xy}", r"\p{Xy}, which is no general category of Unicode,"),
    ],
)
def test_patterns_that_are_none_are_refused(pattern, problem):
    with pytest.raises(lw.ModelError, match=re.escape(problem)):
        lw.from_onnx(model_of(case("RegexFullMatch", (20,), WORDS, pattern=pattern), 20))


def encoder_model():
    """Strings to labels and features, beside numbers of the graph."""
    nodes = [
        helper.make_node("OneHotEncoder", ["x"], ["hot"], domain="ai.onnx.ml", cats_strings=NAMES),
        helper.make_node("ReduceSum", ["hot", "last"], ["known"], keepdims=0),
        helper.make_node("Identity", ["x"], ["same"]),
    ]
    model = make_model(nodes, {"x": (object, ("n",))}, ["known", "same"], 1, {"last": np.array([1])}, "ai.onnx.ml")
    for value, kind in zip(model.graph.output, (TensorProto.FLOAT, TensorProto.STRING), strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, ["n"]))
    model.ir_version = 10
    return model


def test_numbers_beside_strings_are_compared_with_a_reference():
    model = encoder_model()
    comparison = lw.Engine(lw.compile(model)).compare({"x": WORDS}, model)
    assert [difference.value for difference in comparison.differences] == ["known"]
    assert comparison.first is None


def test_the_command_line_runs_models_of_strings(tmp_path, capsys):
    path, given, made = tmp_path / "model.onnx", tmp_path / "x.npy", tmp_path / "y.npz"
    path.write_bytes(encoder_model().SerializeToString())
    np.save(given, WORDS.astype(str))
    assert main(["run", str(path), "--input", f"x={given}", "--output", str(made), "--check"]) == 0
    assert "checked: " in capsys.readouterr().out
    with np.load(made) as outputs:
        assert outputs["same"].tolist() == WORDS.tolist()
        assert outputs["known"].tolist() == [1, 1, 0, 1, 1, 0]
    assert main(["run", str(path), "--shape", "x=4"]) == 0


def test_an_export_takes_spans_and_bytes(tmp_path):
    program("cc", package="gcc")
    files = lw.compile(encoder_model()).export(tmp_path, "shared", name="net")
    header = files.header.read_text()
    assert "const int64_t *x, const uint8_t *utf8, float *known, int64_t *same, uint8_t *utf8_2" in header
    net, context, pointer = ctypes.CDLL(str(files.code)), ctypes.c_void_p(), ctypes.c_void_p
    assert net.net_create(ctypes.byref(context), 1) == 0
    given, utf8 = spans.packed("cat", "none", "dög")
    known, same, copied = np.empty(3, np.float32), np.empty(3, np.int64), np.empty_like(utf8)
    arrays = (array.ctypes.data_as(pointer) for array in (given, utf8, known, same, copied))
    assert net.net_run(context, *arrays, ctypes.c_int64(3), ctypes.c_int64(len(utf8))) == 0
    net.net_destroy(context)
    assert known.tolist() == [1, 0, 1]
    assert spans.read(same, copied) == [b"cat", b"none", "dög".encode()]


def sequence_model(*position):
    """The second of two tensors of strings; at a position that is an input, if it has a type and shape."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "y"], ["both"]),
        helper.make_node("SequenceAt", ["both", "at"], ["second"]),
    ]
    known = {} if position else {"at": np.array(1)}
    inputs = {"x": (object, ("n",)), "y": (object, (2,)), **({"at": position} if position else {})}
    return make_model(nodes, inputs, ["second"], 21, known)


def test_sequences_hold_strings():
    for position in ({}, {"at": np.array(1)}):
        engine = lw.Engine(lw.compile(sequence_model(np.int64, ()) if position else sequence_model()))
        same(engine({"x": WORDS, "y": strings("é", "")} | position)[0], strings("é", ""))


def test_a_cast_of_strings_is_refused():
    with pytest.raises(lw.ModelError, match="strings are not the inputs of Relu"):
        lw.from_onnx(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": (object, (2,))}, ["y"], 21))


def test_a_saved_library_has_strings_beside_lists(tmp_path):
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["both"]), helper.make_node("Identity", ["x"], ["same"])]
    model = make_model(nodes, {"x": (object, (6,))}, ["both", "same"], 21)
    lw.compile(model).save(tmp_path / "model.lwlib")
    both, found = lw.Engine(lw.load(tmp_path / "model.lwlib"))({"x": WORDS})
    for each in (*both, found):
        same(each, WORDS)


@pytest.mark.parametrize("condition", [False, True])
def test_strings_that_a_loop_of_open_length_stacks(condition):
    """Strings of an input, of a constant, and either; all are of bytes that lie before the loop."""
    body = parser.parse_graph(
        "b (int64 i, bool k, float c) => (bool k2, float c2, string d, string e, string[m] f) "
        "{ j = Add (i, one)  k2 = Less (j, most)  c2 = Identity (c)  d = Gather <axis=0> (s, i) "
        ' u = Constant <value_string="ü"> ()  z = Equal (d, u)  v = Constant <value_string="wo"> () '
        " e = Where (z, v, d)  f = Identity (s) }"
    )
    first = ["n", "true" if condition else "", "zero"]
    model = make_model(
        [
            helper.make_node("Size", ["s"], ["n"]),
            helper.make_node("Loop", first, ["q", "y", "w", "all"], body=body),
        ],
        {"s": (object, ("m",)), "most": (np.int64, ())},
        ["y", "w", "all"],
        STANDARD_OPSET,
        {"zero": np.float32(0), "one": np.int64(1), "true": np.array(True)},
    )
    engine = lw.Engine(lw.compile(model, jobs=1))
    for rows in (["a", "ü", "", "é"], ["x"], ["ü", "b" * 300]):
        most = 2 if condition else 9
        count = min(len(rows), most) if condition else len(rows)
        y, w, every = engine({"s": strings(*rows), "most": np.array(most)})
        assert y.tolist() == rows[:count]
        assert w.tolist() == ["wo" if row == "ü" else row for row in rows[:count]]
        assert every.tolist() == [rows] * count


def test_strings_that_iterations_make_are_stacked():
    body = parser.parse_graph(
        "b (int64 i, bool k, float c) => (bool k2, float c2, string d) "
        "{ k2 = Identity (k)  c2 = Identity (c)  e = Gather <axis=0> (s, i)  d = StringConcat (e, e) }"
    )
    nodes = [helper.make_node("Size", ["s"], ["n"]), helper.make_node("Loop", ["n", "", "z"], ["q", "y"], body=body)]
    model = make_model(nodes, {"s": (object, ("m",))}, ["y"], STANDARD_OPSET, {"z": np.float32(0)})
    engine = lw.Engine(lw.compile(model, jobs=1))
    for rows in (["a", "ü", "", "é"], ["x"], ["ü", "b" * 300]):
        assert engine({"s": strings(*rows)})[0].tolist() == [row * 2 for row in rows]


@pytest.mark.parametrize("rows", [["a", "bc", "", "é"], ["x"]])
def test_strings_that_a_loop_of_known_length_stacks(rows):
    """Each iteration gives one of the strings, or a constant one: the rows are spans of different bytes."""
    body = parser.parse_graph(
        "b (int64 i, bool k, float c) => (bool k2, float c2, string d, string e) "
        '{ k2 = Identity (k)  c2 = Identity (c)  d = Gather <axis=0> (s, i)  f = Constant <value_string="ü"> () '
        " e = StringConcat (d, f) }"
    )
    count = helper.make_tensor("n", TensorProto.INT64, [], [len(rows)])
    zero = helper.make_tensor("z", TensorProto.FLOAT, [], [0])
    loop = helper.make_node("Loop", ["n", "", "z"], ["q", "y", "w"], body=body)
    strings = helper.make_tensor_value_info("s", TensorProto.STRING, [len(rows)])
    outputs = [helper.make_tensor_value_info(name, TensorProto.STRING, None) for name in "yw"]
    graph = helper.make_graph([loop], "g", [strings], outputs, [count, zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    first, second = lw.Engine(lw.compile(model, jobs=1))([np.array(rows, object)])
    assert first.tolist() == rows
    assert second.tolist() == [text + "ü" for text in rows]


def test_constants_that_an_attribute_has():
    graph = parser.parse_graph(
        "g (string[2] s) => (string[2] y, string[2] z) {"
        ' a = Constant <value_string="é"> ()  b = Constant <value_strings=["", "bc"]> ()'
        " y = StringConcat (s, a)  z = StringConcat (b, s) }"
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    first, second = lw.Engine(lw.compile(model, jobs=1))([strings("x", "")])
    assert (first.tolist(), second.tolist()) == (["xé", "é"], ["x", "bc"])


def unique(x, axis, ascending):
    y, first, which, times = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    order = np.arange(len(first)) if ascending else np.argsort(first)
    return np.take(y, order, axis or 0), first[order], np.argsort(order)[which.ravel()], times[order]


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_different_strings_are_found(axis, ascending):
    """In the order of their characters, however long they are; 0 is a character, too."""
    along = {} if axis is None else {"axis": axis}
    names = ["y", "first", "which", "times"]
    made = helper.make_node("Unique", ["x"], names, sorted=int(ascending), **along)
    engine = lw.Engine(lw.compile(make_model([made], {"x": (object, ("n", "m"))}, names, STANDARD_OPSET)))
    pool = strings(*sorted(["", "a", "ab", "b", "a\0", "é", "z", "x" * 70]))
    for shape in ((1, 1), (4, 5), (2, 40)):
        ranks = np.random.default_rng(shape).integers(0, len(pool), shape)
        if axis is not None:
            ranks = np.concatenate([ranks, ranks[::-1], ranks], axis)
        y, *wanted = unique(ranks, axis, ascending)
        for found, expected in zip(engine([pool[ranks]]), [pool[y], *wanted], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_no_strings_are_different():
    node = helper.make_node("Unique", ["x"], ["y", "", "", "times"])
    model = make_model([node], {"x": (object, ("n",))}, ["y", "times"], STANDARD_OPSET)
    found = lw.Engine(lw.compile(model))([strings()])
    assert [array.size for array in found] == [0, 0]


@pytest.mark.parametrize(("op", "join"), [("StringConcat", np.char.add), ("Equal", np.equal)])
def test_columns_of_strings_meet_whatever_their_dimensions_are_called(op, join):
    """As two columns of a table, each of which an exporter gives a dimension of its own."""
    columns = [helper.make_tensor_value_info(name, TensorProto.STRING, [f"rows_of_{name}", 1]) for name in "ab"]
    kind = TensorProto.BOOL if op == "Equal" else TensorProto.STRING
    y = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([helper.make_node(op, ["a", "b"], ["y"])], "columns", columns, [y])
    engine = lw.Engine(lw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), jobs=1))
    for rows in (1, 4):
        a, b = (np.array([["x"], ["é"], ["yy"], [""]])[:rows], np.array([["x"], ["1"], ["y"], [""]])[:rows])
        found = engine([a.astype(object), b.astype(object)])[0]
        np.testing.assert_array_equal(found, join(a, b))
