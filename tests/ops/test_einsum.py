"""einsum against numpy's."""

import numpy as np
import pytest

from loopwright import TypeInferenceError, te
from loopwright.graph.types import tensor_type
from loopwright.ops.families.einsum import einsum

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("b...i,bi->b...", (2, 5, 4, 3), (2, 3)),
    ("ij,kj,kl->il", (2, 3), (4, 3), (4, 5)),
    (" i j , j -> i ", (2, 3), (3,)),
]


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS])
def test_einsum(ops, equation, shapes):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    wanted = np.einsum(equation.replace(" ", ""), *arrays)
    for native in (False, True):
        found = ops.apply(lambda *x: einsum(equation, x), *arrays, native=native)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_symbolic_extents(ops):
    n = te.var("n")
    made = einsum("bij,bjk->bik", [ops.var((n, 2, 3)), ops.var((n, 3, 4))])
    assert made.type is tensor_type((n, 2, 4), "float32")


def test_misuse_is_refused(ops):
    x, y = ops.var((2, 3)), ops.var((4, 5))
    for equation, tensors, message in (
        ("ij,jk->ik", [x], "does not fit 1 tensors"),
        ("i1->i", [x], "does not fit"),
        ("ij,jk->ik", [x, y], "extents 3 and 4 do not broadcast"),
        ("ijk->i", [x], "does not have a letter for each axis"),
        ("ij->ik", [x], "the result 'ik' must have letters of the terms, each once"),
        ("ij->ii", [x], "each once"),
        ("ij,ij->ij", [x, ops.var((2, 3), "int32")], "x0 is float32, but x1 is int32"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            einsum(equation, tensors)
