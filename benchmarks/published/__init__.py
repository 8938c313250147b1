"""Pipelines that Halide publishes in its ``apps``: in tensor expressions, and in Halide for its own autoscheduler.

Images are float32 of 1536 × 2560 pixels, but for ``blur``, whose are of uint16; both sides see the same memory.
"""
