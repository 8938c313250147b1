"""From a schedule's state to its loop nest: which loops, which part of each stage, where, under which conditions."""
