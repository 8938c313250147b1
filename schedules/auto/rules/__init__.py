"""The rules by which schedules are made that nobody wrote; each file has those of one idea."""
