"""What the cache tells fused functions apart by."""

import loopwright as lw
from loopwright.codegen.options import CodegenOptions
from loopwright.compiler import function_key


def test_code_of_another_version_of_llvm_is_not_taken_from_the_cache(monkeypatch):
    x = lw.var("x", (3,))
    parts = lw.Function((x,), lw.nn.relu(x)), lw.resolve_target("native"), CodegenOptions()
    before = function_key.function_key(*parts)
    assert function_key.function_key(*parts) == before
    monkeypatch.setattr(function_key, "compiler_version", lambda: "another")
    assert function_key.function_key(*parts) != before
