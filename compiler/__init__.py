"""What compiles: single schedules, and whole graphs with their fusion, memory plan and entry point."""
