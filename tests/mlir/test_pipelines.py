"""The documented way from MLIR to LLVM IR, which all tests here go, is the one that the example goes."""

import ast

import mlir_tools as tools


def test_the_example_has_the_documented_passes():
    tree = ast.parse((tools.ROOT / "examples" / "mlir_matmul.py").read_text())
    assigned = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PASSES"]
    assert ",".join(ast.literal_eval(assigned[0].value)) == tools.LOWERING
