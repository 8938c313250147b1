"""Random computes × random primitives, legal or not: what is accepted computes the same, what is refused says so."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright.lowering.pipeline import realized_function
from loopwright.lowering.same_state import same_state

FORMS = (
    "any", "arg", "double", "flatten", "fold", "gather", "half", "map", "matmul", "moments", "pad", "reduce",
    "reverse", "stencil", "transpose", "two", "window", "zip",
)  # fmt: skip
PRIMITIVES = (
    "split", "split", "tile", "fuse", "reorder", "vectorize", "vectorize", "unroll", "parallel", "compute_at",
    "compute_at", "compute_inline", "compute_root", "cache_read", "cache_write",
    "rfactor", "rfactor", "reverse_compute_at", "reverse_compute_at",
)  # fmt: skip
NUMBERS = (4, 1, 2, 3, 5, 8, 16, 0, -1, 11, 13)  # factors; 11 also names loops that stand no more, 13 also inputs

small = st.integers(0, 5)
plans = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["int32", "float32", "float64", "int8", "uint8"]),
        "sizes": st.lists(st.sampled_from([3, 0, 1, 2, 4, 5, 7, 8, 11, 13]), min_size=2, max_size=2),
        "symbolic": st.lists(st.booleans(), min_size=2, max_size=2),
        "stages": st.lists(
            st.tuples(st.sampled_from(FORMS), st.sampled_from([0, 0, 0, 1, 2, 3]), small, st.integers(0, 39)),
            min_size=1,
            max_size=4,
        ),
        "extra": small,
        "steps": st.lists(
            st.tuples(st.sampled_from(PRIMITIVES), small, small, st.integers(0, 7), st.sampled_from(NUMBERS)),
            min_size=1,
            max_size=9,
        ),
        "seed": st.integers(0, 99),
        "target": st.integers(0, 2),
    }
)


def unscheduled(program, plan):
    """The arrays after the naive nest, which no pass has touched, ran in the interpreter."""
    arrays = program.arrays(plan["seed"])
    lw.interpret(realized_function(lw.create_schedule(program.outputs), program.args))(*arrays)
    return arrays


def assert_same(program, found, expected, text):
    """Integers bit for bit; floats within a few roundings, and only products need them: else all are whole numbers."""
    for tensor, x, y in zip(program.args, found, expected, strict=True):
        if tensor.dtype.is_float:
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=0, err_msg=f"{tensor.name}\n{text}")
        else:
            np.testing.assert_array_equal(x, y, err_msg=f"{tensor.name}\n{text}")


def test_the_lists_of_this_test_are_complete(random_schedules):
    assert list(FORMS) == random_schedules.FORMS
    steps = {"split", "fuse", "reorder", "vectorize", "unroll", "parallel", "compute_at", "compute_inline"}
    steps |= {"compute_root", "cache_read", "cache_write", "tile", "rfactor", "reverse_compute_at"}
    assert steps == set(PRIMITIVES)


@given(plan=plans)
def test_schedules_in_the_interpreter(random_schedules, plan):
    program = random_schedules.make_program(plan)
    s, _ = random_schedules.make_schedule(program, plan)
    again = lw.create_schedule(program.outputs)
    again.replay(lw.Trace.from_json(s.trace.to_json()))
    printed = lw.create_schedule(program.outputs)
    exec(s.trace.python(), {"s": printed})
    assert same_state(again.state, s.state)
    assert same_state(printed.state, s.state)
    assert str(again) == str(s)
    func = lw.lower(s, program.args, target="x86-64-v3")  # verifies after each pass
    arrays = program.arrays(plan["seed"])
    lw.interpret(func)(*arrays)
    assert_same(program, arrays, unscheduled(program, plan), f"{s}\n{func}")


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(plan=plans, sizes=st.lists(st.integers(0, 20), min_size=2, max_size=2))
def test_traces_on_other_shapes(random_schedules, plan, sizes):
    s, _ = random_schedules.make_schedule(random_schedules.make_program(plan), plan)
    other_plan = plan | {"sizes": sizes}
    program = random_schedules.make_program(other_plan)
    other = lw.create_schedule(program.outputs)
    refusal = None
    try:
        other.replay(s.trace)
    except lw.TraceError as error:
        refusal = error
    if refusal is not None:
        assert str(s.trace[refusal.step - 1]) in str(refusal)
        assert len(other.trace) == 0
        return
    assert other.trace.to_json() == s.trace.to_json()
    func = lw.lower(other, program.args, target="x86-64-v3")
    arrays = program.arrays(plan["seed"])
    lw.interpret(func)(*arrays)
    assert_same(program, arrays, unscheduled(program, other_plan), f"{other}\n{func}")


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(plan=plans)
def test_schedules_in_native_code(random_schedules, run_native, plan):
    answer = run_native(plan)
    assert "error" not in answer, answer["error"]
    program = random_schedules.make_program(plan)
    expected = unscheduled(program, plan)[len(program.inputs) :]
    s, _ = random_schedules.make_schedule(program, plan)
    for tensor, x, y in zip(program.outputs, answer["outputs"], expected, strict=True):
        found = np.array(x, float).reshape(y.shape)
        np.testing.assert_allclose(found, y.astype(float), rtol=1e-6, atol=0, err_msg=f"{tensor.name}\n{s}")


@given(plan=plans, number=st.integers(0, 2))
@settings(max_examples=max(settings().max_examples // 2, 1))
def test_the_default_schedule(random_schedules, plan, number):
    program = random_schedules.make_program(plan)
    s = lw.default_schedule(program.outputs, target=random_schedules.TARGETS[number])
    func = lw.lower(s, program.args, target=random_schedules.TARGETS[number])
    arrays = program.arrays(plan["seed"])
    lw.interpret(func)(*arrays)
    assert_same(program, arrays, unscheduled(program, plan), f"{s}\n{func}")
