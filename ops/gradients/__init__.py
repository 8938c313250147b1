"""Gradients of graphs: the rule of each operator, and the sweep backward that puts them together."""
