"""How each contender runs an ONNX model: a module each, with ``prepare(path, inputs, threads)``.

What it gives is called again and again on the same inputs, and gives the outputs, as arrays that it may reuse.
"""
