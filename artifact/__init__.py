"""What the compiler, code generation and the runtime exchange, and keep in files: compiled models, options, tuning
records and the cache's entries. All of it is plain data.
"""
