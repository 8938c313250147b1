"""Models and kernels for programs without Python."""
