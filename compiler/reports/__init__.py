"""What tells of a compilation: which implementations were chosen and why."""
