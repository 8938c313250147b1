"""Functions from outside that compiled programs call: of C, of Python, and BLAS."""
