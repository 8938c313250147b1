"""``loopwright ops``: the operators, from the registry; as a table, or as the page docs/operators.md."""

from __future__ import annotations

import argparse
import inspect
import json
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.markup import escape

from ..base.errors import LoopwrightError
from ..base.op_names import check_op_name
from ..base.table import Name, number_table, print_table, text_width
from ..base.target import Target
from ..codegen.host import resolve_target
from ..frontend.registry import converted_versions
from ..graph.layout import Layout
from ..graph.node import Call, Var
from ..graph.types import tensor_type
from ..graph.visit import post_order
from ..ir.expr import Expr
from ..ops import nn
from ..ops.definition.attrs import REQUIRED
from ..ops.definition.registry import SUPPORT_LEVELS, Op, OpPattern, all_ops, get_op, op_of
from ..ops.definition.strategy import OpStrategy, strategy_of
from ..ops.families.layout_transform import LAYOUT_TRANSFORM, LayoutTransformAttrs
from ..ops.families.pad import PAD, PadAttrs
from ..ops.families.resample import resample
from ..ops.families.topk import TOPK, TopkAttrs
from ..te import var
from .output_file import check_output_file, write_text
from .report import make_console

PAGE_TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"
"""A target of its own, so that the page does not depend on the machine that prints it."""
SAMPLE_SHAPES = (
    (), (16,), (1, 256), (256, 256),
    (1, 16, 16), (1, 16, 32), (16, 16, 1), (16, 16, 3),
    (1, 16, 32, 32), (16, 16, 1, 1), (16, 16, 3, 3),
    (1, 16, 8, 8, 8), (16, 16, 1, 1, 1), (16, 16, 3, 3, 3),
)  # fmt: skip
"""Arguments of each kind that strategies tell apart: rows long and short, windows of one element and of several."""
FEW_SAMPLE_SHAPES = ((16,), (1, 256), (256, 256), (1, 16, 16), (1, 16, 32), (1, 16, 32, 32))
"""Those of functions that need three arguments, which all combinations of the others would take seconds."""
SAMPLE_DTYPES = ("float32", "bool")
SAMPLE_NUMBERS = {"PerAxis": (2,), "int": (1,)}
"""What to give for arguments that are no tensors, by their annotation."""
MOST_NEEDED = 3
"""Functions that need more arguments than this are not tried."""

HEAD = """\
# Operators

This page is made from the registry by `loopwright ops --page docs/operators.md`; a test fails if it is out of
date. [add-an-operator.md](add-an-operator.md) shows how to add one.

Graphs are built by the functions of `lw.nn`, such as `lw.nn.conv(x, weight, strides=2)`. They fill in attributes from
friendlier arguments (one number for all axes, negative axes, `auto_pad`), and check what they are given:
`TypeInferenceError` says what does not fit. *Implementations* are pairs of a compute and a schedule, here those for
x86; the valid one of highest priority, the number in brackets, serves a call, among equals that of least cost, then the
first listed.
"""

PATTERNS = {
    OpPattern.ELEMENTWISE: (
        "Elementwise",
        "An element of the result needs the same element of each argument: fused with what comes before and after.",
    ),
    OpPattern.BROADCAST: ("Broadcasting", "Elementwise, after broadcasting as numpy does: fused as elementwise ones."),
    OpPattern.INJECTIVE: (
        "Injective",
        "An element of the result needs one element of each argument, anywhere: fused with what reads the result.",
    ),
    OpPattern.COMM_REDUCE: (
        "Reductions",
        "Elements of the argument are folded over axes: fused with the elementwise and injective operators before.",
    ),
    OpPattern.OUT_ELEMENTWISE_FUSABLE: (
        "Complex",
        "Has a schedule of its own: fused with the elementwise and broadcasting operators that follow.",
    ),
    OpPattern.OPAQUE: ("Opaque", "A function of its own, fused with nothing."),
}

