"""Which calls become one function: the rules, the partition, and the closed functions that it makes."""
