"""Mistakes in making and calling engines: each is named, and nothing runs."""

import numpy as np
import pytest

import loopwright as lw


@pytest.fixture(scope="module")
def library():
    x = lw.var("x", (1, 3))
    return lw.compile(lw.Function((x,), lw.nn.relu(x)), jobs=1)


def test_an_engine_needs_a_library(library):
    for value in (library.model, "model.onnx", None):
        with pytest.raises(
            lw.RuntimeArgumentError, match=r"lw\.compile or lw\.load gives, not a (CompiledM|str|NoneT)"
        ):
            lw.Engine(value)


def test_a_bare_array_is_not_taken_for_a_list_of_its_rows(library):
    for value in (np.ones((1, 3), np.float32), None, "x"):
        with pytest.raises(lw.RuntimeArgumentError, match="takes a list of arrays, or a mapping from names to arrays"):
            lw.Engine(library)(value)


def test_outputs_are_asked_for_by_number(library):
    engine = lw.Engine(library)
    engine.set_input(0, np.ones((1, 3), np.float32))
    engine.run()
    for index in ("output0", -1, 1):
        with pytest.raises(lw.RuntimeArgumentError, match=f"has 1 outputs, there is no number {index!r}"):
            engine.get_output(index)
