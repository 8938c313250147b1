"""Checks one case of onnxruntime's own operators that was changed at random: it gives what onnxruntime gives.

The cases are those of ``tests/frontend``. A change leaves an input or an attribute out, gives an attribute another
value, an input another type, a large number, or a dimension another extent, makes other inputs constants, or asks for
other outputs. What onnxruntime refuses says nothing.

Run as a script it is a server: a plan as JSON comes in a line, a line with the outcome goes out.
"""

import functools
import importlib
import json
import sys
import traceback
import warnings

import numpy as np
import python_path

sys.path.append(str(python_path.ROOT / "tests" / "frontend"))

from contrib_cases import contrib_case, contrib_model, in_onnxruntime
from onnx_cases import run
from onnxruntime.capi import onnxruntime_pybind11_state

MODULES = sorted(path.stem for path in (python_path.ROOT / "tests" / "frontend").glob("test_contrib_*.py"))
CASES = [case for name in MODULES for case in getattr(importlib.import_module(name), "CASES", ()) if not case.expected]
NUMBERS = {int: (0, 1, 2, 3, -1), float: (0.0, 1.0, 0.5, 2.0, 1e-3)}
"""Values of attributes, beside those that cases of the operator have."""
FLAGS = (0, 1)
"""What such numbers are drawn from where all cases have one of these: they mean yes and no."""
HOSTILE = (1e4, -1e4, 0.0, -0.0, 1e-30)
"""Finite ones: whether what is masked counts as 0 times itself, which an infinity shows, is the implementation's."""
EXTENTS = (0, 1, 2, 3, 7)
LEFT_OUT = {
    ("QMoE", "leave_out"),  # of missing scales onnxruntime's process may die
    ("QMoE", "other_constants"),  # weights that are constants are rounded once more there
    ("GroupQueryAttention", "other_extent"),  # of no samples onnxruntime's process may die
    ("GroupQueryAttention", "other_outputs"),  # past keys are not read there where nobody asks for the present ones
    ("MultiHeadAttention", "other_outputs"),  # the same
}
"""Changes that are left out."""
REFUSED = "refused by onnxruntime"
HALVES = 1e-2
"""The tolerance where tensors are of float16, if onnxruntime's own error is not larger."""
STEPPED = {
    "DynamicQuantizeLSTM": 2e-3,
    "DynamicQuantizeMatMul": 1e-3,
    "QAttention": 1e-3,
    "MatMulNBits": 1e-3,
    "Attention": 2e-3,
}
"""The tolerances of operators that round on the way, where one step more or less may follow: to integers, or scores
beside the large number that is added to those that a mask leaves out."""


def check(plan):
    """``{"error": …}``; ``"met"`` has the operator, or that onnxruntime refuses the model."""
    case = CASES[plan["case"] % len(CASES)]
    outcome = {"met": [case.op], "error": None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changed = changed_by(case, plan["changes"])
            wanted = _wanted(changed)
            if wanted is None:
                outcome["met"] = [REFUSED]
            else:
                precise = _wanted(in_float32(changed)) or wanted
                model = contrib_model(changed, plan["opened"] or _is_empty(changed))
                _compare(changed, run(model, changed.fed), wanted, precise)
    except Exception as error:
        what = f"{type(error).__name__}: {case.op} {case.label}: {error}"
        outcome["error"] = f"{what}\n{traceback.format_exc(limit=-4)}"
    return outcome


def _is_empty(case):
    """Whether an input has no elements: no file says so of what it declares, so its extents are left open."""
    return any(x is not None and not x.size for x in case.inputs)


def _wanted(case):
    """What onnxruntime gives; None where it refuses the model, or gives something else when it is asked again, as where
    it reads memory that nothing was written to."""
    try:
        first, second = (in_onnxruntime(contrib_model(case), case.fed) for _ in range(2))
    except Exception as error:
        if type(error).__module__.startswith("onnxruntime"):
            return None
        raise
    same = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, second, strict=True))
    return first if same else None


def _compare(case, found, wanted, precise):
    """Integers are as near as the case says; floats as near to what float32 gives as onnxruntime's are."""
    halves = any(x is not None and x.dtype == np.float16 for x in case.inputs)
    tolerance = max(10 * case.tolerance, STEPPED.get(case.op, 0.0), HALVES * halves)
    assert len(found) == len(wanted)
    for number, outputs in enumerate(zip(found, wanted, precise, strict=True)):
        a, b = outputs[:2]
        what = f"output {case.wanted[number]}"
        assert a.shape == b.shape, f"{what} has the shape {a.shape}, not {b.shape}"
        assert a.dtype == b.dtype, f"{what} is of {a.dtype}, not {b.dtype}"
        if a.dtype.kind in "iub":
            assert np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0) <= case.steps, f"{what} differs"
            continue
        a, b, exact = (x.astype(np.float64) for x in outputs)
        with np.errstate(invalid="ignore"):
            errors = np.abs(b - exact)
        allowed = 3 * errors[np.isfinite(errors)].max(initial=0) + tolerance * np.abs(b[np.isfinite(b)]).max(
            initial=1e-3
        )
        np.testing.assert_allclose(a, b, rtol=0, atol=allowed, err_msg=what)


