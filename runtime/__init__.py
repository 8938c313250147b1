"""What runs compiled code: the thread pool, kernels that are called with arrays, and how they are timed."""
