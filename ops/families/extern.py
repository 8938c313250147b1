"""``nn.extern``: a call of a packed function, which the runtime looks up by its name when an engine loads the model.

No operator of the registry: it has no strategy, and nothing of it is compiled. The function decides nothing about
types: the result is as the call says, or like the first argument.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...base.dtype import dtype as as_dtype
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type, tensor_type
from ..definition.arguments import integer_list, tensors_of
from ..definition.attrs import Attrs, all_non_negative, attr, optional
from ..definition.op_group import OpGroup
from ..definition.registry import Argument, Op, OpPattern
from ..definition.relations import tensor_argument

GROUP = OpGroup.EXTERN


def _is_function_name(name: str) -> str | None:
    fits = all(part.isidentifier() for part in name.split("."))
    return None if fits else "must be identifiers with dots between them"


@dataclass(frozen=True)
class ExternAttrs(Attrs):
    """The attributes of ``nn.extern``."""

    function: str = attr("name of the packed function", check=_is_function_name)
    shape: tuple[int, ...] | None = attr(
        "shape of the result, that of the first argument if None", default=None, check=optional(all_non_negative)
    )
    dtype: str | None = attr("dtype of the result, that of the first argument if None", default=None)
    options: str = attr("what else the function is told: an object of JSON", default="{}")


def _relation(types: Sequence[Type], attrs: ExternAttrs) -> TensorType:
    tensors = [tensor_argument(kind, f"argument {k}") for k, kind in enumerate(types)]
    kind = tensors[0].dtype if attrs.dtype is None else as_dtype(attrs.dtype)
    return tensor_type(tensors[0].shape if attrs.shape is None else attrs.shape, kind)


EXTERN = Op(
    "extern",
    "what a packed function makes of its arguments",
    (Argument("x", "any tensor"),),
    ExternAttrs,
    _relation,
    OpPattern.OPAQUE,
    variadic=True,
)


def extern(
    function: str,
    *args: Node,
    shape: Sequence[int] | None = None,
    dtype: str | DType | None = None,
    options: dict[str, Any] | None = None,
) -> Call:
    """What the packed function of that name makes of the arguments: a tensor of this shape and dtype, both by default
    those of the first argument. Of a tuple it gets the members. ``options`` are values of JSON, which the function gets
    by name.

    The function is called once a run. It must give the same for the same arguments, since equal calls may become one.
    Raises ``TypeInferenceError`` for arguments that are no tensors, and options that JSON has no form for.
    """
    try:
        text = json.dumps(options or {}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeInferenceError(
            f"extern {function}: its options are values of JSON, found {options!r}: {error}"
        ) from None
    extents = None if shape is None else integer_list(shape, "shape")
    attrs = ExternAttrs(function, extents, None if dtype is None else str(dtype), text)
    return EXTERN(*tensors_of("extern", args), attrs=attrs)
