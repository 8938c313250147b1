"""Schedules that nobody wrote: rules make candidates of public primitives, and an analytic model of a core ranks them.

``rules/`` has what may be done to a stage, ``sketch.py`` makes a schedule by them, ``search.py`` chooses their
decisions, by what ``cost/`` predicts of the lowered loop nest.
"""
