"""Tuning: which implementations and decisions are the fastest for a model, found by measuring.

Tasks are the workloads of a model in its fused functions (``tasks.py``), whose candidates make a ``Space``. A
``Searcher`` proposes some, jobs compile and measure them in processes of their own (``jobs.py``, ``sandbox.py``,
``child.py``), and ``Tuner`` keeps what is faster as tuning records.
"""