def changed_by(case, changes):
    """The case with changes: names of functions below, each with two numbers that pick."""
    for name, first, second in changes:
        if (case.op, name) not in LEFT_OUT:
            case = CHANGES[name](case, first, second)
    return case


def _with(case, **fields):
    """The case with other inputs, attributes, outputs or constants."""
    known = {"inputs": case.inputs, "attrs": case.attrs, "wanted": case.wanted, "const": case.const} | fields
    inputs = list(known["inputs"])
    const = [k for k in known["const"] if inputs[k] is not None]
    rest = {"opened": case.opened, "steps": case.steps, "tolerance": case.tolerance, "label": case.label}
    return contrib_case(
        case.op, *inputs, wanted=known["wanted"], const=const, domain=case.domain, **rest, **known["attrs"]
    )


def _pick(values, number):
    return values[number % len(values)] if values else None


def _given(case, kind=lambda x: True):
    """The positions of the inputs that are given, and of that kind."""
    return [k for k, x in enumerate(case.inputs) if x is not None and kind(x)]


def _replaced(case, position, value):
    return _with(case, inputs=[value if k == position else x for k, x in enumerate(case.inputs)])


def leave_out(case, first, second):
    position = _pick([k for k in _given(case) if k in optional_positions(case.domain, case.op)], first)
    return case if position is None else _replaced(case, position, None)


@functools.cache
def optional_positions(domain, op):
    """The inputs that an operator may do without."""
    schemas = onnxruntime_pybind11_state.get_all_operator_schema()
    found = [schema for schema in schemas if (schema.domain, schema.name) == (domain, op)]
    optional = onnxruntime_pybind11_state.schemadef.OpSchema.FormalParameterOption.Optional
    return {k for schema in found for k, each in enumerate(schema.inputs) if each.option == optional}


def leave_out_attribute(case, first, second):
    name = _pick(sorted(case.attrs), first)
    return _with(case, attrs={k: v for k, v in case.attrs.items() if k != name})


def change_attribute(case, first, second):
    """Another value that a case of the operator has, or one of a few numbers."""
    others = [each for each in CASES if each.op == case.op]
    name = _pick(sorted({key for each in others for key in each.attrs}), first)
    if name is None:
        return case
    values = [each.attrs[name] for each in others if name in each.attrs]
    is_flag = all(value in FLAGS for value in values) and isinstance(values[0], int)
    values = [*values, *(FLAGS if is_flag else NUMBERS.get(type(values[0]), ()))]
    return _with(case, attrs=case.attrs | {name: _pick(values, second)})


def hostile_number(case, first, second):
    """One in a tensor; the scales of whole tensors stay."""
    position = _pick(_given(case, lambda x: x.dtype.kind == "f" and x.size > 1), first)
    if position is None:
        return case
    x = np.array(case.inputs[position])
    with np.errstate(over="ignore"):
        x.flat[(first * 31 + second) % x.size] = _pick(HOSTILE, second)
    return _replaced(case, position, x)


def other_extent(case, first, second):
    """One of the dimensions that may be open is longer or shorter, wherever it stands."""
    dims = "".join(case.opened.values()).replace(".", "")
    dim = _pick(sorted(set(dims)), first)
    inputs = list(case.inputs)
    for position, names in case.opened.items():
        for axis, name in enumerate(names):
            x = inputs[position] if position < len(inputs) else None
            if name == dim and x is not None:
                rows = np.arange(_pick(EXTENTS, second)) % max(x.shape[axis], 1)
                inputs[position] = x if not x.shape[axis] else np.take(x, rows, axis)
    return _with(case, inputs=inputs)


def halves(case, first, second):
    inputs = [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in case.inputs]
    return _with(case, inputs=inputs)


def in_float32(case):
    """The case with tensors of float32 for those of float16."""
    inputs = [x.astype(np.float32) if x is not None and x.dtype == np.float16 else x for x in case.inputs]
    return _with(case, inputs=inputs)


def other_constants(case, first, second):
    return _with(case, const=[k for k in _given(case)[1:] if first >> k & 1])


def other_outputs(case, first, second):
    return _with(case, wanted=sorted({0, *(k for k in range(max(case.wanted) + 1) if first >> k & 1)}))


CHANGES = {
    change.__name__: change
    for change in (
        leave_out, leave_out_attribute, change_attribute, hostile_number, other_extent, halves, other_constants,
        other_outputs,
    )
}  # fmt: skip


def serve():
    for line in sys.stdin:
        print(json.dumps(check(json.loads(line))), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve()