ONNX_HEAD = """\
## Operators of ONNX

What `lw.compile` and `lw.from_onnx` convert, with the versions of each operator (the operator sets in which ONNX
changed it); `If`, `Loop` and `Scan` in all versions, `SequenceMap`, and `Gradient` through operators that have a rule
for it (`ops/gradients/rules.py`). Others are imported where ONNX defines them by functions of these.

onnx's own runner has 2,024 backend cases that need no download (onnx 1.23). None of them is skipped, and 2,015 pass
(`make test-slow` runs it by `tests/end_to_end/test_onnx_runner.py`). The others: six of `Bernoulli`, whose results are
random; two that compare roundings of numpy's, which pass or fail with the processor; and a loop whose sequence has
tensors of two ranks.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``ops``."""
    parser.description = (
        "List the operators of the graph; of those that are named say what their arguments and attributes are, and by "
        "which implementations, of which priority, they are computed."
    )
    parser.epilog = "example: loopwright ops nn.conv2d --target x86-64-v3"
    parser.add_argument("operators", nargs="*", metavar="operator", help="describe these, as nn.conv2d")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print the page docs/operators.md")
    form.add_argument("--page", type=Path, metavar="PAGE.md", help="write that page; a failure leaves it as it was")
    form.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--target", default="native", help="whose implementations to list (default: native)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    target = resolve_target(arguments.target)
    for name in arguments.operators:
        check_op_name(name)
    chosen = [get_op(name) for name in dict.fromkeys(arguments.operators)]
    if arguments.page is not None:
        check_output_file(arguments.page, "the page")
        write_text(arguments.page, operators_page())
    elif arguments.markdown:
        print(operators_page(), end="")
    elif arguments.json:
        print(json.dumps(_rows(chosen or all_ops(), target), indent=2, ensure_ascii=False))
    elif chosen:
        found = _implementations(target)
        print("\n\n".join(_plain(_section(op, found[op]), text_width()) for op in chosen))
    else:
        _print_table(make_console(), _rows(all_ops(), target))
    return 0


def operators_page() -> str:
    """The page docs/operators.md."""
    found = _implementations(resolve_target(PAGE_TARGET))
    parts = [HEAD]
    for pattern, (title, meaning) in PATTERNS.items():
        parts.append(f"## {title}\n\n{meaning}\n")
        parts += [_section(op, found[op]) for op in all_ops() if op.pattern is pattern]
    return "\n".join([*parts, ONNX_HEAD, *_onnx_table()]) + "\n"


def _section(op: Op, implementations: dict[str, int]) -> str:
    lines = [f"### `{_signature(op)}`", "", f"{op.description[0].upper()}{op.description[1:]}.", ""]
    lines += [f"- `{a.name}`: {a.description}" for a in op.arguments]
    lines += [f"- attribute {line}" for line in _attributes(op)]
    listed = ", ".join(f"`{name}` ({priority})" for name, priority in implementations.items())
    level = f"- *support level* {op.support_level}: {SUPPORT_LEVELS.get(op.support_level, SUPPORT_LEVELS[10])}"
    return "\n".join([*lines, level, f"- *implementations*: {listed}", ""])


def _signature(op: Op) -> str:
    return f"{op.name}({', '.join(a.name for a in op.arguments)}{', …' if op.variadic else ''})"


def _attributes(op: Op) -> Iterator[str]:
    for attribute in op.attrs.describe() if op.attrs is not None else ():
        default = "required" if attribute.default is REQUIRED else f"default `{attribute.default!r}`"
        yield f"`{attribute.name}` (`{attribute.type}`, {default}): {attribute.description}"


def _onnx_table() -> Iterator[str]:
    yield "| operator | versions |"
    yield "|---|---|"
    for (domain, name), entries in groupby(converted_versions(), key=lambda entry: entry[:2]):
        yield f"| {f'{domain}.' if domain else ''}{name} | {', '.join(str(version) for _, _, version in entries)} |"


def _implementations(target: Target) -> dict[Op, dict[str, int]]:
    """The implementations of each operator and their priorities, in order of registration.

    A strategy may offer some for certain calls only. So calls are made of sample arguments, wherever these fit.
    """
    found: dict[Op, dict[str, int]] = {op: {} for op in all_ops()}
    for call in _sample_calls():
        op = op_of(call)
        strategy = strategy_of(op, call.attrs, [a.type for a in call.args], call.type, target)
        found[op].update(_priorities(strategy))
    for op, names in found.items():
        if not names:  # one implementation for all calls, whatever their types
            names.update(_priorities(strategy_of(op, None, (), tensor_type((), "float32"), target)))
    return found


