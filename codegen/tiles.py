"""Tiles as instructions of AMX: their configuration, and in place of calls of the functions of ``ir/tiles.py``.

The registers are numbered here: the tiles of a block of sums, then those of its left factor, then those of the right
one. What they hold is set by ``ldtilecfg``, which costs as much as some steps, so that a function in which all blocks
are of one kind sets it once, where it begins. Linux lets a program use them once it has asked for it, which the code
itself does when it first runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from llvmlite import ir as llvm_ir

from ..base.errors import ScheduleError
from ..base.target import Target
from ..ir.buffer import Buffer
from ..ir.build import buffer_strides
from ..ir.constants import is_const
from ..ir.contents import statements_of
from ..ir.expr import Expr, Load, Var
from ..ir.extern import Region
from ..ir.stmt import CallExtern, For, Launch, Stmt, StmtNode, Store, While
from ..ir.tiles import TILES, WORD_BYTES, TileBlock, TileCode
from ..ir.visit import children, walk
from .abi import ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA
from .lanes import external
from .types import I8, I64, PTR

_CONFIGURATION_BYTES = 64


class TileEmitter:
    """Emits the instructions of one function at the builder's position.

    ``there_are`` tells whether the target has tiles. ``value_of`` emits an index expression, ``address_of`` the address
    of an element of a buffer.
    """

    def __init__(
        self,
        builder: llvm_ir.IRBuilder,
        target: Target,
        value_of: Callable[[Expr], llvm_ir.Value],
        address_of: Callable[[Buffer, tuple[Expr, ...]], llvm_ir.Value],
    ) -> None:
        self._builder = builder
        self._value_of = value_of
        self._address_of = address_of
        self.there_are = target.has_tiles
        self._used = self._configured = False

    def enter(self, body: Stmt) -> None:
        """Begin a function: see to it that it can use the tiles that it asks for, and configure them, if one
        configuration serves all of it. Raises ``ScheduleError`` where two blocks would be in tiles at once."""
        codes = [call.function.tiles for call in _tile_calls(body) if call.function.tiles is not None]
        if not (codes and self.there_are):
            return
        if len({buffer.data for buffer in _blocks_in(body)}) > 1:
            _check_order(body, None)
        self._used = True
        self._ask()
        blocks = {code.block for code in codes}
        if len(blocks) == 1 and not any(isinstance(stmt, Launch) for stmt in statements_of(body)):
            self._configure(*blocks)
            self._configured = True

    def leave(self) -> None:
        """End a function: whoever is next to use the core need not keep what is in the tiles."""
        if self._used:
            self._call("tilerelease")

    def call(self, call: CallExtern, code: TileCode) -> None:
        """The instructions in place of a call."""
        block, regions = code.block, call.regions
        _check_block(call, regions[-1 if code.action == "store" else 0].buffer)
        sums = [range(d * block.across, (d + 1) * block.across) for d in range(block.down)]
        match code.action:
            case "zero":
                if not self._configured:
                    self._configure(block)
                for tile in range(block.down * block.across):
                    self._call("tilezero", [self._number(tile)])
            case "store":
                stride = self._row_bytes(regions[0])
                for d, row in enumerate(sums):
                    for a, tile in enumerate(row):
                        self._move(
                            "tilestored64", tile, regions[0], (d * block.tile_rows, a * block.tile_columns), stride
                        )
            case "dot4":
                self._step(code, regions[1], regions[2], sums)

    def _step(self, code: TileCode, left: Region, right: Region, sums: Sequence[Sequence[int]]) -> None:
        """Load the tiles of both factors, each before it is first needed, and multiply all pairs."""
        block = code.block
        strides = self._row_bytes(left), self._row_bytes(right)
        first = block.down * block.across
        instruction = "tdpbsud" if code.signed_left else "tdpbusd"
        for d, row in enumerate(sums):
            a = first + d
            self._move("tileloadd64", a, left, (d * block.tile_rows, 0), strides[0])
            for column, tile in enumerate(row):
                b = first + block.down + column
                if d == 0:
                    self._move("tileloadd64", b, right, (0, column * block.tile_columns), strides[1])
                self._call(instruction, [self._number(n) for n in (tile, a, b)])

    def _move(self, name: str, tile: int, region: Region, element: tuple[int, int], stride: llvm_ir.Value) -> None:
        """Load or store a tile whose first element is so many rows and elements behind a region's begin."""
        builder = self._builder
        address = self._address_of(region.buffer, region.begin)
        row, column = element
        if row:
            rows = builder.mul(stride, llvm_ir.Constant(I64, row))
            address = builder.gep(address, [rows], source_etype=I8)
        if column:
            address = builder.gep(address, [llvm_ir.Constant(I64, column * WORD_BYTES)], source_etype=I8)
        self._call(name, [self._number(tile), address, stride])

    def _row_bytes(self, region: Region) -> llvm_ir.Value:
        strides = buffer_strides(region.buffer) if region.strides is None else region.strides
        size = region.buffer.dtype.storage_bytes
        return self._builder.mul(self._value_of(strides[0]), llvm_ir.Constant(I64, size))

    def _number(self, tile: int) -> llvm_ir.Constant:
        return llvm_ir.Constant(I8, tile)

    def _call(self, name: str, args: Sequence[llvm_ir.Value] = ()) -> None:
        function = external(self._builder.module, f"llvm.x86.{name}", llvm_ir.VoidType(), [a.type for a in args])
        self._builder.call(function, args)

    def _configure(self, block: TileBlock) -> None:
        module, builder = self._builder.module, self._builder
        name = f"tiles.{block}"
        known = module.globals.get(name)
        if known is None:
            data = _configuration(block)
            known = llvm_ir.GlobalVariable(module, llvm_ir.ArrayType(I8, len(data)), name)
            known.initializer = llvm_ir.Constant(known.value_type, bytearray(data))
            known.global_constant, known.linkage, known.align = True, "internal", _CONFIGURATION_BYTES
        self._call("ldtilecfg", [builder.bitcast(known, PTR)])

    def _ask(self) -> None:
        """Ask Linux for permission, if this module has not done so."""
        module, builder = self._builder.module, self._builder
        asked = module.globals.get("tiles.asked")
        if asked is None:
            asked = llvm_ir.GlobalVariable(module, I8, "tiles.asked")
            asked.initializer, asked.linkage = llvm_ir.Constant(I8, 0), "internal"
        zero = llvm_ir.Constant(I8, 0)
        with builder.if_then(builder.icmp_unsigned("==", builder.load(asked), zero), likely=False):
            kind = llvm_ir.FunctionType(I64, [I64], var_arg=True)
            syscall = module.globals.get("syscall") or llvm_ir.Function(module, kind, "syscall")
            builder.call(syscall, [llvm_ir.Constant(I64, n) for n in (ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA)])
            builder.store(llvm_ir.Constant(I8, 1), asked)


