"""The loop IR: data types, expressions, statements, functions, and what reads, checks, rewrites and runs them."""
