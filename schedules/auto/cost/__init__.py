"""What a lowered function is predicted to take, in cycles of a core.

Instructions are counted where LLVM leaves them, loop-invariant ones outside of loops (``instructions.py``); cache lines
that come from each cache follow from what each loop touches (``footprint.py``, ``traffic.py``); ``predict.py`` adds up.
"""
