"""Functions of Python as kernels: ``lw.kernel``."""
