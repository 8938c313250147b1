"""What makes a schedule legal, one file a concern: primitives ask these rules, and ``Step`` after each of them."""
