"""Native code: LLVM emission from the loop IR, vector math, compilation, loading. Imports ``ir`` only."""
