"""``evaluate``: the value of a graph, an operator at a time, by the compute that selection chooses for each call."""

from types import SimpleNamespace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import dtype
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Call, Constant, Tuple, TupleGet, Var
from loopwright.graph.types import TensorType, TupleType, tensor_type
from loopwright.graph.visit import post_order
from loopwright.ir.constants import const_int
from loopwright.ir.contents import substitute
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.definition.registry import op_of


def sizes_of(feeds):
    """The symbolic dimensions, by the arrays that are fed."""
    found = {}
    for var, array in feeds.items():
        for extent, number in zip(var.type.shape, array.shape, strict=True):
            if const_int(extent) is None:
                found[extent] = as_index(number)
    return found


def concrete(shape, sizes):
    return tuple(int(simplify(substitute(extent, sizes))) for extent in shape)


def implement(call, target="native"):
    """The implementation chosen for a call, its input tensors, and what it computes: see ``outputs_of``."""
    target = lw.resolve_target(target)
    chosen = select_implementation(call, CompileSettings(target)).chosen
    tensors = tuple(te.placeholder(a.type.shape, a.type.dtype, name=f"x{k}") for k, a in enumerate(call.args))
    computed = chosen.computed(call.op.name, call.attrs, tensors, call.type)
    outputs = outputs_of(computed)
    wanted = call.type.fields if isinstance(call.type, TupleType) else (call.type,)
    assert [(o.dtype, len(o.shape)) for o in outputs] == [(w.dtype, w.ndim) for w in wanted]
    assert all(a is b for o, w in zip(outputs, wanted, strict=True) for a, b in zip(o.shape, w.shape, strict=True))
    return chosen, tensors, computed


def run_call(call, arrays, sizes, native, target="native"):
    target = lw.resolve_target(target)
    chosen, tensors, computed = implement(call, target)
    outputs = outputs_of(computed)
    results = tuple(np.empty(concrete(o.shape, sizes), o.dtype.to_numpy()) for o in outputs)
    if native:
        schedule = chosen.schedule(call.attrs, computed, outputs, target)
        lw.build(schedule, [*tensors, *outputs], target=target)(*arrays, *results)
    else:
        schedule = lw.create_schedule(list(outputs))
        lw.interpret(lw.lower(schedule, [*tensors, *outputs]))(*arrays, *results)
    return results


def evaluate(node, feeds=None, native=False, target="native"):
    """The array (for a tuple, the arrays) that a node stands for; ``feeds`` gives an array a variable.

    By default each operator runs by the interpreter on its naive loop nest. ``native`` runs machine code, by the
    schedule that belongs to the implementation. ``target`` is whose implementation that is.
    """
    feeds = feeds or {}
    sizes = sizes_of(feeds)
    values = {}
    for n in post_order(node):
        match n:
            case Var():
                values[n] = np.asarray(feeds[n])
            case Constant(value):
                values[n] = value
            case Tuple(fields):
                values[n] = tuple(values[f] for f in fields)
            case TupleGet(value, index):
                values[n] = values[value][index]
            case Call(args=args) if (birth := op_of(n).birth(n)) is not None:
                numbers = [int(number) for number in values[args[0]]]
                sizes |= dict(zip(birth.extents, map(as_index, numbers), strict=True))
                values[n] = np.zeros(numbers, bool)
            case Call(args=args):
                results = run_call(n, [np.asarray(values[a], order="C") for a in args], sizes, native, target)
                values[n] = results[0] if isinstance(n.type, TensorType) else results
    return values[node]


def var_for(array, name="x"):
    """A graph variable of an array's type."""
    array = np.asarray(array)
    return Var(name, tensor_type(array.shape, dtype(array.dtype)))


def apply(op, *arrays, native=False, target="native", **attrs):
    """``op(*variables, **attrs)`` on arrays."""
    variables = [var_for(a, f"x{k}") for k, a in enumerate(arrays)]
    feeds = {v: np.asarray(a) for v, a in zip(variables, arrays, strict=True)}
    return evaluate(op(*variables, **attrs), feeds, native=native, target=target)


def check_product_with_epilogue(call, implementation, target, tolerance):
    """A product with bias and relu in its nest, the product itself an output or not, against numpy."""
    chosen, tensors, computed = implement(call, target)
    (product,) = outputs_of(computed)
    assert chosen.name == implementation
    bias = te.placeholder(product.shape[-1:], name="bias")
    out = te.compute(product.shape, lambda *i: te.maximum(product[i] + bias[i[-1]], 0.0), name="out")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[int(e) for e in t.shape]).astype(np.float32) for t in (*tensors, bias)]
    wanted = arrays[0].astype(np.float64) @ arrays[1]
    for outputs in ([out], [product, out]):
        schedule = chosen.schedule(call.attrs, computed, tuple(outputs), target)
        found = [np.empty(wanted.shape, np.float32) for _ in outputs]
        lw.build(schedule, [*tensors, bias, *outputs], target=target)(*arrays, *found)
        np.testing.assert_allclose(found[-1], np.maximum(wanted + arrays[2], 0), rtol=tolerance, atol=tolerance)
        if outputs[0] is product:
            np.testing.assert_allclose(found[0], wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="session")
def ops():
    """``ops.evaluate(node, feeds)``, ``ops.apply(maker, *arrays, **attrs)``, ``ops.var(shape, dtype)``: see above."""
    return SimpleNamespace(
        evaluate=evaluate,
        apply=apply,
        implement=implement,
        check_product_with_epilogue=check_product_with_epilogue,
        var=lambda shape, kind="float32", name="x": Var(name, tensor_type(shape, kind)),
    )
