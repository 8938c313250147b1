"""Run as a script, ``check_files.py <folder> <seed> <begin> <end>``: damages files in that many ways, and reads each.

The folder has ONNX models (``*.onnx``) and saved libraries (``*.lwlib``). Prints the number of a case before it begins,
so that whoever waits knows at which one the process died; and as JSON, for each case that raised anything but our
errors, what that was. A case depends on the seed and its number alone.
"""

import json
import random
import resource
import sys
import tempfile
import traceback
from hashlib import sha256
from pathlib import Path

import onnx

import loopwright as lw
from loopwright.artifact.section_file import _START, MAGIC
from loopwright.frontend.stored_weights import parse_without_weights

MEMORY = 8 << 30
COMPILED = 0.3
"""What part of the models is compiled, if they can be read."""
TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"
NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 1 << 15, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, -(1 << 63), (1 << 63) - 1)
VALUES = (*NUMBERS, None, True, "", "N", "x", [], {}, 0.5, 1e300, float("inf"), float("nan"), ["//", 1, 0], "float32")


def damaged_bytes(data, others, rng):
    """A few bytes changed, added or taken, or a piece of a file in place of another."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) + 1)
        size = rng.choice((1, 1, 2, 8, 64))
        match rng.randrange(6):
            case 0:
                found[at : at + 1] = bytes([rng.randrange(256)])
            case 1 if at < len(found):
                found[at] ^= 1 << rng.randrange(8)
            case 2:
                del found[at : at + size]
            case 3:
                found[at:at] = rng.randbytes(size)
            case 4:
                other = rng.choice(others)
                begin = rng.randrange(len(other))
                found[at : at + size] = other[begin : begin + size]
            case 5 if rng.random() < 0.1:
                del found[at:]
    return bytes(found)


def damaged_message(message, rng):
    """A field of a protobuf message, or of one inside it, changed: what is left is a model by its form."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = rng.choice(fields)
    if hasattr(value, "ListFields"):
        damaged_message(value, rng)
        return
    repeated = hasattr(value, "append") or hasattr(value, "add")
    if not repeated:
        setattr(message, field.name, other_value(value, rng))
    elif hasattr(value, "add") and rng.random() < 0.8:
        damaged_message(value[rng.randrange(len(value))], rng)
    elif rng.random() < 0.4:
        del value[rng.randrange(len(value))]
    elif rng.random() < 0.4 or hasattr(value, "add"):
        value.extend([value[rng.randrange(len(value))]])
    else:
        value[rng.randrange(len(value))] = other_value(value[0], rng)


def other_value(value, rng):
    """Another value of a type that the field takes."""
    match value:
        case bool():
            return not value
        case int():
            # Fields of 32 bits and enumerations refuse more.
            return rng.choice([n for n in NUMBERS if abs(n) < 1 << 31] if abs(value) < 1 << 20 else NUMBERS)
        case float():
            return rng.choice((0.0, -1.0, 1e30, float("inf"), float("nan")))
        case bytes():
            return value[: rng.randrange(len(value) + 1)] + rng.randbytes(rng.choice((0, 1, 4)))
        case _:
            return rng.choice(("", "x", "y", "Conv", "Add", "\x00*/", value + value))


def damaged_model(data, others, rng):
    if rng.random() < 0.6:
        return damaged_bytes(data, others, rng)
    model = onnx.load_from_string(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        try:
            damaged_message(model.graph if rng.random() < 0.9 else model, rng)
        except ValueError:  # protobuf takes no such value
            continue
    return model.SerializeToString()


def damaged_library(data, others, rng):
    """Bytes changed, or the header changed and its digest made to fit."""
    if rng.random() < 0.5:
        return damaged_bytes(data, others, rng)
    begin = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    header = json.loads(data[begin:])
    for _ in range(rng.choice((1, 1, 2, 4))):
        damaged_json(header, rng)
    text = json.dumps(header).encode()
    numbers = (number.to_bytes(8, "little") for number in (begin, len(text)))
    return b"".join((MAGIC, *numbers, sha256(text).digest(), data[_START:begin], text))


def damaged_json(node, rng):
    """A value inside, at any depth, replaced or taken away."""
    if not node:
        return
    key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
    if isinstance(node[key], (dict, list)) and rng.random() < 0.9:
        damaged_json(node[key], rng)
    elif rng.random() < 0.2:
        del node[key]
    else:
        node[key] = rng.choice(VALUES)


def read(path, data, compiles):
    """Read a file as users do. A library that is damaged and yet whole is not run: digests find no malice.

    Models are read from a file, in which large weights stay, as compilation reads them; or from bytes.
    """
    with tempfile.NamedTemporaryFile(suffix=path.suffix) as file:
        file.write(data)
        file.flush()
        if path.suffix == ".lwlib":
            lw.load(file.name)
        elif compiles:
            check_reads_alike(file.name, data)
            lw.compile(file.name, target=TARGET, jobs=1)
        else:
            lw.from_onnx(data)


def check_reads_alike(name, data):
    """What is left in the file is what parsing all of it gives: the reader of stored weights parses by itself."""
    small = parse_without_weights(Path(name))
    if small is None:
        return
    whole = onnx.load_from_string(data)
    for tensor in small.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            stored = {entry.key: entry.value for entry in tensor.external_data}
            begin, length = int(stored["offset"]), int(stored["length"])
            tensor.raw_data = data[begin : begin + length]
            tensor.ClearField("data_location")
            del tensor.external_data[:]
    for model in (small, whole):
        for tensor in model.graph.initializer:
            tensor.ClearField("data_location")
    assert small.SerializeToString(deterministic=True) == whole.SerializeToString(deterministic=True)


def problem(path, data, compiles):
    """What is wrong with how a file is read; None if it is read, or refused by an error of ours."""
    try:
        read(path, data, compiles)
    except lw.InternalError:
        return traceback.format_exc()
    except lw.LoopwrightError:
        return None
    except Exception:
        return traceback.format_exc()
    return None


def main(folder, seed, begin, end):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    files = {path: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    for number in range(int(begin), int(end)):
        rng = random.Random(f"{seed} {number}")
        path = rng.choice(list(files))
        damaged = damaged_model if path.suffix == ".onnx" else damaged_library
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        data = damaged(files[path], list(files.values()), rng)
        found = problem(path, data, compiles=rng.random() < COMPILED)
        if found is not None:
            sys.stdout.write(json.dumps({"case": number, "file": path.name, "error": found}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
