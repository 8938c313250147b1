"""Products by weights of 4 and 8 bits in blocks, as language models have them: of one token, and of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from .case import Bar, Case, Work, dims, work_of

BAR = Bar(1.0)
SIZES = ((2048, 2048, 4, 32), (4096, 4096, 4, 32), (4096, 4096, 4, 128), (2048, 8192, 4, 32), (2048, 2048, 8, 32))
"""Terms, columns, bits and the size of a block."""
ROWS = (1, 16, 128)


@dataclass(frozen=True)
class FewBitsCase(Case):
    """onnxruntime's MatMulNBits, with a zero point in the middle."""

    rows: int = 1
    terms: int = 32
    columns: int = 1
    bits: int = 4
    block: int = 32

    def model(self) -> ModelProto:
        """The model, whose operator the text format does not infer a type of."""
        sizes = {"K": self.terms, "N": self.columns, "bits": self.bits, "block_size": self.block}
        node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **sizes)
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.rows, extent])
            for name, extent in (("x", self.terms), ("y", self.columns))
        ]
        rng, blocks = np.random.default_rng([self.terms, self.columns, self.bits]), self.terms // self.block
        codes = rng.integers(0, 256, (self.columns, blocks, self.block * self.bits // 8)).astype(np.uint8)
        scales = rng.uniform(0.001, 0.002, (self.columns, blocks)).astype(np.float32)
        stored = [numpy_helper.from_array(codes, "w"), numpy_helper.from_array(scales, "s")]
        graph = helper.make_graph([node], "g", values[:1], values[1:], stored)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def work(self, model: ModelProto) -> Work:
        """Multiplications and additions of the product; what codes become is not counted."""
        known = work_of(model)
        return Work(2 * self.rows * self.terms * self.columns, known.read, known.written)


def cases() -> Iterator[Case]:
    for terms, columns, bits, block in SIZES:
        for rows in ROWS:
            sizes = {"rows": rows, "terms": terms, "columns": columns, "bits": bits, "block": block}
            name = f"{rows}×{terms}×{columns}, {bits} bits in blocks of {block}"
            yield FewBitsCase("few-bits", name, f"{dims(rows, terms)} x", "", bar=BAR, **sizes)
