"""Run as a script, ``compile_forged.py <folder>``: puts forged entries into a cache there, and compiles with each.

A fork of this process does that, for what is forged may end it. Prints as JSON, for each case in which not the right
result came of a fresh compilation, what came; and the number of cases.
"""

import contextlib
import io
import json
import os
import random
import resource
import signal
import socket
import sys
import traceback
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.artifact.cache import DiskCache, disk_cache
from loopwright.artifact.cache_entry import MAGIC, About, decode, encode
from loopwright.artifact.cache_secret import user_secret
from loopwright.compiler.model.function_cache import function_cache

TARGET = "llvm -mcpu=x86-64"
X = np.linspace(-1, 1, 4 * 8, dtype=np.float32).reshape(4, 8)
W = np.linspace(-2, 1, 8 * 8, dtype=np.float32).reshape(8, 8)
EXPECTED = np.maximum(X.astype(np.float64) @ W, 0)
VALUES = (None, True, -1, 1 << 80, 0.5, "x", "\x00\n", [], [[]], {}, ["//", 1, 0], ["min", "n7", 1], [{}], "n0")
EVERY = int(os.environ.get("LOOPWRIGHT_FORGE_EVERY", "9"))
"""Which part of the many cases is tried, those of places aside."""
DEEP = b"[" * 100_000 + b"]" * 100_000
PLACES = ("FIFO", "folder", "link", "dangling link", "link to a device", "socket", "unreadable", "sparse", "for all")


def program(rows=4):
    x = lw.var("x", (rows, 8))
    return lw.Function([x], lw.nn.relu(lw.nn.matmul(x, lw.const(W))))


def kernel():
    """Its entry in the cache is an object; that of the model's only function holds more."""
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] * 2.0, name="B")
    return lw.build(lw.create_schedule(B), [A, B], target=TARGET)


def forged_contents(kind, content, others, rng):
    """Other contents for an entry, each with its name."""
    yield "empty", b""
    yield "random", rng.randbytes(300)
    for number, other in enumerate(others):
        yield f"another's, {number}", other
    size = int.from_bytes(content[:8], "little") if kind == "function" else 0
    begin = 8 + size if kind == "function" else 0
    head, code = content[:begin], content[begin:]
    for number in range(10):
        yield f"code cut, {number}", head + code[: rng.randrange(len(code))]
    for number in range(40):
        changed = bytearray(code)
        sections = int.from_bytes(code[0x28:0x30], "little")
        at = rng.randrange(64) if number % 2 else rng.randrange(sections, len(code))
        changed[at] = rng.choice((0, 1, 2, 127, 255))
        if bytes(changed) != code:
            yield f"code byte {at} is {changed[at]}", head + bytes(changed)
    yield "code of another machine", head + code[:0x12] + (183).to_bytes(2, "little") + code[0x14:]
    if kind != "function":
        return
    for size in (0, 1, 1 << 20, 1 << 40, (1 << 64) - 1):
        yield f"head of {size} bytes", size.to_bytes(8, "little") + content[8:]
    for text in (DEEP, b"null", b"[]", b"{}", b"1" * 5000, b"\xff\xfe", b'{"dims": ' + DEEP + b"}"):
        yield f"head {text[:12]}", len(text).to_bytes(8, "little") + text + code
    fields = json.loads(content[8:begin])
    for name in fields:
        for value in VALUES:
            text = json.dumps(fields | {name: value}).encode()
            yield f"{name} is {value!r}", len(text).to_bytes(8, "little") + text + code


