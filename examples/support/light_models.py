"""The nine models that ship inside the onnx package, made fit for tests: their weights are all one number, so that
matching their outputs proves nothing. Here every weight is replaced by a seeded random one.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def names() -> list[str]:
    """The names of the models, such as ``resnet50``."""
    return sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("light_*.onnx"))


def with_random_weights(name: str, seed: int = 0, intermediates: int = 8) -> ModelProto:
    """A model with He-normal weights and plausible batch-norm statistics.

    Its first output is the tensor before the final softmax, if it ends in one; some intermediate values follow.
    """
    model: ModelProto = ModelProto.FromString((FOLDER / f"light_{name}.onnx").read_bytes())
    rng = np.random.default_rng(seed)
    roles = _roles(model)
    kept: list[NodeProto] = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.output[0] in roles:
            model.graph.initializer.append(_tensor(node.output[0], _constant_shape(model, node), roles, rng))
        else:
            kept.append(node)
    for index, initializer in enumerate(model.graph.initializer):
        if initializer.name in roles and initializer.data_type == TensorProto.FLOAT:
            model.graph.initializer[index].CopyFrom(_tensor(initializer.name, tuple(initializer.dims), roles, rng))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    _expose(model, intermediates)
    return model


def _roles(model: ModelProto) -> dict[str, str]:
    """What each weight is, by the operator that reads it, be it reshaped before."""
    summed = {name for node in model.graph.node if node.op_type == "Sum" for name in node.input}
    roles: dict[str, str] = {}
    for node in reversed(model.graph.node):
        match node.op_type:
            case "Conv":
                roles.update(zip(node.input[1:], ("filters", "bias"), strict=False))
            case "Gemm":
                roles.update(zip(node.input[1:], ("matrix", "bias"), strict=False))
            case "BatchNormalization":
                scale = "residual scale" if node.output[0] in summed else "scale"
                roles.update(zip(node.input[1:], (scale, "bias", "bias", "variance"), strict=True))
            case "Mul" | "Add":
                roles[node.input[1]] = "scale" if node.op_type == "Mul" else "bias"
            case "Unsqueeze" | "Reshape" if node.output[0] in roles:
                roles[node.input[0]] = roles[node.output[0]]
            case _:
                pass
    produced = {o for node in model.graph.node if node.op_type != "ConstantOfShape" for o in node.output}
    fed = {i.name for i in model.graph.input} - {i.name for i in model.graph.initializer}
    return {name: role for name, role in roles.items() if name not in produced | fed}


def _tensor(name: str, shape: tuple[int, ...], roles: dict[str, str], rng: np.random.Generator) -> TensorProto:
    """Scales are such that activations keep their magnitude, through residual sums too: then no bias drowns."""
    match roles[name]:
        case "filters":
            value = rng.standard_normal(shape, np.float32) * np.sqrt(2 / np.prod(shape[1:]), dtype=np.float32)
        case "matrix":
            value = rng.standard_normal(shape, np.float32) * np.sqrt(2 / shape[-1], dtype=np.float32)
        case "scale":
            value = rng.uniform(0.65, 1.25, shape)
        case "residual scale":
            value = rng.uniform(0.3, 0.6, shape)
        case "variance":
            value = rng.uniform(0.5, 1.5, shape)
        case _:
            value = rng.standard_normal(shape) * 0.1
    return numpy_helper.from_array(value.astype(np.float32), name)


def _constant_shape(model: ModelProto, node: NodeProto) -> tuple[int, ...]:
    (shape,) = (i for i in model.graph.initializer if i.name == node.input[0])
    return tuple(int(extent) for extent in numpy_helper.to_array(shape))


def _expose(model: ModelProto, count: int) -> None:
    """Make the input of a final softmax and evenly spaced activations outputs."""
    last = model.graph.node[-1]
    (output,) = (o for node in model.graph.node for o in node.output if o == model.graph.output[0].name)
    before = last.input[0] if last.op_type == "Softmax" else output
    activations = [
        node.output[0]
        for node in model.graph.node
        if node.op_type in ("Relu", "Conv", "MaxPool", "Concat", "LRN", "AveragePool", "Gemm")
        and node.output[0] != before
    ]
    step = max(1, len(activations) // max(count, 1))
    chosen = activations[::step][:count] if count else []
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in [before, *chosen])
