"""Debug information of generated code: the line of a source text for each instruction, as DWARF line tables.

The source is the text of the lowered module (``nest_source.py``). It says nothing of variables, so that LLVM keeps
nothing for it: on x86-64 the code is the same with it and without. Elsewhere LLVM may put the instructions at the
beginning of a function in another order, since it describes the frame for debuggers there.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir as llvm_ir

from ..ir.stmt import PrimFunc, Seq, Stmt
from .types import I32

_DEBUG_INFO_VERSION = 3
_DWARF_VERSION = 5


class LineTable:
    """Gives functions of a module their entries, and statements their locations. Mutable: adds to the module."""

    def __init__(self, module: llvm_ir.Module, source: str, lines: Mapping[Stmt, int]) -> None:
        self._module = module
        self._lines = lines
        for name, version in (("Debug Info Version", _DEBUG_INFO_VERSION), ("Dwarf Version", _DWARF_VERSION)):
            flag = [llvm_ir.Constant(I32, 2), name, llvm_ir.Constant(I32, version)]
            module.add_named_metadata("llvm.module.flags", flag)
        self._file = module.add_debug_info("DIFile", {"filename": source, "directory": "."})
        self._unit = module.add_debug_info(
            "DICompileUnit",
            {
                "language": llvm_ir.DIToken("DW_LANG_C11"),
                "file": self._file,
                "producer": "loopwright",
                "isOptimized": True,
                "runtimeVersion": 0,
                # Debuggers look for the functions, and find no lines by an index of names in which they are missing.
                "emissionKind": llvm_ir.DIToken("FullDebug"),
                "nameTableKind": llvm_ir.DIToken("None"),
            },
            is_distinct=True,
        )
        module.add_named_metadata("llvm.dbg.cu", self._unit)
        self._type = module.add_debug_info("DISubroutineType", {"types": module.add_metadata([None])})

    def enter(self, builder: llvm_ir.IRBuilder, func: PrimFunc) -> None:
        """Begin a function, or the entry that calls it: the builder stands there, and has the line of its head."""
        first = func.body
        while isinstance(first, Seq) and first.stmts:
            first = first.stmts[0]
        line = self._lines.get(first, 2) - 1
        scope = self._module.add_debug_info(
            "DISubprogram",
            {
                "name": func.name,
                "scope": self._file,
                "file": self._file,
                "line": line,
                "scopeLine": line,
                "type": self._type,
                "unit": self._unit,
                "spFlags": llvm_ir.DIToken("DISPFlagDefinition | DISPFlagOptimized"),
            },
            is_distinct=True,
        )
        builder.function.set_metadata("dbg", scope)
        builder.debug_metadata = self._location(scope, line)

    def _location(self, scope: llvm_ir.DIValue, line: int) -> llvm_ir.DIValue:
        return self._module.add_debug_info("DILocation", {"line": line, "column": 1, "scope": scope})

    def at(self, builder: llvm_ir.IRBuilder, stmt: Stmt) -> None:
        """Let what the builder emits belong to a statement's line; a statement without a line changes nothing."""
        line = self._lines.get(stmt)
        if line is not None:
            scope = dict(builder.debug_metadata.operands)["scope"]
            builder.debug_metadata = self._location(scope, line)
