"""What became of each loop of a schedule, read from the lowered function and from the final assembly."""
