"""The graph passes, a file each, in the order of ``graph_passes.py``."""
