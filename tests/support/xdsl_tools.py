"""xDSL as the tests use it: every module is parsed and verified.

Operations that xDSL 0.74 has no definition of are allowed unregistered. Of its comparisons, selects and conversions,
which are of scalars only, here are those of vectors.
"""

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, VectorType, i1
from xdsl.ir import Dialect
from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException


def verify_by_xdsl(modules):
    """Parse and verify the modules, a dict by title."""
    context = Context(allow_unregistered=True)
    for name, make in get_all_dialects().items():
        context.register_dialect(name, _arith if name == "arith" else make)
    for title, text in modules.items():
        try:
            Parser(context, text).parse_module().verify()
        except Exception as error:
            raise AssertionError(f"{title}: {error}\n{text[:4000]}") from error


def _operands(parser, count):
    found = [parser.parse_unresolved_operand()]
    for _ in range(count - 1):
        parser.parse_punctuation(",")
        found.append(parser.parse_unresolved_operand())
    return found


class _Comparison(IRDLOperation):
    """``arith.cmpi slt, %a, %b : vector<4xi32>``"""

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    @classmethod
    def parse(cls, parser):
        word = parser.parse_identifier()
        parser.parse_punctuation(",")
        operands = _operands(parser, 2)
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        resolved = parser.resolve_operands(operands, [kind, kind], parser.pos)
        number = IntegerAttr(cls.WORDS.index(word), 64)
        return cls(operands=resolved, result_types=[_mask_of(kind)], properties={"predicate": number})


def _mask_of(kind):
    return VectorType(i1, kind.shape) if isinstance(kind, VectorType) else i1


@irdl_op_definition
class IntegerComparison(_Comparison):
    name = "arith.cmpi"
    WORDS: ClassVar = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

    def verify_(self):
        element = self.lhs.type.element_type if isinstance(self.lhs.type, VectorType) else self.lhs.type
        if not isinstance(element, (IntegerType, IndexType)):
            raise VerifyException(f"{self.name} of {self.lhs.type}")


@irdl_op_definition
class FloatComparison(_Comparison):
    name = "arith.cmpf"
    ORDERED: ClassVar = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord")
    UNORDERED: ClassVar = ("ueq", "ugt", "uge", "ult", "ule", "une", "uno")
    WORDS: ClassVar = ("false", *ORDERED, *UNORDERED, "true")

    def verify_(self):
        element = self.lhs.type.element_type if isinstance(self.lhs.type, VectorType) else self.lhs.type
        if not isinstance(element, AnyFloat):
            raise VerifyException(f"{self.name} of {self.lhs.type}")


@irdl_op_definition
class Select(IRDLOperation):
    """``arith.select %c, %a, %b : f32``, or with the type of a mask before that of its values."""

    name = "arith.select"
    condition = operand_def(AnyAttr())
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    @classmethod
    def parse(cls, parser):
        operands = _operands(parser, 3)
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        if parser.parse_optional_punctuation(","):
            types.append(parser.parse_type())
        condition, kind = types if len(types) == 2 else (i1, types[0])
        resolved = parser.resolve_operands(operands, [condition, kind, kind], parser.pos)
        return cls(operands=resolved, result_types=[kind])

    def verify_(self):
        if self.condition.type not in (i1, _mask_of(self.lhs.type)):
            raise VerifyException(f"{self.name} of {self.lhs.type} by {self.condition.type}")


class _Conversion(IRDLOperation):
    """``arith.extui %a : vector<4xi8> to vector<4xi32>``"""

    value = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    @classmethod
    def parse(cls, parser):
        (operand,) = _operands(parser, 1)
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        return cls(operands=[parser.resolve_operand(operand, source)], result_types=[parser.parse_type()])

    def verify_(self):
        if _mask_of(self.value.type) != _mask_of(self.result.type):
            raise VerifyException(f"{self.name} of {self.value.type} to {self.result.type}")


CONVERSIONS = ("extui", "extsi", "trunci", "extf", "truncf", "sitofp", "uitofp", "fptosi", "fptoui", "index_cast")
_CONVERSIONS = [irdl_op_definition(type(n, (_Conversion,), {"name": f"arith.{n}"})) for n in (*CONVERSIONS, "bitcast")]
_OWN = {op.name: op for op in (IntegerComparison, FloatComparison, Select, *_CONVERSIONS)}


def _arith():
    return Dialect("arith", [_OWN.get(op.name, op) for op in Arith.operations], list(Arith.attributes))
