"""The ground floor, which needs nothing else of the package: data types, targets, errors, limits of memory and
processors, and how numbers, tables and notebooks' views are shown.
"""
