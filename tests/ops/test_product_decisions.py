"""What products decide by name: every legal value compiles, and gives the bits that the defaults give."""

import dataclasses

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pairs import each_value
from test_every_operator import blockwise_panels

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import candidates_of
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of

TARGET = lw.resolve_target("x86-64-v3")
NAMES = ["pack", "rows", "vectors", "packs_chunks", "chunk", "copies_rows", "steps", "ahead", "blocks"]


def product(left, right, kind="float32"):
    return lw.nn.matmul(lw.var("a", left, kind), lw.var("b", right, kind))


def dense(left, right, kind="float32"):
    return lw.nn.dense(lw.var("a", left, kind), lw.var("b", right, kind))


PANELS = (
    ("packed_matmul.blocked", lw.nn.packed_matmul(lw.var("a", (13, 24)), lw.var("p", (3, 24, 16)), 37)),
    (
        "packed_byte_matmul.words",
        lw.nn.packed_byte_matmul(lw.var("a", (13, 22), "int8"), lw.var("p", (3, 6, 16), "int32"), 37, "int8"),
    ),
)


def few_bits(rows):
    """A product by 37 columns of 24 terms of 4 bits, in blocks of 8."""
    weight = [lw.var(name, (3, 3, 16), kind) for name, kind in (("p", "int32"), ("z", "uint8"), ("s", "float32"))]
    return lw.nn.packed_blockwise(lw.var("a", (rows, 24)), *weight, columns=37, bits=4, block=8)


PRODUCTS = (
    *PANELS,
    ("packed_blockwise.words", few_bits(5)),
    ("packed_blockwise.panels", few_bits(20)),
    ("matmul.paneled", product((13, 24), (24, 37))),
    ("matmul.paneled", product((2, 26, 24), (2, 24, 32))),
    ("matmul.paneled", product((20, 512), (512, 80))),
    ("matmul.paneled", dense((13, 24), (37, 24))),
    ("matmul.few_rows", product((3, 25), (25, 37))),
    ("matmul.streamed", product((2, 300), (300, 1100))),
    ("matmul.streamed", product((24, 300), (300, 1100))),
    ("matmul.long", product((20, 4096), (4096, 16))),
    ("matmul.bytes", product((13, 22), (22, 37), "int8")),
    ("matmul.bytes", dense((13, 24), (37, 24), "uint8")),
    ("matmul.bytes_few_rows", product((3, 22), (22, 37), "int8")),
    ("matmul.widened", product((13, 24), (24, 37), "float16")),
    ("matmul.widened", dense((13, 24), (37, 24), "float16")),
)


def implementation(name, call, target=TARGET):
    return next(c.implementation for c in candidates_of(call, CompileSettings(target)) if c.implementation.name == name)


def arrays_of(call):
    rng = np.random.default_rng(0)
    for argument in call.args:
        kind = argument.type.dtype.to_numpy()
        shape = argument.type.static_shape
        yield (rng.integers(0, 100, shape) if kind.kind in "iu" else rng.standard_normal(shape)).astype(kind)


def right_factor(call, right, *others):
    """The right factor of a call as rows of terms, of panels and rows of columns as well."""
    if call.op.name == "nn.packed_blockwise":
        return blockwise_panels(right, *others, bits=4, block=8)[:24, :37]
    if call.op.name == "nn.dense":
        return right.T
    if call.op.name == "nn.packed_byte_matmul":
        right = right[..., None].view("int8").swapaxes(2, 3).reshape(right.shape[0], -1, right.shape[2])[:, :22]
    if call.op.name.startswith("nn.packed"):
        return right.swapaxes(0, 1).reshape(right.shape[1], -1)[:, :37]
    return right


def wanted(call, arrays, bias):
    """The product by numpy, in float64 or int64; with bias and relu if there is a bias."""
    wide = np.float64 if call.type.dtype.is_float else np.int64
    found = arrays[0].astype(wide) @ right_factor(call, *arrays[1:]).astype(wide)
    return found if bias is None else np.maximum(found + bias, 0)


def run(made, call, arrays, bias, target=TARGET):
    """The product by the schedule of an implementation, with a bias and relu fused behind it if there is a bias."""
    inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, f"p{k}") for k, a in enumerate(call.args))
    computed = made.computed(call.op.name, call.attrs, inputs, call.type)
    (result,) = outputs_of(computed)
    if bias is not None:
        added, zero = te.placeholder(bias.shape, result.dtype, "bias"), te.const(0, result.dtype)
        product = result
        biased = te.compute(result.shape, lambda *i: product[i] + added[i[-1]], name="biased")
        result = te.compute(result.shape, lambda *i: te.maximum(biased[i], zero), name="rectified")
        inputs, arrays = (*inputs, added), (*arrays, bias)
    schedule = made.scheduled(call.op.name, call.attrs, computed, (result,), target)
    assert not schedule.departures
    found = np.empty(call.type.static_shape, result.dtype.to_numpy())
    lw.build(schedule, [*inputs, result], target=target)(*arrays, found)
    return found


def walk(made, call, choose):
    """Values for all decisions, one after the other."""
    decided = {}
    while (names := [d for d in made.decisions(call, TARGET, decided) if d.name not in decided]) != []:
        decided[names[0].name] = choose(names[0].legal)
    return decided


