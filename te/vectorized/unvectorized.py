"""The error for what numpy cannot evaluate a whole tensor at a time."""

from ...base.errors import ExpressionError


class UnvectorizedError(ExpressionError):
    """An expression or operation that is not run a whole tensor at a time."""
