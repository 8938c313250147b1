"""Composite schedules, made of the primitives of ``lowering``: register tiles, rows, transposes, what is fused around a
stage, and the schedule of what has none of its own.
"""
