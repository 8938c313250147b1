"""The inputs that a subcommand runs a model on: from files, or random."""

from __future__ import annotations

import argparse
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from .. import RuntimeArgumentError
from ..artifact.function import TensorSpec
from ..base.dataclass import dataclass
from ..base.dtype import STRING
from ..runtime.arrays import Array
from .model_inputs import ModelInput, inputs_text

RANDOM = "random"
_HEADER = (SyntaxError, tokenize.TokenError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What numpy raises for headers that are damaged, beside ``ValueError``: they are a dict as Python writes it."""
_DAMAGED = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError, *_HEADER)


@dataclass(frozen=True, slots=True)
class Asked:
    """``--input name=source``; without a name it is about all inputs."""

    name: str
    source: str


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--input`` to a subcommand."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_asked,
        metavar="NAME=FILE.npy|FILE.npz|random",
        help="an input's value, repeatable; a .npz file without a name has several inputs by theirs; inputs not given "
        "are random: floats are normally distributed, integers 0 or 1",
    )


def _asked(text: str) -> Asked:
    name, equals, source = text.rpartition("=")
    if text == RANDOM or (not equals and text.endswith(".npz")):
        return Asked("", text)
    if not name or not source:
        raise argparse.ArgumentTypeError(f"{text!r} should be a name and a file, as in x=x.npy, or x=random")
    return Asked(name, source)


def read_inputs(asked: Sequence[Asked], inputs: Sequence[ModelInput]) -> dict[str, Array]:
    """The arrays that files give, by the name of their input. Raises ``RuntimeArgumentError`` for other names, and for
    files that cannot be read."""
    arrays: dict[str, Array] = {}
    names = {i.name for i in inputs}
    for about in asked:
        found = dict(_read(about))
        for name in found or [about.name]:
            if name and name not in names:
                raise RuntimeArgumentError(f"--input: the model has no input {name!r}; {inputs_text(inputs)}")
        arrays |= found
    return arrays


def complete(
    given: Mapping[str, Array], specs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """The arrays that were given, and random ones for the other inputs; ``shapes`` are those of inputs whose own are
    open."""
    rng = np.random.default_rng(0)
    return {spec.name: given[spec.name] if spec.name in given else _random(spec, shapes, rng) for spec in specs}


def _read(about: Asked) -> Iterator[tuple[str, Array]]:
    if about.source == RANDOM:
        return
    path = Path(about.source)
    who = f"input {about.name}" if about.name else "inputs"
    kind = "npz" if path.suffix == ".npz" else "npy"
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                yield about.name, _contiguous(stored)
            elif about.name:
                raise RuntimeArgumentError(
                    f"input {about.name}: {path} holds several arrays; give a .npy file, which holds one, or --input "
                    f"{path} for all of them by their names"
                )
            else:
                for name in stored.files:
                    yield name, _contiguous(stored[name])
    except _DAMAGED as error:
        problem = "it holds no array of numbers" if "pickle" in str(error) else error
        raise RuntimeArgumentError(f"{who}: {path} cannot be read as a .{kind} file: {problem}") from error


def _contiguous(array: Array) -> Array:
    """``numpy.ascontiguousarray`` gives scalars a dimension."""
    return np.ascontiguousarray(array).reshape(array.shape)


def _random(spec: TensorSpec, shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator) -> Array:
    extents = [extent for extent in spec.shape if isinstance(extent, int)]
    shape = tuple(extents) if len(extents) == len(spec.shape) else shapes.get(spec.name)
    if shape is None:
        raise RuntimeArgumentError(
            f"random values for {spec} need a shape: --shape {spec.name}=1,3,224,224 gives one, "
            f"--input {spec.name}=FILE.npy an array"
        )
    kind = spec.dtype.to_numpy()
    try:
        if spec.dtype.is_float:
            return rng.standard_normal(shape, np.float32).astype(kind)
        numbers = rng.integers(0, 2, shape)
        return numbers.astype(np.str_) if spec.dtype is STRING else numbers.astype(kind)
    except (MemoryError, ValueError):
        raise RuntimeArgumentError(f"there is no memory for random values of {spec.name}, of shape {shape}") from None
