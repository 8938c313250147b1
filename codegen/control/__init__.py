"""Native functions of control flow: branches and loops around the kernels of their bodies."""
