"""Records of what implementations cost, as plain data: the compiler and engines write and read the same files."""
