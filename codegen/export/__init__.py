"""Programs for others to link: a model or a kernel as one LLVM module with functions of C, and the header of these."""
