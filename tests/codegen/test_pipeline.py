"""What LLVM is given is given back."""

import pytest

from loopwright.artifact.options import CodegenOptions
from loopwright.base.errors import InternalError
from loopwright.codegen import compile as compile_step
from loopwright.codegen.compile import compile_text
from loopwright.codegen.export import program
from loopwright.codegen.host import resolve_target

GOOD = "define void @f() {\n  ret void\n}"
BAD = "define i32 @f() {\n  ret void\n}"


def test_modules_are_freed_with_the_compilation_whoever_keeps_its_frames(monkeypatch):
    """The collector of cycles, which frees in any order, crashed on a module whose context was gone."""
    kept = []
    monkeypatch.setattr(compile_step, "optimize", lambda module, *_: kept.append(module))
    options = CodegenOptions(cache=False)
    code = compile_text(GOOD, "f", (), resolve_target("native"), options)
    assert code.assembly
    assert len(kept) == 2
    assert all(module.closed for module in kept)
    with pytest.raises(InternalError, match="LLVM rejects the code generated"):
        compile_text(BAD, "f", (), resolve_target("native"), options)


def test_modules_of_an_export_are_freed_with_it_or_taken_over(monkeypatch):
    kept = []
    monkeypatch.setattr(program, "optimize", lambda module, *_: kept.append(module))
    target = resolve_target("native")
    caller = "declare void @f()\ndefine void @g() {\n  call void @f()\n  ret void\n}"
    text = program.link_program([caller, GOOD], {}, {"g": "shown"}, target, as_text=True).decode()
    assert "define void @shown()" in text
    assert "define internal void @f()" in text
    assert [module.closed for module in kept] == [True, True]
    with pytest.raises(InternalError, match="LLVM rejects a part of an export"):
        program.link_program([GOOD, BAD], {}, {}, target, as_text=True)
    assert [module.closed for module in kept] == [True] * 3
