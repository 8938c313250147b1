"""Makes the loop nest of a schedule's state: which loops, which part of each stage, where, under which conditions."""
