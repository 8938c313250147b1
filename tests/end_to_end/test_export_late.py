"""Exports of models some extents of which only a run knows: outputs into given memory, or kept by the context."""

import ctypes
import subprocess

import needed_tools
import numpy as np
import pytest
from onnx import TensorProto, helper

import loopwright as lw

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
OK, NO_MEMORY, BAD_ARGUMENT, TOO_SMALL = 0, -1, -2, -4
INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT
PROGRAM = r"""
#include "net.h"
#include <stdio.h>

int main(void) {
    float x[] = {0, 2, -3, 0, 0, 0, 5, -1};
    int64_t places[4], shape[2] = {0, 0}, kept_shape[1];
    const void *kept;
    net_context *net;
    if (net_create(&net, 1) != NET_OK) return 1;
    if (net_run(net, x, places, 4, shape, NULL, 0, NULL, 2) != NET_TOO_SMALL) return 2;
    if (shape[0] != 4 || shape[1] != 2) return 3;
    if (net_run(net, x, NULL, 0, shape, NULL, 0, NULL, 2) != NET_OK) return 4;
    if (net_output(net, 1, &kept, kept_shape) != NET_OK) return 5;
    for (int64_t k = 0; k < kept_shape[0]; k++) printf("%g ", (double)((const float *)kept)[k]);
    if (net_output(net, 0, &kept, shape) != NET_OK || shape[0] != 4) return 6;
    net_destroy(net);
    net_destroy(NULL);
    return 0;
}
"""

