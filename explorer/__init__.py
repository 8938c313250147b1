"""The way of a schedule down to machine code, with links between the lines of all stages, and a page that shows it."""
