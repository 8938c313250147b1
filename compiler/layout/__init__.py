"""Chooses the layouts of values, by what implementations and transforms cost."""