def _priorities(strategy: OpStrategy) -> dict[str, int]:
    return {implementation.name: implementation.plevel for _, implementation in strategy.candidates()}


@cache
def _sample_calls() -> tuple[Call, ...]:
    """Calls by the functions of ``lw.nn``. To find them takes seconds; they are the same for all targets."""
    return (*_calls_that_fit(), *_calls_of_forms())


def _calls_that_fit() -> Iterator[Call]:
    """Calls of all sample arguments that fit."""
    for name, kind in product(nn.__all__, SAMPLE_DTYPES):
        make = getattr(nn, name)
        needed = [p for p in inspect.signature(make).parameters.values() if p.default is p.empty]
        shapes = SAMPLE_SHAPES if len(needed) < MOST_NEEDED else FEW_SAMPLE_SHAPES
        choices = {"Node": [Var("x", tensor_type(shape, kind)) for shape in shapes], **SAMPLE_NUMBERS}
        if len(needed) > MOST_NEEDED or any(p.annotation not in choices for p in needed):
            continue
        for arguments in product(*(choices[p.annotation] for p in needed)):
            try:
                made = make(*arguments)
            except LoopwrightError:
                continue
            if isinstance(made, Call):
                yield made


def _calls_of_forms() -> Iterator[Call]:
    """Calls of forms that sample arguments do not make."""
    yield from _sample_convolutions()
    image = Var("x", tensor_type((1, 8, 4, 4), "float32"))
    yield LAYOUT_TRANSFORM(image, attrs=LayoutTransformAttrs("NCHW", "NCHW8c"))
    yield nn.concatenate([image, image], 1)
    row, counts = Var("x", tensor_type((var("n"),), "float32")), (1,)
    yield nn.tile(row, (5,))
    yield PAD(row, attrs=PadAttrs(counts, counts, "reflect"))
    heads, mask = (Var("x", tensor_type(shape, "float32")) for shape in ((1, 16, 32, 32), (32, 32)))
    yield nn.attention(heads, heads, heads, mask)
    yield nn.grid_sample(image, Var("grid", tensor_type((1, 4, 4, 2), "float32")), channels_last=True)
    indices, weights = (Var(name, tensor_type((2, 8), kind)) for name, kind in (("at", "int64"), ("by", "float32")))
    yield resample(image, indices, weights, 3)
    yield TOPK(Var("x", tensor_type((64, 16), "float32")), attrs=TopkAttrs(2, 1))
    boxes, samples = Var("boxes", tensor_type((2, 4), "float32")), Var("samples", tensor_type((2,), "int64"))
    yield nn.roi_align(image, boxes, samples)
    yield from _sample_packed_products()
    yield from _sample_few_bits()
    yield from _sample_recurrences()
    rows, experts = Var("x", tensor_type((4, 64), "float32")), Var("experts", tensor_type((4,), "int64"))
    yield nn.expert_dense(rows, experts, Var("weights", tensor_type((2, 8, 64), "float32")))
    yield nn.strassen_matmul(
        *(Var(name, tensor_type(shape, "float32")) for name, shape in (("a", (16, 16)), ("planes", (1, 7, 8, 8))))
    )


def _sample_packed_products() -> Iterator[Call]:
    """Products by panels, of an open number of rows."""
    rows = var("rows")
    for kind in ("float32", "float16"):
        yield nn.packed_matmul(Var("a", tensor_type((rows, 16), kind)), Var("b", tensor_type((1, 16, 16), kind)), 16)
    words = Var("panels", tensor_type((1, 4, 16), "int32"))
    yield nn.packed_byte_matmul(Var("a", tensor_type((rows, 16), "uint8")), words, 16, "int8")
    pairs = Var("panels", tensor_type((1, 8, 16), "int32"))
    yield nn.packed_pair_matmul(Var("a", tensor_type((rows, 16), "bfloat16")), pairs, 16)


