"""What notebooks show of objects: escaped markup, coloured program text, tables, and the view that holds them."""
