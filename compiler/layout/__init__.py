"""In which layouts values are held: weighed by what implementations and transforms cost."""
