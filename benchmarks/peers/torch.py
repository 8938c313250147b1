"""torch, eager, as its users call it: one of its fused functions where it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as nn

from .steps import Attributes, Make, steps


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[Any]]:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return steps(path, inputs, TABLE, _tensor)


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:  # numpy has none that torch could take over
        return torch.from_numpy(np.array(array.view(np.int16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _plain(function: Callable[..., Any]) -> Make:
    return lambda attributes: function


def _symmetric(attributes: Attributes) -> list[int]:
    """Padding that is the same before and after; torch knows no other."""
    pads = list(attributes["pads"])
    before, after = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    if before != after:
        raise ValueError(f"padding {pads} differs between sides")
    return before


def _conv(attributes: Attributes) -> Callable[..., Any]:
    functions = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
    padding = _symmetric(attributes) if "pads" in attributes else 0
    strides, dilations = attributes.get("strides", 1), attributes.get("dilations", 1)
    groups = attributes.get("group", 1)
    return lambda x, w, b=None: functions[w.ndim - 2](x, w, b, strides, padding, dilations, groups)


def _conv_transpose(attributes: Attributes) -> Callable[..., Any]:
    functions = {1: nn.conv_transpose1d, 2: nn.conv_transpose2d, 3: nn.conv_transpose3d}
    padding = _symmetric(attributes) if "pads" in attributes else 0
    strides, groups = attributes.get("strides", 1), attributes.get("group", 1)
    return lambda x, w, b=None: functions[w.ndim - 2](x, w, b, strides, padding, 0, groups)


def _pool(function: Callable[..., Any], counts_padding: bool = False) -> Make:
    def make(attributes: Attributes) -> Callable[..., Any]:
        kernel, strides = attributes["kernel_shape"], attributes.get("strides", [1, 1])
        padding = _symmetric(attributes) if "pads" in attributes else 0
        own = {"count_include_pad": bool(attributes.get("count_include_pad", 0))} if counts_padding else {}
        return lambda x: function(x, kernel, strides, padding, ceil_mode=bool(attributes.get("ceil_mode", 0)), **own)

    return make


def _reduce(function: Callable[..., Any]) -> Make:
    def make(attributes: Attributes) -> Callable[..., Any]:
        keep, made = bool(attributes.get("keepdims", 1)), []

        def call(x: Any, axes: Any) -> Any:
            if not made:
                made.append(tuple(axes.tolist()))
            return function(x, made[0], keep)

        return call

    return make


def _layer_norm(attributes: Attributes) -> Callable[..., Any]:
    return lambda x, w, b: nn.layer_norm(x, w.shape, w, b, attributes.get("epsilon", 1e-5))


def _rms_norm(attributes: Attributes) -> Callable[..., Any]:
    return lambda x, w: nn.rms_norm(x, w.shape, w, attributes.get("epsilon", 1e-5))


def _batch_norm(attributes: Attributes) -> Callable[..., Any]:
    return lambda x, w, b, mean, var: nn.batch_norm(x, mean, var, w, b, False, 0.0, attributes.get("epsilon", 1e-5))


def _softmax(function: Callable[..., Any]) -> Make:
    return lambda attributes: lambda x: function(x, attributes.get("axis", -1))


def _argmax(attributes: Attributes) -> Callable[..., Any]:
    return lambda x: torch.argmax(x, attributes["axis"], bool(attributes.get("keepdims", 1)))


def _resize(attributes: Attributes) -> Callable[..., Any]:
    def call(x: Any, roi: Any, scales: Any) -> Any:
        if not made:
            made.append(scales.tolist()[2:])
        return nn.interpolate(x, scale_factor=made[0], mode=mode, **own)

    mode, made = {"nearest": "nearest", "linear": "bilinear"}[attributes["mode"]], []
    own = {"align_corners": False} if mode == "bilinear" else {}
    return call


def _lrn(attributes: Attributes) -> Callable[..., Any]:
    alpha, beta, bias, size = (attributes[key] for key in ("alpha", "beta", "bias", "size"))
    return lambda x: nn.local_response_norm(x, size, alpha, beta, bias)


def _gather(attributes: Attributes) -> Callable[..., Any]:
    return lambda x, indices: torch.index_select(x, attributes.get("axis", 0), indices)


def _attention(attributes: Attributes) -> Callable[..., Any]:
    return lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=bool(attributes.get("is_causal", 0)))


TABLE: dict[str, Make] = {
    "MatMul": _plain(torch.matmul),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _pool(nn.max_pool2d),
    "AveragePool": _pool(nn.avg_pool2d, counts_padding=True),
    "GlobalAveragePool": _plain(lambda x: nn.adaptive_avg_pool2d(x, 1)),
    "Resize": _resize,
    "LRN": _lrn,
    "Softmax": _softmax(nn.softmax),
    "LogSoftmax": _softmax(nn.log_softmax),
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "BatchNormalization": _batch_norm,
    "Attention": _attention,
    "Gelu": lambda attributes: lambda x: nn.gelu(x, approximate=attributes.get("approximate", "none")),
    "Swish": _plain(nn.silu),
    "Add": _plain(torch.add),
    "Sub": _plain(torch.sub),
    "Mul": _plain(torch.mul),
    "Div": _plain(torch.div),
    "Max": _plain(torch.maximum),
    "Min": _plain(torch.minimum),
    "Exp": _plain(torch.exp),
    "Log": _plain(torch.log),
    "Tanh": _plain(torch.tanh),
    "Sigmoid": _plain(torch.sigmoid),
    "Erf": _plain(torch.erf),
    "Sin": _plain(torch.sin),
    "Cos": _plain(torch.cos),
    "Sqrt": _plain(torch.sqrt),
    "Abs": _plain(torch.abs),
    "Neg": _plain(torch.neg),
    "Relu": _plain(torch.relu),
    "ReduceSum": _reduce(torch.sum),
    "ReduceMean": _reduce(torch.mean),
    "ReduceMax": _reduce(torch.amax),
    "ArgMax": _argmax,
    "CumSum": lambda attributes: lambda x, axis: torch.cumsum(x, int(axis)),
    "Transpose": lambda attributes: lambda x: x.permute(attributes["perm"]).contiguous(),
    "Gather": _gather,
    "Concat": lambda attributes: lambda *xs: torch.cat(xs, attributes["axis"]),
}
