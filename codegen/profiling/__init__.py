"""What Linux's perf needs to know of code in memory: names, sizes, instructions and source lines."""
