"""Cases of onnxruntime's own operators, against onnxruntime, with extents known and open."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_cases import Case, compare, run

import loopwright as lw

OPSET = 21


class ContribCase(Case):
    """``opened`` names the axes of an input that are open, by its number: ``{0: "BS."}``, where a dot is a known one.
    ``wanted`` are the outputs that are asked for; others have no name. ``steps`` are how far integers may be off.
    ``model_opset`` is the model's set of ONNX's operators."""

    opened: dict
    wanted: tuple
    steps: int
    model_opset: int


def contrib_case(op, *inputs, wanted=1, const=(), opened=(), steps=0, tolerance=1e-5, expected=None, label="",
                 domain="com.microsoft", model_opset=OPSET, **attrs):  # fmt: skip
    known = tuple(None if x is None else np.asarray(x, order="C") for x in inputs)
    outputs = tuple(range(wanted)) if isinstance(wanted, int) else wanted
    made = ContribCase(op, (1,), known, attrs, const, len(outputs), expected, tolerance, label, domain)
    made.opened, made.wanted, made.steps, made.model_opset = dict(opened), outputs, steps, model_opset
    return made


def contrib_model(case, opened=False):
    names = ["" if x is None else f"x{k}" for k, x in enumerate(case.inputs)]
    outputs = [f"y{k}" if k in case.wanted else "" for k in range(max(case.wanted) + 1)]
    node = helper.make_node(case.op, names, outputs, name="node", domain=case.domain, **case.attrs)
    infos = []
    for name, value in case.fed.items():
        dims = list(value.shape)
        for axis, dimension in enumerate(case.opened.get(int(name[1:]), "") if opened else ""):
            dims[axis] = dims[axis] if dimension == "." else dimension
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), dims))
    results = [helper.make_empty_tensor_value_info(f"y{k}") for k in case.wanted]
    stored = [numpy_helper.from_array(case.inputs[k], f"x{k}") for k in case.const]
    graph = helper.make_graph([node], "test", infos, results, stored)
    opsets = [helper.make_opsetid("", case.model_opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def in_onnxruntime(model, feeds, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
    """What onnxruntime gives with one thread, by default node by node as the model says."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.intra_op_num_threads, options.log_severity_level = level, 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def check_contrib(case, opened=False):
    """An operator gives what onnxruntime gives, or ``expected`` where its CPU provider lacks it."""
    model = contrib_model(case, opened)
    found = run(model, case.fed)
    if case.expected is None:
        wanted = in_onnxruntime(contrib_model(case), case.fed)
    else:
        made = case.expected(*case.inputs)
        wanted = made if isinstance(made, tuple) else (made,)
    whole = [k for k, x in enumerate(wanted) if case.steps and x.dtype.kind in "iu"]
    for k in whole:
        assert found[k].shape == wanted[k].shape
        assert found[k].dtype == wanted[k].dtype
        assert np.abs(found[k].astype(np.int64) - wanted[k].astype(np.int64)).max(initial=0) <= case.steps
    rest = [k for k in range(len(wanted)) if k not in whole]
    assert len(found) == len(wanted)
    compare([found[k] for k in rest], [wanted[k] for k in rest], case.tolerance)


def each_extents(cases):
    """A mark: the test is of each case, with its extents known, and open where the case says which may be. Of a case
    with both forms one is among the slow tests, now this one, now that one."""
    forms = [
        pytest.param(
            case,
            opened,
            id=f"{case.op}-{case.label}{'-open' * opened}",
            marks=pytest.mark.slow if case.opened and opened == bool(number % 2) else (),
        )
        for number, case in enumerate(cases)
        for opened in (False, True)
        if case.opened or not opened
    ]
    return pytest.mark.parametrize(("case", "opened"), forms)


def check_refused(case, message):
    """An operator that is not converted says why."""
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(contrib_model(case))
