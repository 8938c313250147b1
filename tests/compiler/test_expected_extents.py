"""What open dimensions are taken to be where layouts are planned: ``expect=``, else what is usual."""

import numpy as np
import onnx
import onnx.parser
import pytest

import loopwright as lw
from loopwright import te

AVX512 = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4")


def dense(rows, columns=64):
    weights = np.random.default_rng(0).standard_normal((columns, 768)).astype(np.float32)
    x = lw.var("x", (rows, 768))
    return lw.Function([x], lw.nn.dense(x, lw.const(weights)))


def implementation(explanation):
    return explanation.functions[0].choices[-1].implementation


def test_layouts_are_planned_for_what_is_expected():
    function = dense(te.var("tokens"), columns=12)
    usual = lw.explain(function, AVX512, expect={"x": (128, 768)})
    many = lw.explain(function, AVX512, expect={"x": (2048, 768)})
    assert (dict(usual.expected), dict(many.expected)) == ({"tokens": 128}, {"tokens": 2048})
    assert (implementation(usual), implementation(many)) == ("packed_matmul.blocked", "matmul.paneled")
    assert implementation(lw.explain(function, AVX512)) == implementation(usual), "128 tokens are usual"


def test_a_library_tells_what_was_expected_and_serves_all_else(tmp_path):
    function = dense(te.var("tokens"))
    library = lw.compile(function, "native", expect={"x": (3, None)})
    library.save(tmp_path / "dense.lwlib")
    loaded = lw.load(tmp_path / "dense.lwlib")
    for found in (library, loaded):
        assert "layouts are planned for tokens = 3" in str(lw.explain(found))
    x = np.random.default_rng(1).standard_normal((40, 768)).astype(np.float32)
    weights = np.random.default_rng(0).standard_normal((64, 768)).astype(np.float32)
    np.testing.assert_allclose(lw.Engine(loaded)([x])[0], x @ weights.T, rtol=1e-3, atol=1e-3)


def test_costs_are_not_those_of_implementations_for_known_extents_alone():
    weights = np.ones((8192, 64), np.float32)

    def chosen(rows):
        x = lw.var("x", (rows, 8192))
        return implementation(lw.explain(lw.Function([x], lw.nn.dense(x, lw.const(weights), transposed=False)), AVX512))

    assert chosen(128) == "matmul.long"  # which costs less than panels that a row is copied for
    assert chosen(te.var("rows")) == "packed_matmul.blocked"


def expected(shape, **arguments):
    x = lw.var("x", shape)
    return dict(lw.explain(lw.Function([x], lw.nn.relu(x)), AVX512, **arguments).expected)


def test_usual_numbers_go_by_name_and_place_and_keep_to_bounds():
    assert expected((te.var("n"), 3, te.var("u"), te.var("v"))) == {"n": 1, "u": 224, "v": 224}
    assert expected((te.var("u"), te.var("v"), 8)) == {"u": 1, "v": 128}
    assert expected((te.var("height"), te.var("width"), 3)) == {"height": 224, "width": 224}
    assert expected((2, 3)) == {}
    bounded = {"x": (2, lw.dim("tokens", min=1, max=100, multiple_of=32))}
    assert expected((2, te.var("s")), shapes=bounded) == {"tokens": 96}
    assert expected((te.var("n"), 4), layouts="keep") == {}
    assert expected((te.var("n"), 4), precision="strict") == {}


def test_a_letter_is_a_batch_only_where_batches_stand():
    assert expected((3, te.var("n"))) == {"n": 128}
    assert expected((te.var("batch"), te.var("n"), 3)) == {"batch": 1, "n": 128}
    assert expected((te.var("u"), 16, te.var("v"), te.var("b"))) == {"u": 1, "v": 224, "b": 224}
    assert expected((te.var("t"), te.var("n"), 80)) == {"t": 128, "n": 1}
    assert expected((8, te.var("batch_size"))) == {"batch_size": 1}


