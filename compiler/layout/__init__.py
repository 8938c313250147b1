"""Chooses the layouts in which values are held, by what implementations and transforms cost."""
