"""Programs beside each other: each in a process of its own, in rounds, and what their times come to."""