pytestmark = needed_tools.needs("cc", package="gcc")


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def compiled(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "net", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return lw.compile(model, jobs=1)


def chosen():
    """The places of what is not 0, and what is above 0 of it."""
    return compiled(
        [
            helper.make_node("NonZero", ["x"], ["columns"]),
            helper.make_node("Transpose", ["columns"], ["places"]),
            helper.make_node("GatherND", ["x", "places"], ["found"]),
            helper.make_node("Relu", ["found"], ["values"]),
        ],
        [value("x", ["n", 4])],
        [value("places", [None, 2], INT64), value("values", [None])],
    )


def growing():
    """x, doubled m times, and sums of the numbers below k, a row an iteration."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Concat", ["a", "a"], ["b"], axis=0),
            helper.make_node("Range", ["zero", "count", "one"], ["r"]),
            helper.make_node("CumSum", ["r", "zero"], ["row"]),
            helper.make_node("Identity", ["count"], ["again"]),
        ],
        "body",
        [value("i", [], INT64), value("c", [], TensorProto.BOOL), value("a", None), value("count", [], INT64)],
        [value("d", [], TensorProto.BOOL), value("b", None), value("again", [], INT64), value("row", [None], INT64)],
    )
    stored = [helper.make_tensor(name, INT64, [], [number]) for name, number in (("zero", 0), ("one", 1))]
    loop = helper.make_node("Loop", ["m", "", "x", "k"], ["y", "last", "rows"], body=body)
    inputs = [value("x", ["n"]), value("m", [], INT64), value("k", [], INT64)]
    graph = helper.make_graph([loop], "net", inputs, [value("y", [None]), value("rows", [None, None], INT64)], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return lw.compile(model, jobs=1)


class Program:
    """A shared library, called as C would; late outputs by their dtypes and ranks."""

    def __init__(self, library, folder, late):
        files = library.export(folder, "shared", name="net")
        self.code, self.late = ctypes.CDLL(str(files.code)), late
        self.code.net_message.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p()
        assert self.code.net_create(ctypes.byref(self.context), 1) == OK

    def run(self, inputs, dims=(), capacities=None):
        """The code, and the outputs with their shapes: in memory for so many elements, or kept."""
        arrays = [np.ascontiguousarray(x) for x in inputs]
        arguments = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
        shapes = [np.full(rank, -1, np.int64) for _, rank in self.late]
        buffers = [None] * len(self.late)
        for k, (kind, _) in enumerate(self.late):
            room = 0 if capacities is None else capacities[k]
            if capacities is not None:
                buffers[k] = np.zeros(max(room, 1), kind)
            at = None if buffers[k] is None else ctypes.c_void_p(buffers[k].ctypes.data)
            arguments += [at, ctypes.c_int64(room), ctypes.c_void_p(shapes[k].ctypes.data)]
        code = self.code.net_run(self.context, *arguments, *map(ctypes.c_int64, dims))
        if code != OK or capacities is not None:
            return code, shapes, buffers
        return code, shapes, [self.kept(k) for k in range(len(self.late))]

    def kept(self, number):
        kind, rank = self.late[number]
        at, shape = ctypes.c_void_p(), np.zeros(rank, np.int64)
        code = self.code.net_output(self.context, number, ctypes.byref(at), ctypes.c_void_p(shape.ctypes.data))
        if code != OK:
            return code
        size = int(shape.prod()) * np.dtype(kind).itemsize
        return np.frombuffer(ctypes.string_at(at, size), kind).reshape(shape)

    def message(self, code):
        return self.code.net_message(code).decode()

    def close(self):
        self.code.net_destroy(self.context)


def test_loops_have_memory_grow(tmp_path):
    """It stays between runs, each context has its own, and where there is none the next run is right again."""
    library = growing()
    net = Program(library, tmp_path, [(np.float32, 1), (np.int64, 2)])
    other = ctypes.c_void_p()
    assert net.code.net_create(ctypes.byref(other), 1) == OK
    x = np.arange(3, dtype=np.float32)
    for m, k in ((0, 4), (1, 4), (10, 1000), (2, 1 << 46), (3, 1 << 50), (2, 3), (0, 0), (12, 2)):
        code, _, found = net.run([x, np.array(m), np.array(k)], [len(x)])
        if k >= 1 << 46:
            assert code == NO_MEMORY if k == 1 << 46 else "how many numbers a range has" in net.message(code)
            continue
        assert code == OK
        np.testing.assert_array_equal(found[0], np.tile(x, 2**m))
        np.testing.assert_array_equal(found[1], np.tile(np.cumsum(np.arange(k)), (m, 1)) if m else np.zeros((0, 0)))
        net.context, other = other, net.context
    net.close()
    net.context = other
    net.close()


def test_outputs_are_kept_or_fill_what_is_given(tmp_path):
    net = Program(chosen(), tmp_path, [(np.int64, 2), (np.float32, 1)])
    rng = np.random.default_rng(0)
    for rows in (3, 100, 1, 0, 5000, 2):
        x = (rng.normal(size=(rows, 4)) * (rng.random((rows, 4)) > 0.5)).astype(np.float32)
        wanted = np.argwhere(x), np.maximum(x[x != 0], 0)
        code, shapes, found = net.run([x], [rows])
        assert code == OK
        for shape, got, want in zip(shapes, found, wanted, strict=True):
            assert tuple(shape) == want.shape
            np.testing.assert_array_equal(got, want)
        code, shapes, found = net.run([x], [rows], [want.size for want in wanted])
        assert code == OK
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got[: want.size].reshape(want.shape), want)
        if wanted[0].size:
            code, shapes, _ = net.run([x], [rows], [wanted[0].size - 1, wanted[1].size])
            assert code == TOO_SMALL
            assert tuple(shapes[0]) == wanted[0].shape
            assert "too small" in net.message(code)
            assert net.kept(0) == BAD_ARGUMENT  # there is none of that run
    for capacity in (-1, -(1 << 61) + 10):  # the second is ten elements of 8 bytes, where products wrap
        assert net.run([x], [2], [capacity, capacity])[0] == BAD_ARGUMENT
    net.close()


def test_other_outputs_are_as_ever_and_numbers_that_are_no_extents_are_told(tmp_path):
    library = compiled(
        [
            helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
            helper.make_node("Add", ["zeros", "x"], ["y"]),
            helper.make_node("Neg", ["x"], ["z"]),
        ],
        [value("shape", [2], INT64), value("x", [1])],
        [value("z", [1]), value("y", [None, None])],
    )
    files = library.export(tmp_path, "shared", name="net")
    assert "const int64_t *shape, const float *x, float *z, float *y, int64_t y_capacity, int64_t *y_shape" in (
        files.header.read_text()
    )
    code = ctypes.CDLL(str(files.code))
    code.net_message.restype = ctypes.c_char_p
    context = ctypes.c_void_p()
    assert code.net_create(ctypes.byref(context), 1) == OK
    x, z, shape = np.array([2.5], np.float32), np.zeros(1, np.float32), np.zeros(2, np.int64)
    y = np.zeros(12, np.float32)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, z, y)]

    def run(extents):
        given = np.array(extents, np.int64)
        at = ctypes.c_void_p(shape.ctypes.data)
        return code.net_run(context, ctypes.c_void_p(given.ctypes.data), *pointers, ctypes.c_int64(12), at)

    assert run([3, 4]) == OK
    assert list(shape) == [3, 4]
    assert z[0] == -2.5
    np.testing.assert_array_equal(y, 2.5)
    assert run([4, 4]) == TOO_SMALL
    refused = run([3, -4])
    assert refused > 0
    assert b"should be 0 or more" in code.net_message(refused)
    assert code.net_run(None, *pointers, *pointers, *[None] * 2) == BAD_ARGUMENT
    assert run([2, 6]) == OK  # and it stays usable
    code.net_destroy(context)


def test_boxes_of_a_detector(tmp_path):
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["chosen"]),
        helper.make_node("Shape", ["chosen"], ["count"]),
    ]
    made = helper.make_graph(
        nodes, "net", [value("boxes", [1, "n", 4]), value("scores", [1, 2, "n"])],
        [value("chosen", [None, 3], INT64), value("count", [2], INT64)],
        [helper.make_tensor("most", INT64, [], [20]), helper.make_tensor("overlap", FLOAT, [], [0.5])],
    )  # fmt: skip
    library = lw.compile(helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), jobs=1)
    rng = np.random.default_rng(1)
    corners = rng.random((1, 50, 2)) * 10
    boxes = np.concatenate([corners, corners + 3], -1).astype(np.float32)
    scores = rng.random((1, 2, 50)).astype(np.float32)
    wanted, count = lw.Engine(library)([boxes, scores])
    files = library.export(tmp_path, "shared", name="net")
    code, context, found = ctypes.CDLL(str(files.code)), ctypes.c_void_p(), np.zeros(2, np.int64)
    assert code.net_create(ctypes.byref(context), 1) == OK
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (boxes, scores)]
    late = [None, ctypes.c_int64(0), None]
    assert code.net_run(context, *pointers, *late, ctypes.c_void_p(found.ctypes.data), ctypes.c_int64(50)) == OK
    np.testing.assert_array_equal(found, count)
    at, shape = ctypes.c_void_p(), np.zeros(2, np.int64)
    assert code.net_output(context, 0, ctypes.byref(at), ctypes.c_void_p(shape.ctypes.data)) == OK
    kept = np.frombuffer(ctypes.string_at(at, int(shape.prod()) * 8), np.int64).reshape(shape)
    np.testing.assert_array_equal(kept, wanted)
    assert code.net_output(context, 1, ctypes.byref(at), ctypes.c_void_p(shape.ctypes.data)) == BAD_ARGUMENT
    code.net_destroy(context)


@pytest.mark.parametrize("language", ["c99", "c++"])
def test_a_program_in_c(tmp_path, language):
    files = chosen().export(tmp_path, name="net")
    source = tmp_path / "main.c"
    source.write_text(PROGRAM)
    flags = STRICT if language == "c99" else ["-x", "c++", "-fsyntax-only", "-Wall", "-Werror"]
    rest = [files.code, "-o", tmp_path / "main", "-lm", "-pthread"] if language == "c99" else []
    built = subprocess.run(["cc", *flags, source, *map(str, rest)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    if language == "c99":
        run = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (0, "2 0 5 0 ")
