"""The lowering passes after the nest is made, one a file, and what they share. ``pipeline.py`` lists them in order."""
