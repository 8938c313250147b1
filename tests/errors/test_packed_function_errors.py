"""Mistakes with packed functions: names, registration, calls in graphs, exports."""

import numpy as np
import pytest

import loopwright as lw


def test_names_and_functions_are_checked():
    for name in ("", "a..b", "a b", ".a", 3):
        with pytest.raises(lw.LoopwrightError, match="the name of a function is identifiers with dots between them"):
            lw.register_func(name, print)
    with pytest.raises(lw.LoopwrightError, match=r"test\.number is registered for a function, found 3"):
        lw.register_func("test.number", 3)
    with pytest.raises(lw.LoopwrightError, match=r"there is no function 'test\.missing': register it by lw\.reg"):
        lw.get_func("test.missing")


def test_a_name_is_taken_once():
    lw.register_func("test.taken", print)
    with pytest.raises(lw.LoopwrightError, match=r"test\.taken is registered already; say override=True"):
        lw.register_func("test.taken", repr)
    assert lw.get_func("test.taken") is print
    assert lw.register_func("test.taken", repr, override=True) is lw.get_func("test.taken")


def test_calls_that_cannot_be_made():
    x = lw.var("x", (2,))
    with pytest.raises(lw.TypeInferenceError, match="function must be identifiers with dots between them"):
        lw.nn.extern("a b", x)
    with pytest.raises(lw.TypeInferenceError, match="extern takes the arguments x, found 0"):
        lw.nn.extern("test.f")
    with pytest.raises(lw.TypeInferenceError, match="its options are values of JSON"):
        lw.nn.extern("test.f", x, options={"by": {1}})
    call = lw.nn.extern("test.f", x, lw.const(np.float32(3)))
    with pytest.raises(lw.ModelError, match="an argument is a constant of one element; pass it in the options"):
        lw.compile(lw.Function([x], call), jobs=1)


def test_exports_have_no_functions_of_python(tmp_path):
    x = lw.var("x", (2,))
    library = lw.compile(lw.Function([x], lw.nn.extern("test.f", x)), jobs=1)
    with pytest.raises(lw.TargetError, match="model calls functions of Python, which exports do without: fused_extern"):
        library.export(tmp_path)
