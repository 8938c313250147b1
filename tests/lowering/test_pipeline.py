"""The passes in order: what they make is verified."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.errors import VerificationError
from loopwright.ir.build import index_var
from loopwright.ir.stmt import Evaluate, seq
from loopwright.ir.visit import with_body
from loopwright.lowering import pipeline


def test_an_error_names_the_pass_behind_which_a_function_is_first_wrong(monkeypatch):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    own = pipeline.passes

    def with_a_fault(target, debug):
        found = own(target, debug)
        unknown = Evaluate(index_var("nowhere"))
        fault = ("fault", lambda func: with_body(func, seq(func.body, unknown)))
        return [*found[:2], fault, *found[2:]]

    monkeypatch.setattr(pipeline, "passes", with_a_fault)
    with pytest.raises(VerificationError, match=r"after fault: .*nowhere"):
        lw.lower(lw.create_schedule(B), [A, B])
