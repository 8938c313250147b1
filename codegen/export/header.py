"""The header of an export, for C99 and C++."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ...base.target import Target
from ...base.version import VERSION
from .interface import MAX_THREADS, Interface, Status, TensorParameter
from .names import c_comment, c_type


def model_header(interface: Interface, target: Target, weights: str | None, arena_bytes: int | None) -> str:
    """The header of C for a model: ``create``, ``run``, ``destroy`` and ``message``. ``weights`` is the name of their
    file, if they lie beside: ``verify`` reads it. ``arena_bytes`` is what a context takes, where that is a number."""
    name = interface.name
    path = ", const char *weights" if weights is not None else ""
    where = f"\n   weights is the path of {weights}, which is mapped: it must stay as it is." if weights else ""
    grows = " Its memory\n   grows to the largest dimensions met." if arena_bytes is None else ""
    sizes = [f"#define {name.upper()}_{t.name.upper()}_ELEMENTS {t.elements}" for t in interface.tensors if t.elements]
    if arena_bytes is not None:
        sizes.append(f"#define {name.upper()}_ARENA_BYTES {arena_bytes}")
    body = [
        "/* How many elements tensors have, and how many bytes of memory a context takes. */" if sizes else None,
        *sizes,
        "",
        f"typedef struct {name}_context {name}_context;",
        "",
        f"/* Makes a context, for runs on at most so many threads, 1 to {MAX_THREADS}.{where} */",
        f"int {name}_create({name}_context **context, int threads{path});",
        "",
        *(_verify(name) if weights is not None else ()),
        "/* Computes. Tensors lie row by row without gaps, inputs are not written, and outputs share no memory with",
        f"   anything else. A context serves one run at a time: threads that run at once need one each.{grows}",
        *_described(interface),
        "*/",
        f"int {name}_run({', '.join([f'{name}_context *context', *_parameters(interface)])});",
        "",
        *_output(interface),
        *_states(interface, path),
        "/* Gives the memory of a context back; null is no context, and nothing is done. */",
        f"void {name}_destroy({name}_context *context);",
    ]
    return _frame(interface, target, body)


def _output(interface: Interface) -> list[str]:
    """The function for outputs whose size only a run knows; nothing if there are none."""
    late = [tensor for tensor in interface.tensors if tensor.rank is not None]
    if not late:
        return []
    name, first = interface.name, sum(not tensor.written for tensor in interface.tensors)
    numbers = ", ".join(f"{interface.tensors.index(tensor) - first} {tensor.name}" for tensor in late)
    return [
        "/* The size of these outputs is known when the model has run. Give memory for as many elements as the",
        "   capacity says: if that is too little, run returns TOO_SMALL, with the shape filled in. Or give null: the",
        "   context then keeps the output until its next run, and this tells where. In run a shape may be null.",
        f"     by number: {numbers}",
        "*/",
        f"int {name}_output(const {name}_context *context, int number, const void **elements, int64_t *shape);",
        "",
    ]


def _states(interface: Interface, path: str) -> list[str]:
    """The functions of what a context keeps from run to run; nothing if that is nothing."""
    if not interface.states:
        return []
    name = interface.name
    return [
        "/* A context keeps these states from run to run, with their axes in this order. At first they are empty, or",
        "   zeros. reset begins anew. truncate leaves so much of all states, if all grow, and are so long. state tells",
        "   where one is until the next run, and its shape. fork makes another context, with copies of the states.",
        *(f"     {number}: {about}" for number, about in enumerate(interface.states)),
        "*/",
        f"int {name}_reset({name}_context *context);",
        f"int {name}_truncate({name}_context *context, int64_t length);",
        f"int {name}_state(const {name}_context *context, int number, const void **elements, int64_t *shape);",
        f"int {name}_fork(const {name}_context *context, {name}_context **other{path});",
        "",
    ]


def _verify(name: str) -> list[str]:
    return [
        "/* Reads all weights, and says whether they are as they were written; create looks at the beginning alone. */",
        f"int {name}_verify(const {name}_context *context);",
        "",
    ]


def kernel_header(interface: Interface, target: Target) -> str:
    """The kernel's function, and ``message``."""
    body = [
        f"/* Runs on at most so many threads, 1 to {MAX_THREADS}. Tensors lie row by row without gaps, unless strides",
        "   are given, which count elements; what is written shares no memory with anything else.",
        *_described(interface),
        "*/",
        f"int {interface.name}({', '.join([*_parameters(interface), 'int threads'])});",
    ]
    return _frame(interface, target, body)


def _parameters(interface: Interface) -> list[str]:
    found = []
    for tensor in interface.tensors:
        found.append(f"{'' if tensor.written else 'const '}{c_type(tensor.dtype)} *{tensor.name}")
        if tensor.rank is not None:
            found += [f"int64_t {tensor.capacity}", f"int64_t *{tensor.shape}"]
    return found + [f"int64_t {dim}" for dim in interface.dims]


def _described(interface: Interface) -> list[str]:
    def line(tensor: TensorParameter) -> str:
        return f"     {tensor.name}: {'written' if tensor.written else 'read'}, {tensor.about}"

    return [line(tensor) for tensor in interface.tensors]


def _frame(interface: Interface, target: Target, body: Sequence[str | None]) -> str:
    name, guard = interface.name, f"{interface.name.upper()}_H"
    about = f"{name}, compiled by loopwright {VERSION} for {target.triple}, cpu {target.cpu}: "
    about += ", ".join(sorted(target.features)) or "no features beyond"
    beside = " and kernel32" if target.system == "windows" else ", its mathematics and its threads"
    needs = [f"     {c_comment(prototype)};" for prototype in interface.externs]
    lines = [
        textwrap.fill(f"/* {about}.", 118, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False),
        f"   It needs the library of C{beside}.",
        *(["   It calls these, which must be linked as well:", *needs] if needs else []),
        "*/",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* What functions return; a positive number is that of a check that failed. */",
        f"enum {name}_code {{",
        ",\n".join(f"    {name.upper()}_{status.name} = {int(status)}" for status in Status),
        "};",
        "",
        "/* What a code means, in words. The text stays. */",
        f"const char *{name}_message(int code);",
        "",
        *(line for line in body if line is not None),
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"
