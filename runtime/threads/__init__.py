"""How many threads to use, and the pools that run them."""
