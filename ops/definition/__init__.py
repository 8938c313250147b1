"""What operators are made with: attributes, type relations, the registry, strategies with their conditions, and the
rules by which layouts, memory and rows are planned.
"""