def test_a_formula_tells_nothing_by_itself_but_has_to_agree():
    past = te.var("past")
    x, y = lw.var("x", (past, 4)), lw.var("y", (past + 1, 4))
    function = lw.Function([x, y], lw.nn.concatenate([x, y], axis=0))
    assert dict(lw.explain(function, AVX512, expect={"x": (7, 4)}).expected) == {"past": 7}
    assert dict(lw.explain(function, AVX512, expect={"x": (7, 4), "y": (8, 4)}).expected) == {"past": 7}
    with pytest.raises(lw.ModelError, match=r"past \+ 1 is 8, and cannot be 9"):
        lw.explain(function, AVX512, expect={"x": (7, 4), "y": (9, 4)})


def test_nothing_goes_by_a_batch_that_is_to_decide_nothing():
    batch, tokens = te.var("batch"), te.var("tokens")
    x = lw.var("x", (batch, tokens))
    function = lw.Function([x], lw.nn.relu(x))
    found = lw.explain(function, AVX512, expect={"x": (32, 5)}, batch_invariant=True)
    assert dict(found.expected) == {"batch": 1, "tokens": 5}


def test_a_body_knows_what_is_expected_around_it():
    from loopwright.compiler.layout.expected_extents import expected_extents

    n, inner = te.var("n"), te.var("inner")
    body = lw.Function([x := lw.var("x", (n, inner))], lw.nn.relu(x))
    found = expected_extents(body, None, {n: 77}).numbers
    assert found[n] == 77
    assert found[inner] == 128


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ({"z": (1, 2)}, "expect= speaks of 'z', which is no input; there are x"),
        ({"x": (1, 2, 3)}, "which the shape .* cannot be|of which the expected shape"),
        ({"x": (1, 5)}, "4 is 4, and cannot be 5"),
        ({"x": (-2, 4)}, "n cannot be -2, which is expected of it"),
        ({"x": (lw.dim("n", max=3), 4)}, "bounds of x are what shapes= gives"),
        ({"x": 3}, "expect= gives the input 'x' the shape 3"),
        ([3], "expect= maps names of inputs to shapes"),
    ],
)
def test_what_cannot_be_expected_is_refused(expect, problem):
    x = lw.var("x", (te.var("n"), 4))
    with pytest.raises(lw.ModelError, match=problem):
        lw.compile(lw.Function([x], lw.nn.relu(x)), AVX512, expect=expect)


def test_usual_numbers_may_be_too_few_for_a_model():
    """A window of 400 samples does not fit into 128."""
    x = lw.var("x", (1, 4, te.var("time")))
    weights = np.ones((8, 4, 400), np.float32)
    function = lw.Function([x], lw.nn.relu(lw.nn.conv1d(x, lw.const(weights))))
    given = np.random.default_rng(0).random((1, 4, 500), np.float32)
    (found,) = lw.Engine(lw.compile(function))([given])
    assert found.shape == (1, 8, 101)
    np.testing.assert_allclose(found[0, 0, 0], given[0, :, :400].sum(), rtol=1e-4)


def test_one_dimension_has_one_number():
    n = te.var("n")
    x, y = lw.var("x", (n, 4)), lw.var("y", (n, 4))
    with pytest.raises(lw.ModelError, match="n is expected to be 2 and 3"):
        lw.explain(lw.Function([x, y], lw.nn.add(x, y)), AVX512, expect={"x": (2, 4), "y": (3, 4)})


def test_images_of_a_size_that_a_run_computes_are_expected_as_others_are():
    from loopwright.compiler.layout.expected_extents import expected_extents

    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        net (float[1, 64, height, width] x, float[2] scales) => (float[1, 64, p, q] y, int64[2, k] z) {
            image = Resize <mode = "linear", axes = [2, 3]> (x, , scales)
            y = Conv <pads = [1, 1, 1, 1]> (image, weight)
            flat = Flatten (image)
            z = NonZero (flat)
        }""")
    weight = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype(np.float32) / 24
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "weight"))
    shapes = {"x": (1, 64, None, None)}
    function = lw.from_onnx(model, shapes)
    numbers = expected_extents(function, None, {}).numbers
    assert sorted(numbers.values()) == [20] * 4, "of the input and of the image; nobody knows how many are not zero"
    explained = lw.explain(function, AVX512)
    assert any(c.implementation.startswith("open_winograd") for f in explained.functions for c in f.choices)