def _sample_few_bits() -> Iterator[Call]:
    """Products by weights of few bits, packed and not."""
    floats = Var("a", tensor_type((var("rows"), 16), "float32"))
    codes, words = Var("codes", tensor_type((16, 16), "uint8")), Var("panels", tensor_type((1, 2, 16), "int32"))
    of_codes, of_words = (
        (Var("zeros", tensor_type(shape, "uint8")), Var("scales", tensor_type(shape, "float32")))
        for shape in ((16, 2), (1, 2, 16))
    )
    yield nn.blockwise_dense(floats, codes, *of_codes, bits=4, block=8)
    yield nn.packed_blockwise(floats, words, *of_words, columns=16, bits=4, block=8)


def _sample_recurrences() -> Iterator[Call]:
    """The recurrences of networks with an open batch."""

    def floats(*shape: int | Expr) -> Var:
        return Var("x", tensor_type(shape, "float32"))

    x = floats(4, var("batch"), 8)
    made = [
        nn.lstm(x, floats(64, 8), floats(64, 16)),
        nn.lstm(x, floats(64, 8), floats(64, 16), peepholes=floats(3, 16)),
        nn.gru(x, floats(48, 8), floats(48, 16)),
        nn.gru(x, floats(48, 8), floats(48, 16), reset_bias=floats(16)),
        nn.rnn(x, floats(16, 8), floats(16, 16)),
    ]
    for states, *_ in made:
        yield from (
            node for node in post_order(states) if isinstance(node, Call) and op_of(node).name.endswith("steps")
        )


def _sample_convolutions() -> Iterator[Call]:
    """Calls of convolutions of all ranks, plain and depthwise, in layouts that have implementations of their own."""
    for axes in ("W", "HW", "DHW"):
        for data, kernel in ((f"NC{axes}", f"OI{axes}"), (f"N{axes}C", f"{axes}IO"), (f"{axes}CN", f"{axes}IO")):
            yield from (_sample_convolution(axes, data, kernel, groups) for groups in (1, 16))
    yield _sample_convolution("HW", "NCHW8c", "OIHW8i8o", 1)
    yield _sample_convolution("HW", "NCHW8c", "OIHW8o", 16)
    yield _sample_convolution("HW", "NCHW", "OIHW8o", 1, window=1)
    x, planes = (Var("x", tensor_type(shape, "float32")) for shape in ((1, 2, 8, 8, 8), (2, 6, 6, 16, 8)))
    yield nn.winograd_conv2d(x, planes, size=4, data_layout="NCHW8c")
    weight = Var("weight", tensor_type((2, 2, 3, 3, 8, 8), "float32"))
    yield nn.open_winograd_conv2d(x, planes, weight, size=4, group=8, data_layout="NCHW8c")
    yield nn.strassen_conv2d(x, Var("planes", tensor_type((1, 7, 8, 8), "float32")), data_layout="NCHW8c")


def _sample_convolution(axes: str, data: str, kernel: str, groups: int, window: int = 3) -> Call:
    x = Layout(data).shape({"N": 16, "C": 16, **dict.fromkeys(axes, 8)})
    weight = Layout(kernel).shape({"O": 16, "I": 16 // groups, **dict.fromkeys(axes, window)})
    made = Var("x", tensor_type(x, "float32")), Var("weight", tensor_type(weight, "float32"))
    return nn.conv(*made, groups=groups, data_layout=data, kernel_layout=kernel)


def _rows(ops: Sequence[Op], target: Target) -> list[dict[str, Any]]:
    found = _implementations(target)
    return [
        {
            "operator": op.name,
            "arguments": [argument.name for argument in op.arguments],
            "pattern": op.pattern.name.lower(),
            "support_level": op.support_level,
            "description": op.description,
            "implementations": found[op],
        }
        for op in ops
    ]


def _plain(section: str, width: int) -> str:
    """A section of the page without its markup, folded between words."""
    text = section.removeprefix("### ").replace("`", "")
    for title in ("support level", "implementations"):
        text = text.replace(f"*{title}*", title)
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in text.splitlines())


def _print_table(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    table = number_table(("operator and pattern",), ("level",), ("what it gives",))
    table.columns[0].no_wrap = True
    table.add_column("implementations (priority)", no_wrap=True)
    for row in rows:
        listed = [f"{name} ({priority})" for name, priority in row["implementations"].items()]
        names = escape(f"{row['operator']}\n{row['pattern']}")
        table.add_row(names, str(row["support_level"]), escape(row["description"]), Group(*map(Name, listed)))
    print_table(console, table)
