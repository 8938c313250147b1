"""Tuples whole as arguments, parameters and results: the models of ``support/tuple_models.py``, in a process
of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.graph import Function, Tuple, TupleGet, TupleType, Var, tensor_type

MODELS = Path(__file__).parents[1] / "support" / "tuple_models.py"
NAMES = [line[4:-3] for line in MODELS.read_text().splitlines() if line.startswith("def ") and line.endswith("():")]


@pytest.fixture(scope="module")
def outcomes():
    """What became of each model, by its name; those behind one that ended the process are missing."""
    command = [sys.executable, str(MODELS)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    told = (part.strip().partition(": ") for part in done.stdout.split("\0"))
    return {name: outcome for name, _, outcome in told} | {"": f"exit code {done.returncode}: {done.stderr[-2000:]}"}


@pytest.mark.parametrize("name", NAMES)
def test_tuples_pass_through_models(outcomes, name):
    assert outcomes.get(name, outcomes[""]) == "ok"


def test_a_tuple_that_is_no_parameter_is_told():
    pair = Var("pair", TupleType((tensor_type((2,), "float32"),) * 2))
    body = lw.nn.add(TupleGet(pair, 0), TupleGet(pair, 1))
    with pytest.raises(lw.ModelError, match=r"pair: \(float32\[2\], float32\[2\]\) is used, but is none of the param"):
        lw.compile(Function([], body), jobs=1)


def test_names_of_results_are_of_all_members_or_of_what_the_function_gives():
    x = lw.var("x", (2,))
    function = Function([x], Tuple((Tuple((x, x, x)), x)), output_names=("a", "b", "c"))
    expected = r"model gives .* that is 4 tensors, but output_names are \('a', 'b', 'c'\)"
    with pytest.raises(lw.ModelError, match=expected):
        lw.compile(function, jobs=1)


def test_operators_of_any_number_of_tensors_say_what_they_take():
    x = lw.var("x", (2,))
    for given, found in (
        (3, "expected a list of nodes, found 3"),
        ([x, 3], "expected a node, found a int"),
        ("x", "'x'"),
    ):
        with pytest.raises(lw.TypeInferenceError, match=found):
            lw.nn.concatenate(given)
    with pytest.raises(lw.TypeInferenceError, match="concatenate needs at least one tensor"):
        lw.nn.concatenate(Tuple(()))