def _configuration(block: TileBlock) -> bytes:
    """What ``ldtilecfg`` reads: palette 1, the bytes of each tile's rows from byte 16 on, its rows from byte 48 on."""
    wide, narrow = block.tile_columns * WORD_BYTES, block.words * WORD_BYTES
    tiles = [(block.tile_rows, wide)] * (block.down * block.across)
    tiles += [(block.tile_rows, narrow)] * block.down + [(block.words, wide)] * block.across
    data = bytearray(_CONFIGURATION_BYTES)
    data[0] = 1
    for tile, (rows, row_bytes) in enumerate(tiles[:TILES]):
        data[16 + 2 * tile] = row_bytes
        data[48 + tile] = rows
    return bytes(data)


def _tile_calls(body: Stmt) -> Iterator[CallExtern]:
    return (stmt for stmt in statements_of(body) if isinstance(stmt, CallExtern) and stmt.function.tiles is not None)


def _check_block(call: CallExtern, buffer: Buffer) -> None:
    if buffer.scope != "tile":
        raise ScheduleError(
            f'{call.function.symbol} accesses {buffer.name}, which does not lie in tiles: set_scope("tile")'
        )


def _check_order(stmt: Stmt, held: Var | None) -> Var | None:
    """The memory of the block that is in tiles behind a statement, before which ``held`` is. Raises ``ScheduleError``
    where a block is used that another one has taken the place of."""
    if isinstance(stmt, CallExtern) and stmt.function.tiles is not None:
        (block,) = _blocks_in(stmt)
        if stmt.function.tiles.action != "zero" and block.data is not held:
            raise ScheduleError(f"{stmt.function.symbol} accesses {block.name}, which is not in tiles, or not any more")
        return block.data
    inside = {block.data for block in _blocks_in(stmt)}
    if not inside:
        return held
    again = isinstance(stmt, (For, While)) and len(inside) > 1  # what an iteration leaves, the next one finds
    for _ in range(1 + again):
        for child in children(stmt):
            if isinstance(child, StmtNode):
                held = _check_order(child, held)
    return held


def _blocks_in(body: Stmt) -> Iterator[Buffer]:
    """The buffers in tiles that calls in a statement access."""
    return (r.buffer for call in _tile_calls(body) for r in call.regions if r.buffer.scope == "tile")


def check_access(buffer: Buffer, body: Stmt) -> None:
    """Raise ``ScheduleError`` where anything but an intrinsic accesses a buffer in tiles, or a part of it."""
    for node in walk(body):
        used: Sequence[Buffer] = ()
        match node:
            case CallExtern(function):
                own = [region for region in node.regions if region.buffer.data is buffer.data]
                whole = all(is_const(index, 0) for region in own for index in region.begin)
                used = [] if function.tiles is not None and whole else [region.buffer for region in own]
            case Launch(_, _, args):
                used = [arg for arg in args if isinstance(arg, Buffer)]
            case Load(other) | Store(other):
                used = [other]
            case _:
                pass
        if any(other.data is buffer.data for other in used):
            raise ScheduleError(f"{buffer.name} lies in tiles, which intrinsics access as a whole, and nothing else")