def check(name, call, fused, several):
    """That each of several choices gives the bits of the default, which is what numpy gives, rounded."""
    made, arrays = implementation(name, call), tuple(arrays_of(call))
    kind = call.type.dtype.to_numpy()
    bias = (np.arange(call.type.static_shape[-1]) - 20).astype(kind) if fused else None
    plain = run(made, call, arrays, bias)
    tolerance = {"float16": 2e-2, "float32": 1e-4, "int32": 0}[str(call.type.dtype)]
    exact = wanted(call, arrays, bias)
    np.testing.assert_allclose(plain, exact, rtol=tolerance, atol=tolerance * max(1, np.abs(exact).max() / 100))
    for decided in several:
        found = run(made.configured(decided), call, arrays, bias)
        np.testing.assert_array_equal(found, plain, err_msg=str(decided))


@each_value(product=range(len(PRODUCTS)), fused=[False, True])
@settings(max_examples=1, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_values_on_a_random_walk_give_the_bits_of_the_defaults(product, fused, data):
    name, call = PRODUCTS[product]
    made = implementation(name, call)
    check(name, call, fused, [walk(made, call, lambda legal: data.draw(st.sampled_from(legal)))])


@pytest.mark.slow
@pytest.mark.parametrize("fused", [False, True], ids=["alone", "fused"])
@pytest.mark.parametrize(("name", "call"), PRODUCTS, ids=str)
def test_every_legal_value_of_every_decision_gives_the_bits_of_the_defaults(name, call, fused):
    known = implementation(name, call).decisions(call, TARGET)
    check(name, call, fused, [{d.name: value} for d in known for value in d.legal if value != d.default])


def quarters(shape, width, panels):
    """A product of samples by planes as Strassen's quarters have them."""
    return lw.nn.strassen_matmul(lw.var("a", shape), lw.var("p", (panels, 7, shape[-1] // 2, width)))


def test_all_blockings_of_quarters_give_the_bits_of_the_default():
    call = quarters((2, 29, 32), 16, 2)
    made, arrays = implementation("strassen_matmul.panels", call), tuple(arrays_of(call))
    plain = run(made, call, arrays, None)
    known = {d.name: d for d in made.decisions(call, TARGET)}
    assert sorted(known) == ["ahead", "by_group", "group", "rows", "vectors"]
    assert not any(d.reorders_sum for d in known.values())
    for d in known.values():
        for value in d.legal:
            found = run(made.configured({d.name: value}), call, arrays, None)
            np.testing.assert_array_equal(found, plain, err_msg=f"{d.name} {value}")


def test_a_product_names_what_it_decides_and_none_of_it_changes_the_order_of_a_sum():
    call = product((96, 256), (256, 128))
    known = lw.decisions(call, "x86-64-v3")
    assert [d.name for d in known] == NAMES
    assert not any(d.reorders_sum for d in known)
    assert all(d.value == d.default for d in known)


@pytest.mark.parametrize("rows", range(1, 15))
def test_legal_tiles_are_those_whose_sums_fit_the_registers(rows):
    call = product((96, 256), (256, 128))
    (vectors,) = [d for d in lw.decisions(call, "x86-64-v3", decided={"rows": rows}) if d.name == "vectors"]
    widest = max(vectors.legal)
    assert vectors.legal == tuple(range(1, widest + 1))
    assert widest * rows + widest + 1 <= 16 < (widest + 1) * rows + (widest + 1) + 1


def test_panels_that_are_packed_already_keep_their_width():
    name, call = PANELS[0]
    known = {d.name: d for d in lw.decisions(call, "x86-64-v3", name)}
    assert (known["vectors"].legal, known["pack"].legal, known["packs_chunks"].legal) == ((2,), (False,), (False,))
    assert known["rows"].legal == (1, 2, 3, 4, 5, 6)


def test_strict_precision_takes_what_was_decided_for_a_product():
    call = product((24, 20), (20, 40))
    record = lw.TuningRecord.of(call, TARGET, "matmul.paneled", [1e-6], decisions={"rows": 3, "pack": True})
    library = lw.compile(
        lw.Function(list(call.args), call), TARGET, precision="strict", records=lw.TuningRecords([record])
    )
    (choice,) = library.functions[0].choices
    assert (choice.implementation, choice.notes) == ("matmul.paneled", ())


def test_unknown_implementations_and_decisions_are_named():
    call = product((24, 20), (20, 40))
    with pytest.raises(lw.SelectionError, match=r"no implementation 'matmul\.gone' here; there are matmul\.direct"):
        lw.decisions(call, "x86-64-v3", "matmul.gone")
    with pytest.raises(lw.ScheduleError, match=r"paneled has no decision 'row': did you mean 'rows'\? it decides pack"):
        lw.decisions(call, "x86-64-v3", "matmul.paneled", {"row": 4})
    with pytest.raises(lw.RuntimeArgumentError, match="decisions takes a call of an operator"):
        lw.decisions(lw.var("x", (4,)), "x86-64-v3")


def test_a_schedule_that_loses_the_values_is_an_error_that_says_how_to_keep_them():
    def schedule(attrs, anchor, outputs, target):
        s = lw.create_schedule(list(outputs))
        s.decide("rows", [1, 2], 1)
        return s

    call = product((24, 20), (20, 40))
    made = dataclasses.replace(implementation("matmul.direct", call), schedule=schedule)
    assert [d.name for d in made.decisions(call, TARGET)] == ["rows"]
    with pytest.raises(lw.SelectionError, match="loses the values that are decided: give create_schedule its outputs"):
        made.decisions(call, TARGET, {"rows": 2})
