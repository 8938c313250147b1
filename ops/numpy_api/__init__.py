"""Python's operators and numpy's functions on nodes of graphs, made of calls. Importing this registers them."""

from . import indexing, parts, reductions, shapes, ufuncs, values

__all__ = ["indexing", "parts", "reductions", "shapes", "ufuncs", "values"]