def forged_entries(key, data, others, rng):
    """Other bytes for the file of an entry, each with its name. The seals of the later ones are right."""
    for number in range(8):
        yield f"cut, {number}", data[: rng.randrange(len(data))]
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield f"a bit changed, {number}", bytes(changed)
    yield "empty", b""
    yield "of another key", others[0]
    for size in (0, 1 << 20, (1 << 32) - 1):
        yield f"about of {size} bytes", data[: len(MAGIC) + 32] + size.to_bytes(4, "little") + data[len(MAGIC) + 36 :]
    secret = user_secret()
    about, content = decode(key, data, secret)
    yield "of another secret", encode(key, about, content, bytes(32))
    yield "without a seal", encode(key, about, content, None)
    contents = [other[len(MAGIC) + 36 :] for other in others]
    for name, forged in forged_contents(about.kind, content, contents, rng):
        yield f"sealed, {name}", encode(key, About(about.kind, about.name, "t", "v"), forged, secret)


def put_in_place(path, place):
    """What is no entry in the place of one."""
    data = path.read_bytes()
    if place not in ("unreadable", "for all"):
        path.unlink()
    match place:
        case "FIFO":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "link":
            path.with_name("elsewhere").write_bytes(data)
            path.symlink_to("elsewhere")
        case "dangling link":
            path.symlink_to("nowhere")
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "socket":
            os.chdir(path.parent)  # their paths are short
            socket.socket(socket.AF_UNIX).bind(path.name)
        case "unreadable":
            path.chmod(0)
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "for all":
            path.chmod(0o666)


def outcome():
    """What compiling gives now: ``"right"``, or what else."""
    said = io.StringIO()
    function_cache.clear()
    try:
        with contextlib.redirect_stderr(said):
            (got,) = lw.Engine(lw.compile(program(), target=TARGET, jobs=1), threads=1)({"x": X})
            kernel()(X, doubled := np.zeros_like(X))
            for entry in DiskCache(disk_cache().folder).entries():
                entry.about()
                entry.problem()
    except lw.CacheError:
        return "right"
    except BaseException:
        return traceback.format_exc()
    right = np.allclose(got, EXPECTED, rtol=1e-5, atol=1e-5) and np.array_equal(doubled, 2 * X)
    return "right" if right else f"wrong: {got}, {doubled}"


def in_a_fork(prepare):
    """The outcome after something was done, in another process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        prepare()
        os.write(write, outcome().encode()[-4000:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else text


def cases(entries, folder):
    """Names of cases, and what to do in each."""
    rng = random.Random(7)
    files = {entry.path: (entry.key, entry.path.read_bytes()) for entry in entries}
    for path, (key, data) in files.items():
        others = [other for other_path, (_, other) in files.items() if other_path != path]
        for name, forged in list(forged_entries(key, data, others, rng))[::EVERY]:
            yield f"{path.name[:6]}: {name}", lambda path=path, forged=forged: path.write_bytes(forged)
        for place in PLACES:
            yield f"{path.name[:6]}: {place}", lambda path=path, place=place: put_in_place(path, place)
    first = next(iter(files))

    def full():
        for path in files:
            path.unlink()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        put, limits = DiskCache.put, resource.getrlimit(resource.RLIMIT_FSIZE)

        def put_nothing(*arguments):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
            try:
                put(*arguments)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        DiskCache.put = put_nothing

    def read_only():
        first.unlink()
        for path in (first.parent, first.parent.parent, folder):
            path.chmod(0o500)

    yield "a full disk", full
    yield "a folder that cannot be written", read_only


def restore(folder, files):
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
            if path in files:
                path.rmdir()
        else:
            path.unlink()
    for path, data in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)


def main(folder):
    folder = Path(folder)
    os.environ["LOOPWRIGHT_CACHE_DIR"] = str(folder)
    lw.compile(program(), target=TARGET, jobs=1)
    kernel()
    cache = DiskCache(folder)
    entries = [entry for entry in cache.entries() if entry.about().kind != "features"]  # what this processor has
    files = {entry.path: entry.path.read_bytes() for entry in entries}
    kinds = sorted(entry.about().kind for entry in entries)
    found, count = {}, 0
    for name, prepare in cases(entries, folder):
        count += 1
        got = in_a_fork(prepare)
        if got != "right":
            found[name] = got
        folder.chmod(0o700)
        restore(folder, files)
    sys.stdout.write(json.dumps({"kinds": kinds, "cases": count, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
